//! Runs AI agents unattended, on a schedule, from a git repository of YAML.
//!
//! Modules are listed in the order in which data passes them; which may use which is written in
//! `docs/architecture.md` and held by a test.

pub mod clock;
pub mod fault;
pub mod schedule;
pub mod secrets;
pub mod tls;

pub mod config;

pub mod run;

pub mod egress;

pub mod bundle;
pub mod store;

pub mod model;
pub mod sandbox;
pub mod worktree;

pub mod agent;
pub mod tools;

pub mod notify;

pub mod runner;

pub mod status;

pub mod cli;
