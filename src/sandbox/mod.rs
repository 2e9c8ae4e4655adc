//! The sealed container in which everything that a model wrote runs: start, call, kill. Owns the
//! seal, the seccomp filter, the helper program and its protocol; refuses every host fallback, and
//! trusts nothing that comes out.

mod build;
mod call;
mod command;
mod connection;
mod container;
mod disk;
mod door;
mod error;
mod frame;
mod helper;
mod host;
#[cfg(test)]
mod hostile_peer;
mod image;
mod launch;
mod memory;
mod monitor;
mod namespace;
mod podman;
mod pool;
mod preflight;
mod refusals;
mod report;
mod runtime;
mod seal;
mod seccomp;
mod spec;
mod sweep;
mod wire;

pub use build::{BuildError, Python, Recipe, build, existing};
pub use call::{
    Call, CallError, CommandOutput, EditError, FileContent, GitBundle, KernelOutput,
    PendingSandbox, Reply, Resources, Sandbox, StartError,
};
pub use container::PodmanSandbox;
pub use error::{LimitsCause, PodmanError, PreflightError};
pub use host::Surroundings;
pub use image::{Image, ImageKind};
pub use podman::Podman;
pub use pool::{Pool, PoolError};
pub use preflight::{is_limit, preflight, probe};
pub use refusals::{refusals, refusals_table};
pub use report::SealReport;
pub use runtime::Runtime;
pub use seccomp::denied_calls;
pub use spec::{ContainerLimits, GitMounts, SandboxSpec};
pub use sweep::{Orphans, orphans, sweep};
