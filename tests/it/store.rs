//! Behaviour of `store`, on real files.

mod bench;
mod claims;
mod finish;
mod occurrences;
mod opening;
mod plans;
mod queue;
mod replay;
mod secrets;
