//! Every process of a storage is killed at once, and the runtime directory stays: what the end of a
//! session does on a host without systemd.

use std::path::{Path, PathBuf};

use fleet::sandbox::{Podman, Recipe, Sandbox, build, preflight, sweep};
use rustix::process::{Pid, Signal, kill_process};

use super::{ended, told};
use crate::env::sandbox::{Cell, config, containers, run_dir, wait_until};

/// The host's processes with one of these words in their command line.
fn processes_with(words: &[&str]) -> Vec<Pid> {
    let every = std::fs::read_dir("/proc").expect("/proc is listed").filter_map(Result::ok);
    let named = every.filter(|process| {
        std::fs::read(process.path().join("cmdline")).is_ok_and(|line| {
            let line = String::from_utf8_lossy(&line).into_owned();
            words.iter().any(|word| line.contains(word))
        })
    });
    let number = |path: PathBuf| path.file_name()?.to_str()?.parse().ok();
    named.filter_map(|process| number(process.path())).filter_map(Pid::from_raw).collect()
}

/// The process that holds the namespace of the storage whose run state lies there. Podman makes none
/// while a container's monitor holds it.
fn pause_process(run_dir: &Path) -> Option<Pid> {
    let number = std::fs::read_to_string(run_dir.join("tmp/pause.pid")).ok()?;
    number.trim().parse().ok().and_then(Pid::from_raw)
}

fn kill(process: Pid) {
    // It may have ended with its parent.
    let _ = kill_process(process, Signal::KILL);
}

#[tokio::test]
async fn podman_whose_processes_were_all_killed_works_again() {
    let mut cell = Cell::new().await;
    cell.config =
        fleet::config::Config { podman_root: cell.path("storage"), ..config(&cell.path("state")) };
    cell.podman = Podman::connect(&cell.config).expect("podman is usable");
    let say = |line: &str| eprintln!("{line}");
    build(&cell.podman, &cell.config, Recipe::Skeleton, &say).await.expect("skeleton is built");
    cell.seal = preflight(&cell.podman, &cell.config).await.expect("the seal holds");

    let lost = cell.start("run-lost").await;
    let storage = cell.config.podman_root.display().to_string();
    if let Some(pause) = pause_process(&run_dir(&cell.config.podman_root)) {
        kill(pause);
    }
    let own = [storage.as_str(), "fleet-run-lost-"];
    for process in processes_with(&own) {
        kill(process);
    }
    wait_until("its processes end", || processes_with(&own).is_empty()).await;
    drop(lost);

    let again = cell.start("run-again").await;
    assert_eq!(told(&again, "echo alive").await, ended(0, "alive\n"));
    again.close().await;
    sweep(&cell.podman, &|_| false).await.expect("what was killed is removed");
    assert_eq!(containers(&cell.podman, "run-lost").await, [""; 0]);
    cell.podman.remove_storage().await.expect("the storage is removed");
}
