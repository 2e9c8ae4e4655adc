//! Behaviour of `store`, on real files.

mod bench;
mod claims;
mod finish;
mod notices;
mod occurrences;
mod opening;
mod replay;
mod secrets;
