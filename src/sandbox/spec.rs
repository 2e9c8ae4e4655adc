//! What one sandbox is made of.

use std::path::PathBuf;

use crate::egress::Gate;

/// Everything that distinguishes one run's container.
#[derive(Clone, Debug, PartialEq)]
pub struct SandboxSpec {
    /// Label `fleet.run`, and part of the container's name.
    pub run_id: String,
    /// Label `fleet.task`.
    pub task: String,
    /// Label `fleet.instance`: the holder that started it.
    pub instance: String,
    /// Label `fleet.boot`.
    pub boot: String,
    /// Image id or name in fleet's Podman storage.
    pub image: String,
    /// OCI runtime, as preflight resolved it; `None` = Podman's default.
    pub runtime: Option<String>,
    /// Mounted read-write at the same path; the working directory.
    pub workspace: PathBuf,
    /// Absent for a plain checkout.
    pub git: Option<GitMounts>,
    pub limits: ContainerLimits,
    /// The way out; absent: none. The container has no network either way.
    pub egress: Option<Gate>,
}

/// How the repository's metadata is shown inside: an overlay whose writes stay in `upper`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitMounts {
    /// The repository's common `.git` directory (or the bare repository), overlaid at its own path.
    pub git_dir: PathBuf,
    /// Host-side upper directory; outlives the container.
    pub upper: PathBuf,
    /// Overlay work directory, on the same file system as `upper`.
    pub work: PathBuf,
    /// (host file or directory, path inside), each read-only over the overlay: the generated config,
    /// an empty `hooks`, the worktree's `.git` pointer file and so on, in this order.
    pub masks: Vec<(PathBuf, PathBuf)>,
}

/// Limits of one container.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ContainerLimits {
    pub memory_mb: u64,
    pub cpus: f64,
    pub pids: u32,
    /// Soft: the workspace and the overlay's upper directory are polled.
    pub disk_mb: u64,
    /// Open files of each process.
    pub nofile: u32,
}
