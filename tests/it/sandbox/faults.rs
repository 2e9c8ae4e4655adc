//! A Podman that is dead, hangs or is killed, a full disk, an image that went: each is told in time,
//! and nothing is left.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use fleet::sandbox::{Podman, PodmanSandbox, Sandbox, StartError, Surroundings};

use super::life::{doors, is_running};
use super::{ended, told};
use crate::env::sandbox::{Cell, containers, podman_command, wait_until};

/// Finds the verb and hands it to `answer`; what that leaves goes to the real Podman.
const WRAPPER: &str = r#"#!/bin/sh
verb_of() { while [ $# -gt 0 ]; do case $1 in --*=*) shift ;; --*) shift 2 ;; *) echo "$1"; return ;; esac; done; }
verb=$(verb_of "$@")
ANSWER
exec REAL "$@"
"#;

/// fleet's Podman over the suite's storage, with a program before it that answers as `answer` says.
fn podman_that(cell: &Cell, answer: &str, patience: Duration) -> Podman {
    let mut around = Surroundings::real();
    let real = std::env::split_paths(&around.path)
        .map(|dir| dir.join("podman"))
        .find(|program| program.exists())
        .expect("podman is installed");
    let bin = cell.path("bin");
    std::fs::create_dir_all(&bin).expect("directory");
    let text = WRAPPER.replace("REAL", &real.display().to_string()).replace("ANSWER", answer);
    let program = bin.join("podman");
    // Never written in place: a process that was just forked may still hold it open.
    std::fs::write(bin.join("new"), text).expect("file");
    std::fs::set_permissions(bin.join("new"), std::fs::Permissions::from_mode(0o755))
        .expect("mode");
    std::fs::rename(bin.join("new"), &program).expect("renamed");
    let mut path = bin.into_os_string();
    path.push(":");
    path.push(&around.path);
    around.path = path;
    around.patience = patience;
    Podman::connect_in(&cell.config, around).expect("podman is found")
}

async fn failure(cell: &Cell, podman: &Podman, run: &str) -> StartError {
    let started = PodmanSandbox::start(podman, &cell.seal, cell.spec(run)).await;
    started.err().expect("it does not start")
}

/// Nothing of a run is left: no container, no door, no process, nothing in the storage.
async fn nothing_is_left(cell: &Cell, run: &str) {
    assert_eq!(containers(&cell.podman, run).await, [""; 0]);
    assert_eq!(doors(cell), [""; 0]);
    let mut external = podman_command(&cell.seal.runtime);
    external.args(["ps", "--all", "--external", "--format", "{{.Names}}"]);
    let names = external.output().expect("podman runs").stdout;
    let names = String::from_utf8_lossy(&names).into_owned();
    let prefix = format!("fleet-{run}-");
    assert!(!names.lines().any(|name| name.starts_with(&prefix)), "{names}");
    wait_until("its processes end", || !is_running(&prefix)).await;
}

#[tokio::test]
async fn dead_podman_is_told_as_it_says_it() {
    let cell = Cell::new().await;
    cell.start("run-before").await.close().await;
    let answer = "echo 'Error: something is broken' >&2; exit 125";
    let podman = podman_that(&cell, answer, Duration::from_secs(30));
    let error = failure(&cell, &podman, "run-dead").await;
    let want = "podman image inspect failed (status 125): Error: something is broken";
    assert_eq!((error.message.as_str(), error.transient), (want, true));
    nothing_is_left(&cell, "run-dead").await;
}

#[tokio::test]
async fn hung_podman_is_killed_in_time_whichever_verb_hangs() {
    let cell = Cell::new().await;
    let patience = Duration::from_secs(2);
    let hanging = |verbs: &str| format!("case $verb in {verbs}) exec sleep 600 ;; esac");
    let told_of = |verb: &str| format!("podman {verb}: it took longer than 2 s and was killed");
    let began = Instant::now();
    let podman = podman_that(&cell, &hanging("run"), patience);
    let error = failure(&cell, &podman, "run-hung").await;
    assert_eq!((error.message.as_str(), error.transient), (told_of("run").as_str(), true));
    let podman = podman_that(&cell, &hanging("run|rm|container"), patience);
    let error = failure(&cell, &podman, "run-hung").await;
    let want = format!("{} ({})", told_of("run"), told_of("container"));
    assert_eq!((error.message.as_str(), error.transient), (want.as_str(), true));
    assert!(began.elapsed() < Duration::from_secs(30), "took {:?}", began.elapsed());
    nothing_is_left(&cell, "run-hung").await;
}

#[tokio::test]
async fn sandbox_ends_although_podman_hangs_when_it_is_removed() {
    let cell = Cell::new().await;
    let answer = "case $verb in rm|container) exec sleep 600 ;; esac";
    let podman = podman_that(&cell, answer, Duration::from_secs(2));
    let sandbox = PodmanSandbox::start(&podman, &cell.seal, cell.spec("run-stuck")).await;
    let sandbox = sandbox.expect("it starts");
    assert_eq!(told(&sandbox, "echo alive").await, ended(0, "alive\n"));
    let began = Instant::now();
    sandbox.close().await;
    assert!(began.elapsed() < Duration::from_secs(20), "took {:?}", began.elapsed());
    // Its helper ended with its connection; what is left of its door goes with the handle.
    drop(sandbox);
    let until = Instant::now() + Duration::from_secs(10);
    while !containers(&cell.podman, "run-stuck").await.is_empty() {
        assert!(Instant::now() < until, "the container is still there");
    }
    nothing_is_left(&cell, "run-stuck").await;
}

#[tokio::test]
async fn podman_that_is_killed_while_it_starts_a_container_leaves_nothing() {
    let cell = Cell::new().await;
    for millis in ["010", "030", "060", "080", "090", "100", "110", "120", "160"] {
        let answer = format!("[ $verb = run ] && {{ (sleep 0.{millis}; kill -9 0) & }}");
        let podman = podman_that(&cell, &answer, Duration::from_secs(30));
        let run = format!("run-killed-{millis}");
        match PodmanSandbox::start(&podman, &cell.seal, cell.spec(&run)).await {
            Ok(sandbox) => sandbox.close().await,
            Err(error) => {
                assert!(error.transient, "{error:?}");
                assert_eq!(error.message, "podman run failed (status -1): ");
            }
        }
        nothing_is_left(&cell, &run).await;
    }
}

#[tokio::test]
async fn full_disk_is_told_with_the_way_out() {
    let cell = Cell::new().await;
    let recorded = "Error: creating container storage: creating read-write layer with ID \"8f3a\": \
                    mkdir /storage/overlay/8f3a/work: no space left on device";
    let answer = format!("[ $verb = run ] && {{ echo '{recorded}' >&2; exit 125; }}");
    let podman = podman_that(&cell, &answer, Duration::from_secs(30));
    let error = failure(&cell, &podman, "run-full").await;
    let root = cell.config.podman_root.display();
    let reason = recorded.trim_start_matches("Error: ");
    let want = format!("the disk of {root} is full ({reason}): make room, then try again");
    assert_eq!((error.message, error.transient), (want, true));
    nothing_is_left(&cell, "run-full").await;
}

#[tokio::test]
async fn image_that_was_removed_after_the_preflight_is_told_and_not_tried_again() {
    let cell = Cell::new().await;
    let image = format!("localhost/fleet-tests:goes-{}", std::process::id());
    let podman = |args: &[&str]| {
        let output = podman_command(&cell.seal.runtime).args(args).output().expect("podman runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let file = cell.path("Containerfile");
    let text = format!("FROM {}\nLABEL goes={}\n", cell.config.image, std::process::id());
    std::fs::write(&file, text).expect("file");
    podman(&["build", "--quiet", "--tag", &image, "--file", &file.display().to_string()]);
    let mut spec = cell.spec("run-image");
    spec.image = image.clone();
    cell.start_spec(spec.clone()).await.close().await;
    podman(&["image", "rm", &image]);
    let error = PodmanSandbox::start(&cell.podman, &cell.seal, spec).await.err().expect("refused");
    let want = format!("there is no sandbox image {image}: run `fleet sandbox build`");
    assert!(error.message.ends_with(&want), "{error:?}");
    assert!(!error.transient);
    nothing_is_left(&cell, "run-image").await;
}
