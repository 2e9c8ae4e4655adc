//! Behaviour of the command line: the real binary with an empty environment.

mod bench;
mod config;
mod dlq;
mod runs;
pub mod sched;
