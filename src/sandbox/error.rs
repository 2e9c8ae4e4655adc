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
    #[error(
        "the setting {setting} forbids user namespaces, without which there is no rootless \
         container: as root, set it otherwise with sysctl, and in /etc/sysctl.d for the next boot"
    )]
    UserNamespacesOff { setting: &'static str },
    #[error(
        "AppArmor keeps {program} from making a user namespace \
         (kernel.apparmor_restrict_unprivileged_userns=1; {reason}): use the distribution's podman \
         in /usr/bin, which its profile allows, or as root run `sysctl -w \
         kernel.apparmor_restrict_unprivileged_userns=0`, and put it into /etc/sysctl.d for the \
         next boot"
    )]
    AppArmor { program: String, reason: String },
    #[error(
        "newuidmap and newgidmap cannot map subordinate ids ({reason}): install the package uidmap \
         (Debian, Ubuntu) or shadow-utils (Fedora); it makes them setuid root"
    )]
    IdMapper { reason: String },
    #[error(transparent)]
    Podman(#[from] PodmanError),
    #[error(
        "podman {verb} did not answer within {seconds} s and was killed: look for another podman of \
         this user that hangs (`pgrep -u {user} -a podman`), end it, and start again"
    )]
    Hung { verb: String, seconds: u64, user: String },
    #[error(
        "podman {verb} printed something that is not what was asked for ({reason}): check that \
         {program} is Podman itself and no wrapper"
    )]
    Garbage { verb: String, reason: String, program: String },
    #[error("podman info has no {field}: this Podman is too old or too new for fleet")]
    Info { field: &'static str },
    #[error("podman {version} is too old: install 4.3 or newer")]
    TooOld { version: String },
    #[error("podman is not rootless here: start fleet as an unprivileged user")]
    NotRootless,
    #[error(
        "podman's storage driver is {driver}, which fleet refuses: remove {root} so that it is made \
         anew with overlay (`fleet doctor --fix` does that), and install fuse-overlayfs where the \
         kernel has no rootless overlay"
    )]
    Storage { driver: String, root: String },
    #[error(
        "fleet's storage {root} was first used with another path or runtime directory ({reason}): \
         set XDG_RUNTIME_DIR and sandbox.storage as they were then, or let `fleet doctor --fix` make \
         it anew"
    )]
    StorageMoved { root: String, reason: String },
    #[error(
        "the file system of {root} takes no overlay ({reason}): put fleet's storage on ext4, xfs or \
         btrfs with sandbox.storage in fleet.toml, or install the package fuse-overlayfs"
    )]
    NoOverlay { root: String, reason: String },
    #[error("the disk of {root} is full ({reason}): make room, then try again")]
    DiskFull { root: String, reason: String },
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
    #[error(
        "the OCI runtime {runtime} cannot be used as it was built ({reason}): install {wanted}"
    )]
    RuntimeBuild { runtime: &'static str, reason: String, wanted: &'static str },
    #[error(
        "the OCI runtime {runtime} needs the kernel's virtual machines ({reason}): turn \
         virtualization on in the firmware, load kvm_intel or kvm_amd, and as root run `usermod \
         --append --groups kvm {user}`; fleet takes no shared-kernel container in its place"
    )]
    NoKvm { runtime: &'static str, reason: String, user: String },
    #[error(
        "the OCI runtime {runtime} does not carry the socket through which fleet speaks to a sandbox \
         (inside, connecting is {seen}): use crun, runc or runsc"
    )]
    NoSocket { runtime: String, seen: String },
    #[error(
        "the OCI runtime crun starts nothing on this host's hybrid cgroups: remove sandbox.runtime \
         from fleet.toml and FLEET_SANDBOX_RUNTIME, so that fleet takes runc (package runc), or boot \
         with the kernel parameter systemd.unified_cgroup_hierarchy=1"
    )]
    CrunOnHybrid,
    #[error(
        "Podman turns control groups off, and {runtime} starts nothing without them: remove \
         `cgroups = \"disabled\"` from containers.conf in ~/.config/containers and /etc/containers"
    )]
    CgroupsDisabled { runtime: String },
    #[error(
        "this host's control groups have no memory.swap.max, so no memory limit can be set: boot \
         with the kernel parameters swapaccount=1 and systemd.unified_cgroup_hierarchy=1, or accept \
         rlimits instead with\n[sandbox]\nlimits = \"best_effort\"\nin fleet.toml"
    )]
    NoSwapLimit,
    #[error(
        "the OCI runtime may not set a container's limit of open files or processes ({reason}): \
         raise this account's hard limits, with LimitNOFILE= and LimitNPROC= in fleet's unit or in \
         /etc/security/limits.conf"
    )]
    HardLimit { reason: String },
    #[error("there is no sandbox image {image}: run `fleet sandbox build`")]
    ImageMissing { image: String },
    #[error(
        "this host does not enforce {limits}: {cause}; or accept rlimits instead with\n[sandbox]\n\
         limits = \"best_effort\"\nin fleet.toml"
    )]
    Limits { limits: String, cause: LimitsCause },
    #[error("the probe container did not run: {reason}")]
    Probe { reason: String },
    #[error("the seal does not hold: {broken}; fleet runs nothing on this host until it does")]
    Seal { broken: String },
    #[error("cannot {verb} {path}")]
    Files { verb: &'static str, path: String, source: std::io::Error },
    #[error("cannot get random bytes: {0}")]
    Random(String),
}

