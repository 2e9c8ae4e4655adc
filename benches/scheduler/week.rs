//! 10,000 tasks through a simulated week.

use std::time::Instant;

use jiff::{SignedDuration, Timestamp};

use crate::env::pretend::Pretend;
use crate::env::sandbox;
use crate::env::simulation::Simulation;
use crate::{block_on, bundle, line};

const TASKS: usize = 10_000;
const ROOM: u32 = 64;

/// Prints what an occurrence costs, from its row to its terminal row.
pub fn measure() {
    println!("a simulated week of {TASKS} tasks, each due daily, by a double that ends at once");
    let dir = tempfile::tempdir().expect("scratch directory");
    let tasks =
        (0..TASKS).map(|i| (format!("task-{i}"), format!("{} {} * * *", i % 60, i / 60 % 24)));
    bundle::make(&dir.path().join("bundle"), tasks);
    let (occurrences, took) = block_on(pass(dir.path()));
    let floor = floor(&dir.path().join("floor.db"), occurrences);
    let each = took.as_secs_f64() / occurrences as f64;
    line("floor: three commits of one row each", floor * 1e6, "us", "");
    line("fleet: an occurrence, row to terminal row", each * 1e6, "us", "");
    line("ratio", each / floor, "", "");
    line("occurrences", occurrences as f64, "", "");
    line("occurrences per second", 1.0 / each, "1/s", "");
    line("peak memory (VmHWM)", peak_mb(), "MB", "");
}

async fn pass(dir: &std::path::Path) -> (usize, std::time::Duration) {
    let mut config = sandbox::config(&dir.join("state"));
    config.max_concurrent_runs = ROOM;
    let start: Timestamp = "2026-03-23T00:00:30Z".parse().expect("an instant");
    let double = Pretend::success();
    let simulation = Simulation::pretend(&dir.join("bundle"), config, start, &double).await;
    let began = Instant::now();
    simulation.pass(start + SignedDuration::from_hours(7 * 24), &double).await;
    let took = began.elapsed();
    let totals = simulation.context.store.totals().await.expect("the totals");
    let successes = totals.runs_by_outcome.iter().map(|(_, runs)| *runs).sum::<u64>();
    let occurrences = usize::try_from(successes).expect("few");
    assert_eq!(occurrences, TASKS * 7, "every occurrence is recorded and has ended");
    simulation.end().await;
    (occurrences, took)
}

/// Seconds of three synchronous commits of a small row, which an occurrence has at least when nothing
/// is committed together: inserted, claimed, ended.
fn floor(path: &std::path::Path, occurrences: usize) -> f64 {
    let connection = rusqlite::Connection::open(path).expect("a database");
    connection.pragma_update(None, "journal_mode", "WAL").expect("a journal");
    connection.pragma_update(None, "synchronous", "FULL").expect("synchronous");
    connection.execute_batch("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)").expect("a table");
    let rounds = u32::try_from((occurrences / 20).min(2_000)).expect("few");
    let began = Instant::now();
    for round in 0..rounds {
        connection.execute("INSERT INTO t VALUES (?1, 'pending')", [round]).expect("a row");
        connection.execute("UPDATE t SET b = 'running' WHERE a = ?1", [round]).expect("a row");
        connection.execute("UPDATE t SET b = 'success' WHERE a = ?1", [round]).expect("a row");
    }
    began.elapsed().as_secs_f64() / f64::from(rounds)
}

fn peak_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("this process's status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("VmHWM");
    let kb: f64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kb / 1024.0
}
