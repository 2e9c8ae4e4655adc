//! The integration tests: the real binary and library against real Podman, git, SQLite and HTTP.

mod agent;
mod bundle;
mod cli;
mod config;
#[cfg(feature = "fault-injection")]
mod crash_matrix;
mod doctor;
mod egress;
mod env;
mod git_attacks;
mod helper;
mod keeping;
mod model;
mod notify;
mod preflight;
mod runs;
mod sandbox;
mod schedule;
mod simulated_year;
mod status;
mod store;
mod structure;
mod what_happens;
mod worktree;
