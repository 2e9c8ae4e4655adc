//! Behaviour of `store`, on real files.

pub mod bench;
mod claims;
mod daemon;
mod finish;
mod memories;
mod notices;
mod occurrences;
mod opening;
mod plans;
mod queue;
mod replay;
mod secrets;