/// Why limits do not hold, as far as the host tells, with the way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitsCause {
    /// Version 1 controllers beside version 2.
    Hybrid,
    /// Version 1 only.
    Legacy,
    /// No systemd user manager, so nothing delegates a control group to Podman.
    NoUserManager,
    /// The user manager runs, but does not delegate the controller.
    NotDelegated,
    /// gVisor without root uses no control group.
    Gvisor,
}

impl std::fmt::Display for LimitsCause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            LimitsCause::Hybrid => {
                "its cgroups are hybrid, where no rootless limit exists: boot with the kernel \
                 parameter systemd.unified_cgroup_hierarchy=1"
            }
            LimitsCause::Legacy => {
                "its cgroups are of version 1, where no rootless limit exists: boot with the kernel \
                 parameter systemd.unified_cgroup_hierarchy=1"
            }
            LimitsCause::NoUserManager => {
                "no systemd user manager answers, so Podman manages cgroups that it may not write: \
                 as root, run `loginctl enable-linger` for fleet's user"
            }
            LimitsCause::NotDelegated => {
                "the systemd user manager does not delegate the controllers: as root, put \
                 `[Service]\\nDelegate=cpu cpuset io memory pids` into \
                 /etc/systemd/system/user@.service.d/delegate.conf, run `systemctl daemon-reload` \
                 and boot"
            }
            LimitsCause::Gvisor => {
                "the OCI runtime runsc uses no control groups without root: take crun or runc where \
                 limits must hold"
            }
        })
    }
}

/// Why Podman did not do what it was asked.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PodmanError {
    #[error("podman {verb}: {reason}")]
    NotRun { verb: String, reason: String },
    #[error("podman {verb}: it took longer than {seconds} s and was killed")]
    Hung { verb: String, seconds: u64 },
    #[error("podman {verb} failed (status {status}): {stderr}")]
    Failed { verb: String, status: i32, stderr: String },
    #[error("podman {verb} printed something that is not what was asked for: {reason}")]
    Output { verb: String, reason: String },
    #[error("containers of {what} are still there after {seconds} s")]
    StillThere { what: String, seconds: u64 },
    #[error("cannot {verb} {path}: {reason}")]
    Files { verb: &'static str, path: String, reason: String },
}

impl PreflightError {
    /// A stable word for this refusal, as `docs/hosts.md` lists it.
    pub fn code(&self) -> &'static str {
        match self {
            PreflightError::Root => "root",
            PreflightError::NoHome => "no-home",
            PreflightError::NoPodman => "no-podman",
            PreflightError::RuntimeDir { .. } => "runtime-directory",
            PreflightError::Path(_) => "path",
            PreflightError::UserNamespacesOff { .. } => "user-namespaces-off",
            PreflightError::AppArmor { .. } => "apparmor",
            PreflightError::IdMapper { .. } => "id-mapper",
            PreflightError::Podman(_) => "podman",
            PreflightError::Hung { .. } => "hung",
            PreflightError::Garbage { .. } => "garbage",
            PreflightError::Info { .. } => "info",
            PreflightError::TooOld { .. } => "too-old",
            PreflightError::NotRootless => "not-rootless",
            PreflightError::Storage { .. } => "storage-driver",
            PreflightError::StorageMoved { .. } => "storage-moved",
            PreflightError::NoOverlay { .. } => "no-overlay",
            PreflightError::DiskFull { .. } => "disk-full",
            PreflightError::NoSubordinateIds { .. } => "no-subordinate-ids",
            PreflightError::NoSeccomp => "no-seccomp",
            PreflightError::SeccompProfile { .. } => "seccomp-profile",
            PreflightError::Runtime { .. } => "runtime",
            PreflightError::RuntimeBuild { .. } => "runtime-build",
            PreflightError::NoKvm { .. } => "no-kvm",
            PreflightError::NoSocket { .. } => "no-socket",
            PreflightError::CrunOnHybrid => "crun-on-hybrid",
            PreflightError::CgroupsDisabled { .. } => "cgroups-disabled",
            PreflightError::NoSwapLimit => "no-swap-limit",
            PreflightError::HardLimit { .. } => "hard-limit",
            PreflightError::ImageMissing { .. } => "image-missing",
            PreflightError::Limits { cause, .. } => match cause {
                LimitsCause::Hybrid => "limits-hybrid",
                LimitsCause::Legacy => "limits-v1",
                LimitsCause::NoUserManager => "limits-no-user-manager",
                LimitsCause::NotDelegated => "limits-not-delegated",
                LimitsCause::Gvisor => "limits-runsc",
            },
            PreflightError::Probe { .. } => "probe",
            PreflightError::Seal { .. } => "seal",
            PreflightError::Files { .. } => "files",
            PreflightError::Random(_) => "random",
        }
    }
}
