//! Each OCI runtime that is installed really runs a sandbox: bash, Python, files, commits' packing.

use super::{ended, told};
use crate::env::sandbox::{Cell, config, image};
use fleet::config::Config;
use fleet::sandbox::{Podman, PreflightError, Sandbox, preflight};

/// What a run does, under one runtime.
async fn works(cell: &Cell, run_id: &str) {
    let sandbox = cell.start(run_id).await;
    assert_eq!(told(&sandbox, "echo hello > note; cat note; id -u").await.0, Some(0));
    let python = "python3 -c 'import threading, subprocess; t = threading.Thread(target=print, \
                  args=(6 * 7,)); t.start(); t.join(); print(subprocess.run([\"true\"]).returncode)'";
    assert_eq!(told(&sandbox, python).await, ended(0, "42\n0\n"));
    let note = std::fs::read_to_string(cell.path("ws/note")).expect("the host sees the file");
    assert_eq!(note, "hello\n");
    let refused = "python3 - <<'END'\nimport socket\ntry:\n    socket.create_connection(('192.0.2.1', 80), 2)\n\
                   except OSError as error:\n    print('refused')\nEND\ntouch /etc/x 2>/dev/null || echo refused";
    assert_eq!(told(&sandbox, refused).await, ended(0, "refused\nrefused\n"));
    sandbox.close().await;
    assert_eq!(crate::env::sandbox::containers(&cell.podman, run_id).await, Vec::<String>::new());
}

#[tokio::test]
async fn runc_runs_a_sandbox() {
    let cell = Cell::of_runtime("runc").await;
    works(&cell, "run-runc").await;
}

#[tokio::test]
async fn gvisor_runs_a_sandbox_with_the_whole_seal_and_without_limits() {
    let cell = Cell::of_runtime("runsc").await;
    let seal = &cell.seal;
    assert_eq!((seal.limits.as_str(), seal.runtime.as_str()), ("best_effort", "runsc"));
    let seccomp = seal.lines.iter().find(|line| line.property == "seccomp").expect("a line");
    assert_eq!((seccomp.seen.as_str(), seccomp.holds), ("2", true));
    works(&cell, "run-runsc").await;
    let strict = Config { limits: fleet::config::LimitsMode::Enforced, ..cell.config.clone() };
    let refused = preflight(&cell.podman, &strict).await.expect_err("no limit holds");
    assert_eq!(refused.code(), "limits-runsc");
}

/// crun runs on one tree of cgroups, and says so itself where there are two.
#[tokio::test]
async fn crun_runs_a_sandbox_or_its_own_refusal_is_told() {
    let dir = tempfile::tempdir().expect("scratch directory");
    let good = config(&dir.path().join("state"));
    let podman = Podman::connect(&good).expect("podman is usable");
    image(&podman, &good).await;
    let crun = Config { runtime: Some("crun".into()), ..good };
    let podman = Podman::connect(&crun).expect("podman is usable");
    let mounts = std::fs::read_to_string("/proc/mounts").expect("mounts");
    let kinds: Vec<&str> = mounts.lines().filter_map(|line| line.split(' ').nth(2)).collect();
    if kinds.contains(&"cgroup") && kinds.contains(&"cgroup2") {
        let refused = preflight(&podman, &crun).await.expect_err("crun refuses");
        assert!(matches!(refused, PreflightError::CrunOnHybrid), "{refused}");
    } else {
        works(&Cell::of_runtime("crun").await, "run-crun").await;
    }
}
