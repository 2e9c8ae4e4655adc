//! The seal: every flag of `podman run` that stands between a run and the host, in one pure function.
//! Nothing else in fleet adds a flag to a container.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::image::ImageKind;
use super::runtime::Runtime;
use super::spec::{ContainerLimits, GitMounts};

/// Size of `/tmp` in MB, unless half of the memory limit is smaller.
const TMP_MB: u64 = 512;
const SHM_MB: u64 = 64;

/// Which limits the host's control groups hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holding {
    /// Every limit is a limit of the control group.
    Cgroups,
    /// Limits of each process stand in.
    Rlimits,
}

/// Everything that the seal depends on.
#[derive(Clone, Debug)]
pub(super) struct Seal<'a> {
    pub name: &'a str,
    /// `fleet.*` labels, in order.
    pub labels: &'a [(&'a str, &'a str)],
    pub uid: u32,
    pub gid: u32,
    pub seccomp: &'a Path,
    pub runtime: Runtime,
    pub limits: ContainerLimits,
    pub holding: Holding,
    pub selinux: bool,
    pub kind: ImageKind,
    /// Host directory with the socket, the token and the helper; `/fleet` inside.
    pub door: &'a Path,
    /// Absent for a probe.
    pub workspace: Option<&'a Path>,
    pub git: Option<&'a GitMounts>,
}

/// What Podman passes to the OCI runtime, before the verb.
pub(super) fn runtime_flags(flags: &[String]) -> Vec<OsString> {
    flags.iter().map(|flag| OsString::from(format!("--runtime-flag={flag}"))).collect()
}

/// The flags of `podman run`, without the image.
pub(super) fn seal_flags(seal: &Seal<'_>) -> Vec<OsString> {
    let mut flags = Flags::default();
    identity(seal, &mut flags);
    confinement(seal, &mut flags);
    limits(seal, &mut flags);
    environment(&mut flags);
    mounts(seal, &mut flags);
    flags.0
}

#[derive(Default)]
struct Flags(Vec<OsString>);

impl Flags {
    fn put(&mut self, flag: impl Into<OsString>) {
        self.0.push(flag.into());
    }

    /// `--volume HOST:INSIDE:OPTIONS`.
    fn volume(&mut self, host: &Path, inside: &Path, options: &[&std::ffi::OsStr]) {
        let mut flag = OsString::from("--volume=");
        flag.push(host);
        flag.push(":");
        flag.push(inside);
        flag.push(":");
        for option in options {
            flag.push(option);
        }
        self.put(flag);
    }
}

fn identity(seal: &Seal<'_>, flags: &mut Flags) {
    flags.put(format!("--name={}", seal.name));
    for (label, value) in seal.labels {
        flags.put(format!("--label={label}={value}"));
    }
    // An image is built or imported before; a run never asks a registry.
    flags.put("--pull=never");
    flags.put("--log-driver=none");
    flags.put("--no-healthcheck");
    flags.put("--sdnotify=ignore");
    flags.put("--image-volume=ignore");
}

fn confinement(seal: &Seal<'_>, flags: &mut Flags) {
    for flag in [
        "--network=none",
        "--no-hosts",
        "--hostname=sandbox",
        "--read-only",
        // Podman's own tmpfs would each be half of the host's memory.
        "--read-only-tmpfs=false",
        "--cap-drop=ALL",
        "--security-opt=no-new-privileges",
    ] {
        flags.put(flag);
    }
    let mut seccomp = OsString::from("--security-opt=seccomp=");
    seccomp.push(seal.seccomp);
    flags.put(seccomp);
    if seal.selinux {
        // Relabelling would change the user's repository.
        flags.put("--security-opt=label=disable");
    }
    flags.put("--userns=keep-id");
    flags.put(format!("--user={}:{}", seal.uid, seal.gid));
}

fn limits(seal: &Seal<'_>, flags: &mut Flags) {
    let ContainerLimits { memory_mb, cpus, pids, disk_mb, nofile } = seal.limits;
    // What lies there counts against memory: full, it must leave room for the helper, which the kernel
    // would end else.
    let shm = SHM_MB.min(memory_mb / 8);
    // Named, and not left to --shm-size: with a read-only root, Podman 5 makes its own one read-only, and
    // Python's processes have no semaphores.
    flags.put(format!("--tmpfs=/dev/shm:rw,size={shm}m,mode=1777,nosuid,nodev,noexec"));
    let tmp = TMP_MB.min(memory_mb / 2);
    flags.put(format!("--tmpfs=/tmp:rw,size={tmp}m,mode=1777,nosuid,nodev"));
    flags.put("--ulimit=core=0:0");
    flags.put(format!("--ulimit=nofile={nofile}:{nofile}"));
    let largest = disk_mb.saturating_mul(1024 * 1024);
    flags.put(format!("--ulimit=fsize={largest}:{largest}"));
    if seal.holding == Holding::Cgroups || seal.runtime.is_machine() {
        // A machine gets its size from them, whatever the control groups hold.
        let memory_mb = memory_mb.saturating_add(seal.runtime.overhead_mb());
        flags.put(format!("--memory={memory_mb}m"));
        flags.put(format!("--memory-swap={memory_mb}m"));
        flags.put(format!("--pids-limit={pids}"));
        flags.put(format!("--cpus={cpus}"));
    }
    match seal.holding {
        Holding::Cgroups => {}
        Holding::Rlimits => {
            let data = memory_mb.saturating_mul(1024 * 1024);
            flags.put(format!("--ulimit=data={data}:{data}"));
            flags.put(format!("--ulimit=nproc={pids}:{pids}"));
        }
    }
}

