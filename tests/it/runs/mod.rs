//! Whole runs: from a bundle commit to a recorded outcome, with real Podman and git.

mod by_hand;
mod ceilings;
mod clock_changes;
mod clock_jumps;
pub mod crash;
mod credentials;
mod daemon;
mod foreign_files;
mod gates;
mod hostile_git;
mod limits;
mod memory;
mod models;
mod moved_base;
mod notices;
mod operator;
mod policies;
mod resilience;
mod retries;
mod runtimes;
mod signals;
mod simulated_time;
mod standby;
mod tools;
