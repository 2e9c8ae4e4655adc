//! Behaviour of `store`, on real files.

mod bench;
mod claims;
mod daemon;
mod finish;
mod occurrences;
mod opening;
mod replay;
mod secrets;
