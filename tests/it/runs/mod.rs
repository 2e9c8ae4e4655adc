//! Whole runs: from a bundle commit to a recorded outcome, with real Podman and git.

mod by_hand;
mod ceilings;
mod clock_changes;
mod crash;
mod credentials;
mod daemon;
mod hostile_git;
mod notices;
mod operator;
mod policies;
mod resilience;
mod retries;
pub mod simulated_time;
