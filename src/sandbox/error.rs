//! Why the sandbox cannot be used, each with the way out.

use std::path::PathBuf;

/// Why this host is refused. Every text names the thing, the value seen and the fix.
#[derive(Debug, thiserror::Error)]
pub enum PreflightError {
    #[error("fleet refuses to run as root: start it as an unprivileged user of its own")]
    Root,
    #[error("HOME is not set to an absolute path: set it to the home directory of fleet's user")]
    NoHome,
    #[error("podman is not on PATH: install the package podman (4.3 or newer)")]
    NoPodman,
    #[error(
        "{problem}: run `loginctl enable-linger {user}` as root, or set XDG_RUNTIME_DIR to a \
         directory of this user's on a tmpfs with mode 0700"
    )]
    RuntimeDir { problem: String, user: String },
    #[error("podman's storage path {0} has a character that mounts cannot carry (: or ,)")]
    Path(PathBuf),
    #[error(transparent)]
    Podman(#[from] PodmanError),
    #[error("podman info has no {field}: this Podman is too old or too new for fleet")]
    Info { field: &'static str },
    #[error("podman {version} is too old: install 4.3 or newer")]
    TooOld { version: String },
    #[error("podman is not rootless here: start fleet as an unprivileged user")]
    NotRootless,
    #[error(
        "podman's storage driver is {driver}, which fleet refuses: remove {root} so that it is made \
         anew with overlay, and install fuse-overlayfs where the kernel has no rootless overlay"
    )]
    Storage { driver: String, root: String },
    #[error(
        "the user {user} has no subordinate ids in /etc/subuid and /etc/subgid: as root, run \
         `usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {user}`, then \
         `podman system migrate` as {user}"
    )]
    NoSubordinateIds { user: String },
    #[error("podman was built or started without seccomp: install your distribution's podman")]
    NoSeccomp,
    #[error(
        "the seccomp profile {path} cannot be used: {reason}; install the package \
         golang-github-containers-common (Debian, Ubuntu) or containers-common (Fedora)"
    )]
    SeccompProfile { path: String, reason: String },
    #[error(
        "the OCI runtime {runtime} is not usable: {reason}; install it, or name another with \
         `[sandbox]\\nruntime = \"crun\"` in fleet.toml"
    )]
    Runtime { runtime: String, reason: String },
    #[error("there is no sandbox image {image}: run `fleet sandbox build`")]
    ImageMissing { image: String },
    #[error(
        "this host does not enforce {limits}: run fleet under a systemd user session with cgroup v2, \
         or accept rlimits instead with\n[sandbox]\nlimits = \"best_effort\"\nin fleet.toml"
    )]
    Limits { limits: String },
    #[error("the probe container did not run: {reason}")]
    Probe { reason: String },
    #[error("the seal does not hold: {broken}; fleet runs nothing on this host until it does")]
    Seal { broken: String },
    #[error("cannot {verb} {path}")]
    Files { verb: &'static str, path: String, source: std::io::Error },
    #[error("cannot get random bytes: {0}")]
    Random(String),
}

/// Why Podman did not do what it was asked.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PodmanError {
    #[error("podman {verb}: {reason}")]
    NotRun { verb: String, reason: String },
    #[error("podman {verb} failed (status {status}): {stderr}")]
    Failed { verb: String, status: i32, stderr: String },
    #[error("podman {verb} printed something that is not what was asked for: {reason}")]
    Output { verb: String, reason: String },
    #[error("containers of {what} are still there after {seconds} s")]
    StillThere { what: String, seconds: u64 },
    #[error("cannot {verb} {path}: {reason}")]
    Files { verb: &'static str, path: String, reason: String },
}
