//! Ticks, claims, executes, finishes, recovers: everything between a due instant and its terminal
//! row. Owns the order of things; SQL, git, containers and models are asked for by name.

mod agenda;
mod attached;
mod bundles;
mod cleanup;
mod collect;
mod condition;
mod context;
mod courier;
mod damage;
mod disk_guard;
mod execute;
mod executor;
mod file_system;
mod finish;
mod holder;
mod housekeeping;
mod lease;
mod lives;
mod models;
mod notices;
mod occurrence;
mod outlet;
mod plan;
mod prompt;
mod recover;
mod retention;
mod roster;
mod script;
mod seals;
mod serve_lock;
mod service;
mod session_log;
mod sla;
mod standby;
mod sweep;
mod task_run;
mod tenure;
mod wake;
mod workspace;

pub use bundles::{BundleKeeper, BundleState, StartError, commit_in_force};
pub use cleanup::remove_workspace;
pub use context::{Context, OpenError, new_run_id};
pub use disk_guard::{shortage, size};
pub use execute::Execution;
pub use executor::{Double, Executor};
pub use file_system::{FileSystem, NetworkFileSystem, check as check_file_system, classify};
pub use holder::{HolderError, HolderLock, holders, is_alive};
pub use lives::Lives;
pub use occurrence::by_hand;
pub use serve_lock::{DaemonInfo, ServeLock, ServeLockError, host_name};
pub use service::{Service, Signal};
pub use standby::{Seat, StandbyError, wait as stand_by};
pub use task_run::{TaskRun, TaskRunError};
pub use tenure::Tenure;
pub use wake::Wake;

/// An error and its causes in one line.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}
