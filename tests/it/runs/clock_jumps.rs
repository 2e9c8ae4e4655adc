//! A wall clock that jumps, and a daemon that was away: nothing lost, nothing twice.

use std::collections::BTreeMap;
use std::time::Duration;

use fleet::run::RunState;
use fleet::store::{RunFilter, RunRow};
use jiff::{SignedDuration, Timestamp};

use crate::env::simulation::Simulation;
use crate::env::world::World;

/// Runs at once.
const QUICK: &str = "turns:\n  - text: Done.\n";
/// Is under way until the file `go` lies in its workspace.
const LONG: &str = "turns:
  - tool_calls:
      - {name: bash, arguments: {command: 'until test -e go; do sleep 0.05; done'}}
  - text: Done.
";

fn world(schedule: &str, script: &str) -> World {
    let task = format!("schedule: '{schedule}'\nprompt: Go.\ncompletion: {{shell: 'true'}}\n");
    World::new(&[("tasks/t.yaml", &task), ("scripted/t.yaml", script)])
}

fn at(text: &str) -> Timestamp {
    text.parse().expect("an instant")
}

fn all_ended(runs: &[RunRow]) -> bool {
    runs.iter().all(|run| run.state.is_terminal())
}

/// Due instants and states, in order; each instant once.
fn rows(runs: &[RunRow]) -> BTreeMap<String, RunState> {
    let rows: BTreeMap<_, _> = runs.iter().map(|run| (run.due.to_string(), run.state)).collect();
    assert_eq!(rows.len(), runs.len(), "an instant has two rows: {runs:#?}");
    rows
}

fn expected<const N: usize>(rows: [(&str, RunState); N]) -> BTreeMap<String, RunState> {
    rows.into_iter().map(|(due, state)| (format!("2026-07-01T{due}:00Z"), state)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn machine_that_is_suspended_for_an_hour_keeps_its_run_and_records_what_it_missed() {
    let world = world("*/10 * * * *", LONG);
    let simulation = Simulation::start(&world, "2026-07-01T00:09:00Z").await;
    simulation.clock.set(at("2026-07-01T00:10:00Z"));
    let begun = simulation.runs(|runs| runs.iter().any(|run| run.bundle_commit.is_some())).await;
    let store = &simulation.context.store;
    let whole = store.run_detail(begun[0].run_id.clone()).await.expect("the run");
    let worktree = whole.attempt_list[0].worktree.clone().expect("a worktree");

    simulation.clock.jump(SignedDuration::from_hours(1));
    simulation.runs(|runs| runs.len() == 7).await;
    std::fs::write(std::path::Path::new(&worktree).join("go"), "").expect("the file is written");
    let runs = simulation.runs(|runs| runs.len() == 7 && all_ended(runs)).await;
    use RunState::{Skipped, Success};
    assert_eq!(
        rows(&runs),
        expected([
            ("00:10", Success),
            ("00:20", Skipped),
            ("00:30", Skipped),
            ("00:40", Skipped),
            ("00:50", Skipped),
            ("01:00", Skipped),
            ("01:10", Skipped),
        ])
    );
    let kept = runs.iter().find(|run| run.state == Success).expect("it ended well");
    assert_eq!(kept.attempts, 1, "its lease and its holder outlived the suspension");
    simulation.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clock_that_is_put_back_an_hour_repeats_no_run_and_holds_none_up() {
    let world = world("*/10 * * * *", QUICK);
    let simulation = Simulation::start(&world, "2026-07-01T01:09:00Z").await;
    simulation.clock.set(at("2026-07-01T01:10:00Z"));
    simulation.runs(|runs| runs.len() == 1 && all_ended(runs)).await;

    simulation.clock.jump(SignedDuration::from_hours(-1));
    // The loop goes on: it does not wait for the clock to come back.
    let mut look_again = tokio::time::interval(Duration::from_millis(10));
    let seen = simulation.heartbeat.last();
    while simulation.heartbeat.last() == seen {
        simulation.clock.advance(Duration::from_secs(1));
        look_again.tick().await;
    }
    assert!(simulation.heartbeat.last() < Some(at("2026-07-01T01:00:00Z")));

    // Through the hour that is there twice, and on to the next instant. What the daemon was not there
    // for the first time was missed now; what ran has its row.
    simulation.clock.set(at("2026-07-01T01:15:00Z"));
    simulation.clock.set(at("2026-07-01T01:20:00Z"));
    let mut runs = simulation.runs(|runs| runs.len() == 7 && all_ended(runs)).await;
    use RunState::{Skipped, Success};
    assert_eq!(
        rows(&runs),
        expected([
            ("00:20", Skipped),
            ("00:30", Skipped),
            ("00:40", Skipped),
            ("00:50", Skipped),
            ("01:00", Skipped),
            ("01:10", Success),
            ("01:20", Success),
        ])
    );
    runs.retain(|run| run.state == Success);
    assert!(runs.iter().all(|run| run.attempts == 1), "{runs:#?}");
    simulation.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn due_runs_start_within_a_minute_after_the_wall_clock_jumped_42_minutes() {
    let world = world("0 6 * * *", QUICK);
    let simulation = Simulation::start(&world, "2026-07-01T05:20:00Z").await;
    simulation.clock.jump(SignedDuration::from_mins(42));
    let runs = simulation.runs(|runs| runs.len() == 1 && all_ended(runs)).await;
    assert_eq!(rows(&runs), expected([("06:00", RunState::Success)]));
    let waited = runs[0].started_at.expect("it began").duration_since(at("2026-07-01T06:02:00Z"));
    assert!(waited < SignedDuration::from_mins(1), "{waited}");
    simulation.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn minute_task_whose_daemon_was_off_for_three_hours_catches_up_once_and_goes_on() {
    let world = world("* * * * *", QUICK);
    let simulation = Simulation::start(&world, "2026-07-01T00:00:30Z").await;
    simulation.end().await;

    let simulation = Simulation::start(&world, "2026-07-01T03:00:30Z").await;
    let succeeded = |runs: &[RunRow], number: usize| {
        let done = runs.iter().filter(|run| run.state == RunState::Success).count();
        done == number && all_ended(runs)
    };
    simulation.runs(|runs| succeeded(runs, 1)).await;
    simulation.clock.set(at("2026-07-01T03:01:00Z"));
    simulation.runs(|runs| succeeded(runs, 2)).await;

    let filter = RunFilter { limit: 1000, ..RunFilter::default() };
    let runs = simulation.context.store.runs(filter).await.expect("the runs");
    let rows = rows(&runs);
    assert_eq!(rows.len(), 181, "a row for each minute");
    let ran: Vec<&String> =
        rows.iter().filter(|(_, state)| **state == RunState::Success).map(|(due, _)| due).collect();
    assert_eq!(ran, ["2026-07-01T03:00:00Z", "2026-07-01T03:01:00Z"]);
    simulation.end().await;
}
