//! Whole runs: from a bundle commit to a recorded outcome, with real Podman and git.

mod by_hand;
mod ceilings;
pub mod crash;
mod credentials;
mod daemon;
mod hostile_git;
mod operator;
mod resilience;
mod retries;
mod simulated_time;
mod standby;
