//! Behaviour of `store`, on real files.

pub mod bench;
mod claims;
mod finish;
mod occurrences;
mod opening;
mod queue;
mod replay;
mod secrets;
