//! The table of refusals in `docs/hosts.md`: one of each, as it is printed.

use super::error::{LimitsCause, PodmanError, PreflightError as Refusal};

/// One of each refusal, with example values, in the order of the page.
pub fn refusals() -> Vec<Refusal> {
    let text = str::to_owned;
    let root = || text("~/.local/state/fleet/podman");
    let user = || text("fleet");
    let limits = |cause| Refusal::Limits { limits: text("memory, pids, cpus"), cause };
    vec![
        Refusal::Root,
        Refusal::NoHome,
        Refusal::NoPodman,
        Refusal::TooOld { version: text("4.2.0") },
        Refusal::NotRootless,
        Refusal::RuntimeDir {
            problem: text("the runtime directory /run/user/1001 does not exist"),
            user: user(),
        },
        Refusal::UserNamespacesOff { setting: "user.max_user_namespaces=0" },
        Refusal::AppArmor {
            program: text("/usr/local/bin/podman"),
            reason: text("newuidmap: write to uid_map failed: Operation not permitted"),
        },
        Refusal::IdMapper {
            reason: text("exec: \"newuidmap\": executable file not found in $PATH"),
        },
        Refusal::NoSubordinateIds { user: user() },
        Refusal::Storage { driver: text("vfs"), root: root() },
        Refusal::StorageMoved { root: root(), reason: text("database configuration mismatch") },
        Refusal::NoOverlay {
            root: root(),
            reason: text("backing file system is unsupported for this graph driver"),
        },
        Refusal::DiskFull { root: root(), reason: text("no space left on device") },
        Refusal::Path("/srv/a:b/podman".into()),
        Refusal::Runtime { runtime: text("crun"), reason: text("it is not on PATH") },
        Refusal::RuntimeBuild {
            runtime: "libkrun",
            reason: text("`krun --version` does not list +LIBKRUN"),
            wanted: "the package crun-krun (Fedora), or a crun built with --with-libkrun as krun",
        },
        Refusal::NoKvm {
            runtime: "kata",
            reason: text("/dev/kvm: No such file or directory"),
            user: user(),
        },
        Refusal::NoSocket { runtime: text("kata"), seen: text("refused: ECONNREFUSED") },
        Refusal::CrunOnHybrid,
        Refusal::CgroupsDisabled { runtime: text("runc") },
        Refusal::NoSwapLimit,
        Refusal::HardLimit { reason: text("setrlimit `RLIMIT_NOFILE`: Operation not permitted") },
        limits(LimitsCause::Hybrid),
        limits(LimitsCause::Legacy),
        limits(LimitsCause::NoUserManager),
        limits(LimitsCause::NotDelegated),
        limits(LimitsCause::Gvisor),
        Refusal::NoSeccomp,
        Refusal::SeccompProfile {
            path: text("/usr/share/containers/seccomp.json"),
            reason: text("No such file or directory (os error 2)"),
        },
        Refusal::ImageMissing { image: text("localhost/fleet-sandbox:latest") },
        Refusal::Seal { broken: text("seccomp is \"0\" instead of \"2\"") },
        Refusal::Probe { reason: text("status 125: Error: …") },
        Refusal::Hung { verb: text("info"), seconds: 60, user: user() },
        Refusal::Garbage {
            verb: text("info"),
            reason: text("expected value at line 1 column 1"),
            program: text("/usr/local/bin/podman"),
        },
        Refusal::Info { field: "host.security.rootless" },
        Refusal::Podman(PodmanError::Failed {
            verb: text("info"),
            status: 125,
            stderr: text("Error: …"),
        }),
        Refusal::Files {
            verb: "make",
            path: text("/run/user/1001/fleet"),
            source: std::io::ErrorKind::PermissionDenied.into(),
        },
        Refusal::Random(text("…")),
    ]
}

/// The table of `docs/hosts.md`.
pub fn refusals_table() -> String {
    let mut table = "| code | what it says, with the way out |\n|---|---|\n".to_owned();
    for refusal in refusals() {
        let line = refusal.to_string().replace('\n', " ").replace("\\n", " ");
        table.push_str(&format!("| `{}` | {line} |\n", refusal.code()));
    }
    table
}
