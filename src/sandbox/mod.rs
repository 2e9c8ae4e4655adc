//! The sealed container in which everything that a model wrote runs: start, call, kill. Owns the
//! seal, the seccomp filter, the helper program and its protocol; refuses every host fallback, and
//! trusts nothing that comes out.

mod call;
mod spec;

pub use call::{
    Call, CallError, CommandOutput, EditError, FileContent, GitBundle, KernelOutput,
    PendingSandbox, Reply, Resources, Sandbox, StartError,
};
pub use spec::{ContainerLimits, GitMounts, SandboxSpec};
mod stub;
pub use stub::*;
