//! What Podman's complaints mean. Podman has one exit status for many faults and no codes: this is the
//! one place that reads its words, and what it does not know is told as Podman said it.

use super::super::error::{PodmanError, PreflightError};
use super::super::host::{Cgroups, UserNamespaces, user_name};
use super::super::podman::Podman;
use super::super::runtime::Runtime;

/// A failure of Podman, in words of its own where they are known.
pub(super) fn understood(podman: &Podman, error: PodmanError) -> PreflightError {
    match error {
        PodmanError::Failed { ref stderr, .. } => {
            of(podman, stderr).unwrap_or(PreflightError::Podman(error))
        }
        PodmanError::Hung { verb, seconds } => {
            PreflightError::Hung { verb, seconds, user: user_name(podman.host().uid) }
        }
        PodmanError::Output { verb, reason } => {
            let program = podman.program().display().to_string();
            PreflightError::Garbage { verb, reason, program }
        }
        other => PreflightError::Podman(other),
    }
}

/// The fault behind what Podman or the OCI runtime wrote to standard error.
pub(in crate::sandbox) fn of(podman: &Podman, stderr: &str) -> Option<PreflightError> {
    let text = stderr.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let reason = || last_error(stderr);
    let root = || podman.root().display().to_string();
    let runtime = podman.runtime();
    let installed = || podman.host().around.find_program(podman.oci().program()).is_some();
    let runtime_dir = |problem: String| PreflightError::RuntimeDir {
        problem,
        user: user_name(podman.host().uid),
    };
    // From the particular to the general: one fault is often told in several lines.
    Some(if has(&["cgroups in hybrid mode not supported"]) {
        PreflightError::CrunOnHybrid
    } else if has(&["is not compatible with nocgroups"]) {
        PreflightError::CgroupsDisabled { runtime: runtime.to_owned() }
    } else if has(&["memory.swap.max: no such file"]) {
        PreflightError::NoSwapLimit
    } else if has(&["setrlimit", "error setting rlimit"]) {
        PreflightError::HardLimit { reason: reason() }
    } else if has(&["database configuration mismatch", "does not match our"]) {
        PreflightError::StorageMoved { root: root(), reason: reason() }
    } else if has(&["no space left on device", "disk quota exceeded"]) {
        PreflightError::DiskFull { root: root(), reason: reason() }
    } else if has(&["which is not writable", "creating tmpdir", "creating runtime static files"]) {
        runtime_dir(format!("podman cannot write its run directory ({})", reason()))
    } else if has(&["default oci runtime"]) && text.contains("not found") {
        if installed() {
            // Podman 5 says this of a run directory that it cannot write.
            runtime_dir(format!("podman cannot use the OCI runtime {runtime}, which is there"))
        } else {
            let reason = "it is not on PATH".to_owned();
            PreflightError::Runtime { runtime: runtime.to_owned(), reason }
        }
    } else if no_namespace(&text) && podman.host().user_namespaces == UserNamespaces::AppArmor {
        let program = podman.program().display().to_string();
        PreflightError::AppArmor { program, reason: reason() }
    } else if has(&["no subuid ranges found", "no subgid ranges found"]) {
        PreflightError::NoSubordinateIds { user: user_name(podman.host().uid) }
    } else if has(&["newuidmap", "newgidmap"]) {
        PreflightError::IdMapper { reason: reason() }
    } else if has(&["kernel does not support overlay", "unsupported for this graph driver"]) {
        PreflightError::NoOverlay { root: root(), reason: reason() }
    } else if !installed() {
        PreflightError::Runtime { runtime: runtime.to_owned(), reason: reason() }
    } else if podman.oci() == Runtime::Crun && podman.host().cgroups == Cgroups::Hybrid {
        // Where a limit of processes stops crun first, it never comes to say what is wrong.
        PreflightError::CrunOnHybrid
    } else {
        return None;
    })
}

/// Whether Podman could not make its user namespace.
fn no_namespace(text: &str) -> bool {
    ["newuidmap", "newgidmap", "cannot clone", "cannot set up namespace", "user namespace"]
        .iter()
        .any(|word| text.contains(word))
}

/// The last line that says `Error`, or the whole: warnings come before it.
fn last_error(stderr: &str) -> String {
    let lines = || stderr.split("; ").map(str::trim).filter(|line| !line.is_empty());
    let found = lines().filter(|line| line.starts_with("Error")).last();
    let line = found.map_or(stderr, |line| line.split_once(": ").map_or(line, |(_, rest)| rest));
    line.trim().to_owned()
}
