//! Runs one probe container under the whole seal and reads back what holds.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use super::super::door::Door;
use super::super::error::PreflightError;
use super::super::image::Image;
use super::super::podman::{Podman, random_hex};
use super::super::seal::{Holding, Seal, runtime_flags, seal_flags};
use super::super::spec::ContainerLimits;
use super::super::sweep::PROBE;
use super::complaint;
use crate::run::SealLine;

const SCRIPT: &str = include_str!("probe.py");
const PATIENCE: Duration = Duration::from_secs(90);

/// Small, and unlike any limit that a host has by itself.
const LIMITS: ContainerLimits =
    ContainerLimits { memory_mb: 192, cpus: 0.5, pids: 61, disk_mb: 64, nofile: 997 };

/// The lines that a limit makes, with what they must say under [`LIMITS`].
const LIMIT_LINES: [(&str, &str); 4] = [
    ("memory.max", "201326592"),
    ("memory.swap.max", "0"),
    ("pids.max", "61"),
    ("cpu.max", "50000 100000"),
];

/// What has no best effort: the kernel holds it for every process. Open files and the size of a file
/// are those of [`LIMITS`].
const SEAL_LINES: [(&str, &str); 16] = [
    ("cap_eff", "0000000000000000"),
    ("cap_bnd", "0000000000000000"),
    ("no_new_privs", "1"),
    ("seccomp", "2"),
    ("interfaces", "lo"),
    ("root", READ_ONLY),
    ("etc", READ_ONLY),
    ("tmp", "1777 writable"),
    ("nofile", "997"),
    ("fsize", "67108864"),
    ("core", "0"),
    ("vsock", "refused"),
    ("user_namespace", "refused"),
    ("clone3", "refused"),
    (THREADS, "work"),
    (DOOR, "open"),
];

/// What stands in for the limits of a control group under [`LIMITS`]. These have no best effort: there
/// is nothing behind them.
const STAND_IN_LINES: [(&str, &str); 2] = [("data", "201326592"), ("nproc", "61")];

const READ_ONLY: &str = "refused: EROFS";
/// The same where rights are looked at before the mount.
const READ_ONLY_BY_MOUNT: &str = "refused: EACCES on a read-only mount";

/// Whether the socket of the door can be reached from inside.
const DOOR: &str = "door";

/// Whether Python can start a thread: the helper has several.
const THREADS: &str = "threads";

/// Whether threads were refused.
pub(super) fn lacks_threads(lines: &[SealLine]) -> bool {
    lines.iter().any(|line| line.property == THREADS && !line.holds)
}

/// What a probe is made of.
pub(super) struct Probe<'a> {
    pub podman: &'a Podman,
    pub image: &'a Image,
    pub seccomp: &'a Path,
    /// What Podman is to pass to the OCI runtime.
    pub flags: &'a [String],
}

/// Refuses a runtime through which nothing could be said to a sandbox.
pub(super) fn has_door(podman: &Podman, lines: &[SealLine]) -> Result<(), PreflightError> {
    match lines.iter().find(|line| line.property == DOOR && !line.holds) {
        Some(line) => Err(PreflightError::NoSocket {
            runtime: podman.runtime().to_owned(),
            seen: line.seen.clone(),
        }),
        None => Ok(()),
    }
}

/// Runs the probe.
pub(super) async fn run(
    probe: &Probe<'_>,
    holding: Holding,
) -> Result<Vec<SealLine>, PreflightError> {
    let Probe { podman, image, seccomp, flags } = *probe;
    let name = format!("fleet-probe-{}", random_hex(4).map_err(PreflightError::Random)?);
    let owner = format!("{}\n{PROBE}\n{name}\n", podman.state_label());
    let fail = |reason: String| PreflightError::Probe { reason };
    let (door, _open) = Door::make(podman.run_dir(), &owner).map_err(fail)?;
    let host = podman.host();
    let labels = [("fleet.probe", "1"), ("fleet.state", podman.state_label())];
    let mut args = runtime_flags(flags);
    args.extend(["run", "--rm"].map(OsString::from));
    args.extend(seal_flags(&Seal {
        name: &name,
        labels: &labels,
        uid: host.uid,
        gid: host.gid,
        seccomp,
        runtime: podman.oci(),
        limits: LIMITS,
        holding,
        selinux: host.selinux,
        kind: image.kind,
        door: door.dir(),
        workspace: None,
        git: None,
    }));
    args.push(OsString::from(&image.id));
    args.extend(["-ISc", SCRIPT].map(OsString::from));
    let finished = match podman.finish(None, args, PATIENCE).await {
        Ok(finished) => finished,
        Err(error) => {
            podman.remove_container(&name).await?;
            return Err(complaint::understood(podman, error));
        }
    };
    if finished.code != Some(0) {
        let status = finished.code.unwrap_or(-1);
        let stderr = finished.stderr_tail();
        let told = complaint::of(podman, &stderr);
        return Err(told.unwrap_or_else(|| fail(format!("status {status}: {stderr}"))));
    }
    lines(&finished.stdout, holding).map_err(fail)
}

/// Compares what was seen with what is wanted.
fn lines(stdout: &[u8], holding: Holding) -> Result<Vec<SealLine>, String> {
    let seen: BTreeMap<String, Option<String>> = serde_json::from_slice(stdout)
        .map_err(|error| format!("it printed something else than its report ({error})"))?;
    let line = |(property, wanted): (&str, &str)| {
        let seen = seen.get(property).cloned().flatten().unwrap_or_else(|| "nothing".to_owned());
        let holds = seen == wanted
            || (wanted == "refused" && seen.starts_with("refused: "))
            || (wanted == READ_ONLY && seen == READ_ONLY_BY_MOUNT);
        SealLine { property: property.to_owned(), wanted: wanted.to_owned(), seen, holds }
    };
    let stand_in: &[_] = match holding {
        Holding::Cgroups => &[],
        Holding::Rlimits => &STAND_IN_LINES,
    };
    Ok(LIMIT_LINES.iter().chain(&SEAL_LINES).chain(stand_in).copied().map(line).collect())
}

/// Whether a line is about a limit, which alone has a best effort.
pub fn is_limit(line: &SealLine) -> bool {
    LIMIT_LINES.iter().any(|(property, _)| *property == line.property)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_hold_only_when_the_probe_saw_what_is_wanted() {
        let stdout = br#"{"memory.max":"201326592","memory.swap.max":"max","pids.max":null,
            "cap_eff":"0000000000000000","vsock":"refused: EAFNOSUPPORT","user_namespace":"allowed"}"#;
        let lines = lines(stdout, Holding::Cgroups).expect("a report");
        let told: Vec<(&str, &str, bool)> = lines
            .iter()
            .filter(|line| {
                ["memory.max", "memory.swap.max", "pids.max", "cap_eff", "vsock", "user_namespace"]
                    .contains(&line.property.as_str())
            })
            .map(|line| (line.property.as_str(), line.seen.as_str(), line.holds))
            .collect();
        assert_eq!(
            told,
            [
                ("memory.max", "201326592", true),
                ("memory.swap.max", "max", false),
                ("pids.max", "nothing", false),
                ("cap_eff", "0000000000000000", true),
                ("vsock", "refused: EAFNOSUPPORT", true),
                ("user_namespace", "allowed", false),
            ]
        );
    }
}
