//! How often a run waits for the disk: `fsync` and `fdatasync`, counted by strace in a process that
//! carries out runs with a double.

use std::process::Command;
use std::time::{Duration, Instant};

use fleet::run::Outcome;
use jiff::{SignedDuration, Timestamp};

use crate::env::pretend::{Course, Pretend};
use crate::env::sandbox;
use crate::env::simulation::Simulation;
use crate::{block_on, bundle, line};

/// The part that the counted process does.
pub const RUNS_ALONE: &str = "runs-alone";
const RUNS: i64 = 300;

/// Prints the synchronous writes of a run and what part of its time they are.
pub fn measure() {
    println!("{RUNS} runs, one after another, each a minute after the last, by a double");
    let this = std::env::current_exe().expect("this program");
    let dir = tempfile::tempdir().expect("scratch directory");
    let counts = dir.path().join("counts");
    let strace = Command::new("strace")
        .args(["-f", "-c", "-w", "-e", "trace=fsync,fdatasync", "-o"])
        .arg(&counts)
        .arg(this)
        .arg(RUNS_ALONE)
        .output();
    let output = match strace {
        Ok(output) if output.status.success() => output,
        _ => return println!("not measured: strace is missing or may not trace"),
    };
    let took: f64 = String::from_utf8_lossy(&output.stdout).trim().parse().expect("seconds");
    let counts = std::fs::read_to_string(&counts).expect("strace counted");
    let (mut calls, mut seconds) = (0.0, 0.0);
    for row in counts.lines().filter(|row| row.ends_with("sync")) {
        let fields: Vec<&str> = row.split_whitespace().collect();
        seconds += fields[1].parse::<f64>().expect("seconds");
        calls += fields[3].parse::<f64>().expect("calls");
    }
    line("synchronous writes per run", calls / RUNS as f64, "", "");
    line("of each", seconds / calls * 1e6, "us", "");
    line("share of the time from due to terminal row", 100.0 * seconds / took, "%", "");
}

/// Carries the runs out and prints the seconds.
pub fn runs_alone() {
    let dir = tempfile::tempdir().expect("scratch directory");
    bundle::make(
        &dir.path().join("bundle"),
        [("task".to_owned(), "* * * * *".to_owned())].into_iter(),
    );
    let took = block_on(async {
        let start: Timestamp = "2026-03-23T00:00:30Z".parse().expect("an instant");
        let config = sandbox::config(&dir.path().join("state"));
        let double = Pretend::new(|_| Course { lasts: Duration::ZERO, ends: Outcome::success() });
        let bundle = dir.path().join("bundle");
        let simulation = Simulation::pretend(&bundle, config, start, &double).await;
        let began = Instant::now();
        simulation.pass(start + SignedDuration::from_mins(RUNS), &double).await;
        let took = began.elapsed();
        simulation.end().await;
        took
    });
    println!("{}", took.as_secs_f64());
}