/// Nothing of the host's environment: no proxy variable either, which Podman passes by default.
fn environment(flags: &mut Flags) {
    flags.put("--http-proxy=false");
    for (name, value) in [
        ("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"),
        ("HOME", "/tmp"),
        ("LANG", "C.UTF-8"),
        ("TERM", "dumb"),
    ] {
        flags.put(format!("--env={name}={value}"));
    }
}

fn mounts(seal: &Seal<'_>, flags: &mut Flags) {
    let ro = std::ffi::OsStr::new("ro");
    if seal.kind == ImageKind::Skeleton {
        flags.volume(Path::new("/usr"), Path::new("/usr"), &[ro]);
    }
    flags.volume(seal.door, Path::new("/fleet"), &[ro]);
    if let Some(git) = seal.git {
        let upper = ["O,upperdir=".as_ref(), git.upper.as_os_str(), ",workdir=".as_ref()];
        let options = [upper[0], upper[1], upper[2], git.work.as_os_str()];
        flags.volume(&git.git_dir, &git.git_dir, &options);
    }
    if let Some(workspace) = seal.workspace {
        flags.volume(workspace, workspace, &["rw,nosuid,nodev".as_ref()]);
        flags.put(joined("--workdir=", workspace));
    }
    // After the workspace: its pointer file is covered too. Podman mounts parents first.
    for (host, inside) in seal.git.iter().flat_map(|git| &git.masks) {
        flags.volume(host, inside, &[ro]);
    }
    flags.put("--entrypoint=python3");
}

fn joined(flag: &str, path: &Path) -> OsString {
    let mut text = OsString::from(flag);
    text.push(path);
    text
}

/// Every path that ends in a mount option.
pub(super) fn mount_paths(workspace: &Path, git: Option<&GitMounts>) -> Vec<PathBuf> {
    let mut paths = vec![workspace.to_owned()];
    if let Some(git) = git {
        paths.extend([git.git_dir.clone(), git.upper.clone(), git.work.clone()]);
        paths.extend(git.masks.iter().flat_map(|(host, inside)| [host.clone(), inside.clone()]));
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: ContainerLimits =
        ContainerLimits { memory_mb: 2048, cpus: 1.5, pids: 256, disk_mb: 1024, nofile: 1024 };

    fn flags(holding: Holding, kind: ImageKind, git: Option<&GitMounts>) -> String {
        flags_of(Runtime::Crun, holding, kind, git)
    }

    fn flags_of(
        runtime: Runtime,
        holding: Holding,
        kind: ImageKind,
        git: Option<&GitMounts>,
    ) -> String {
        let seal = Seal {
            name: "fleet-run1-ab12",
            labels: &[("fleet.run", "run1"), ("fleet.task", "report")],
            uid: 1001,
            gid: 1002,
            seccomp: Path::new("/state/sandbox/seccomp.json"),
            runtime,
            limits: LIMITS,
            holding,
            selinux: kind == ImageKind::Skeleton,
            kind,
            door: Path::new("/run/user/1001/fleet/12345678/abcd"),
            workspace: Some(Path::new("/repo/.fleet-worktrees/report-run1")),
            git,
        };
        let flags = seal_flags(&seal);
        flags.iter().map(|flag| flag.to_string_lossy()).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn every_flag_of_an_enforced_run_over_a_repository() {
        let git = GitMounts {
            git_dir: "/repo/.git".into(),
            upper: "/state/runs/run1-1/upper".into(),
            work: "/state/runs/run1-1/work".into(),
            masks: vec![
                ("/state/runs/run1-1/shield/config".into(), "/repo/.git/config".into()),
                ("/state/runs/run1-1/shield/empty.d".into(), "/repo/.git/hooks".into()),
                (
                    "/repo/.fleet-worktrees/report-run1/.git".into(),
                    "/repo/.fleet-worktrees/report-run1/.git".into(),
                ),
            ],
        };
        insta::assert_snapshot!(flags(Holding::Cgroups, ImageKind::Complete, Some(&git)));
    }

    #[test]
    fn only_the_limits_of_a_machine_differ_from_those_of_a_container() {
        let of = |runtime, holding| {
            let all = flags_of(runtime, holding, ImageKind::Complete, None);
            all.lines().map(str::to_owned).collect::<std::collections::BTreeSet<_>>()
        };
        let more = |runtime, holding| {
            let (here, there) = (of(runtime, holding), of(Runtime::Crun, holding));
            assert_eq!(there.difference(&here).filter(|flag| !flag.contains("memory")).count(), 0);
            here.difference(&there).cloned().collect::<Vec<_>>()
        };
        assert_eq!(more(Runtime::Runsc, Holding::Rlimits), Vec::<String>::new());
        assert_eq!(more(Runtime::Libkrun, Holding::Cgroups), Vec::<String>::new());
        // The cap of 2048 MB stays usable inside.
        assert_eq!(
            more(Runtime::Kata, Holding::Cgroups),
            ["--memory-swap=2208m", "--memory=2208m"]
        );
        assert_eq!(
            more(Runtime::Kata, Holding::Rlimits),
            ["--cpus=1.5", "--memory-swap=2208m", "--memory=2208m", "--pids-limit=256"]
        );
        let flags = ["ignore-cgroups".to_owned(), "network=none".to_owned()];
        assert_eq!(
            runtime_flags(&flags),
            ["--runtime-flag=ignore-cgroups", "--runtime-flag=network=none"]
        );
    }

    #[test]
    fn every_flag_of_a_best_effort_run_in_a_skeleton() {
        insta::assert_snapshot!(flags(Holding::Rlimits, ImageKind::Skeleton, None));
    }
}
