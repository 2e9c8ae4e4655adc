//! What is too old goes, and nothing else.

use std::path::Path;
use std::time::{Duration, SystemTime};

use fleet::run::{OutcomeClass, RunId, RunState, TaskName};
use fleet::secrets::Redactor;
use fleet::store::{ReplayTarget, RetentionCursor, RetentionRule, RunFilter, Store};
use jiff::{SignedDuration, Timestamp};

use crate::env::simulation::Simulation;
use crate::env::world::World;
use crate::store::bench::{Bench, finish, now, run_id};

/// Runs that ended long ago, an hour apart, with an attempt, a log and an artifact each.
struct Past<'a> {
    task: &'a str,
    count: u32,
    state: &'a str,
    /// The first one's due instant.
    from: &'a str,
}

impl Past<'_> {
    /// Writes them; their ids are the task's name and a number of four digits.
    fn write(&self, database: &Path) {
        let from: Timestamp = self.from.parse().expect("an instant");
        let from = i64::try_from(from.as_nanosecond()).expect("fits");
        let connection = rusqlite::Connection::open(database).expect("opens");
        connection
            .execute(
                "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?2)
                 INSERT INTO runs (run_id, task, due, cause, state, tags, attempts, started_at,
                    finished_at, last_seq, dead_lettered_at, dead_letter_reason)
                 SELECT printf('%s%04d', ?1, i), ?1, ?4 + i * 3600000000000, 'schedule', ?3, '[]', 1,
                    ?4 + i * 3600000000000, ?4 + i * 3600000000000 + 1, 3, ?4, 'x' FROM n",
                rusqlite::params![self.task, self.count, self.state, from],
            )
            .expect("runs");
        connection
            .execute_batch(&format!(
                "INSERT INTO attempts (run_id, attempt, started_at)
                    SELECT run_id, 1, due FROM runs WHERE task = '{0}';
                 INSERT INTO events (run_id, seq, attempt, body)
                    SELECT run_id, seq.value, 1, '{{}}' FROM runs, json_each('[1, 2, 3]') AS seq
                    WHERE task = '{0}';
                 INSERT INTO artifacts (run_id, number, attempt, name, path, size)
                    SELECT run_id, 1, 1, 'a', 'a', 1 FROM runs WHERE task = '{0}';",
                self.task
            ))
            .expect("what belongs to them");
    }
}

fn count(database: &Path, table: &str) -> u32 {
    let connection = rusqlite::Connection::open(database).expect("opens");
    let sql = format!("SELECT count(*) FROM {table}");
    connection.query_row(&sql, [], |row| row.get(0)).expect("counts")
}

fn publish(artifacts: &Path, run: &str, made: Timestamp) {
    let dir = artifacts.join(run);
    std::fs::create_dir_all(dir.join("1")).expect("made");
    std::fs::write(dir.join("1/1"), "x").expect("written");
    let dir = std::fs::File::open(dir).expect("opens");
    dir.set_modified(SystemTime::from(made)).expect("an age");
}

const TASKS: &[(&str, &str)] = &[
    ("tasks/busy.yaml", "prompt: Go.\nschedule: '@hourly'\ncompletion: {shell: 'true'}\n"),
    ("scripted/busy.yaml", "turns:\n  - text: Done.\n"),
];

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_old_runs_go_with_their_files_and_none_of_their_occurrences_runs_again() {
    let world = World::new(TASKS);
    let database = world.state().join("fleet.db");
    let store = Store::open(&database, Redactor::default()).expect("opens");
    let start: Timestamp = "2027-07-01T00:30:00Z".parse().expect("an instant");
    store.insert_occurrences(Vec::new(), Some(start)).await.expect("a last tick");
    let past = |task, count, state, from| Past { task, count, state, from }.write(&database);
    past("busy", 3000, "success", "2026-06-01T00:00:00Z");
    past("rare", 12, "error", "2026-06-01T00:00:00Z");
    past("dead", 40, "dead_lettered", "2026-06-01T00:00:00Z");
    past("young", 30, "success", "2027-05-01T00:00:00Z");
    past("kept", 30, "success", "2026-06-01T00:00:00Z");
    // A worktree that somebody kept for looking at.
    let connection = rusqlite::Connection::open(&database).expect("opens");
    let kept = world.path().to_str().expect("UTF-8").to_owned();
    connection
        .execute("UPDATE attempts SET worktree = ?1 WHERE run_id = 'kept0003'", [kept])
        .expect("written");
    let before = store.totals().await.expect("reads").runs_by_outcome;
    let artifacts = world.state().join("artifacts");
    let old = start - SignedDuration::from_hours(200 * 24);
    for run in ["busy0000", "busy2989", "busy2990", "dead0000", "unknown1"] {
        publish(&artifacts, run, old);
    }
    publish(&artifacts, "unknown2", start);

    let simulation = Simulation::start(&world, "2027-07-01T00:30:00Z").await;
    let all = RunFilter { limit: u32::MAX, ..RunFilter::default() };
    let mut look_again = tokio::time::interval(Duration::from_millis(20));
    let runs = tokio::time::timeout(crate::env::world::PATIENCE, async {
        loop {
            look_again.tick().await;
            let runs = store.runs(all.clone()).await.expect("reads");
            if runs.len() <= 101 && !artifacts.join("unknown1").exists() {
                return runs;
            }
        }
    });
    let runs = runs.await.expect("the old runs go");
    let of = |task: &str| {
        let mut ids: Vec<&str> = runs
            .iter()
            .filter(|run| run.task.as_str() == task)
            .map(|run| run.run_id.as_str())
            .collect();
        ids.sort_unstable();
        (ids.len(), ids.first().map(|id| (*id).to_owned()))
    };
    let first = |count, id: &str| (count, Some(id.to_owned()));
    assert_eq!(of("busy"), first(10, "busy2990"));
    assert_eq!(of("rare"), first(10, "rare0002"));
    assert_eq!(of("dead"), first(40, "dead0000"));
    assert_eq!(of("young"), first(30, "young0000"));
    assert_eq!(of("kept"), first(11, "kept0003"));
    assert_eq!(runs.len(), 101);
    for (table, each) in [("attempts", 1), ("events", 3), ("artifacts", 1)] {
        assert_eq!(count(&database, table), 101 * each, "{table}");
    }
    let there = |run: &str| artifacts.join(run).exists();
    let files = ["busy0000", "busy2989", "busy2990", "dead0000", "unknown1", "unknown2"].map(there);
    assert_eq!(files, [false, false, true, true, false, true]);
    assert_eq!(store.totals().await.expect("reads").runs_by_outcome, before);
    simulation.end().await;

    // A start anew computes what is due from the last tick, not from the rows.
    let simulation = Simulation::start(&world, "2027-07-01T01:30:00Z").await;
    simulation
        .runs(|runs| runs.iter().any(|run| run.due > start && run.state == RunState::Success))
        .await;
    let runs = store.runs(all).await.expect("reads");
    let written = ["busy", "rare", "dead", "young", "kept"];
    let new: Vec<String> = runs
        .iter()
        .filter(|run| !written.iter().any(|task| run.run_id.as_str().starts_with(task)))
        .map(|run| run.due.to_string())
        .collect();
    assert_eq!(new, ["2027-07-01T01:00:00Z"]);
    simulation.end().await;
}

/// Everything that ended before tomorrow may go.
fn rule(keep_runs: u32) -> RetentionRule {
    RetentionRule { before: now() + SignedDuration::from_hours(48), keep_runs }
}

async fn expired(store: &Store, rule: RetentionRule) -> Vec<RunId> {
    let found = store.expired_runs(rule, RetentionCursor::default(), 100).await.expect("reads");
    found.0.into_iter().map(|run| run.run_id).collect()
}

/// A run that ended, with or without a promised clean-up and a branch.
async fn ended(bench: &Bench, number: u32, cleanup: bool, branch: bool) -> RunId {
    let claimed = bench.running("report", number).await;
    let mut end = finish(OutcomeClass::Success, RunState::Success);
    end.cleanup =
        if cleanup { vec![serde_json::json!({"run": claimed.run_id})] } else { Vec::new() };
    end.branch = branch.then(|| "fleet/branch".to_owned());
    bench.store.finish_attempt(claimed.run_id.clone(), claimed.token, end).await.expect("ends");
    claimed.run_id
}

#[tokio::test]
async fn run_that_something_still_needs_stays_however_old_it_is() {
    let bench = Bench::new();
    ended(&bench, 1, false, true).await;
    // The next run goes on from this one's branch.
    ended(&bench, 2, false, true).await;
    ended(&bench, 3, true, false).await;
    ended(&bench, 4, false, false).await;
    bench.dead("report", 5).await;
    bench.running("report", 6).await;
    assert_eq!(expired(&bench.store, rule(0)).await, [run_id(1), run_id(4)]);
    assert_eq!(expired(&bench.store, rule(3)).await, [run_id(1)]);
    let before = RetentionRule { before: now(), keep_runs: 0 };
    assert_eq!(expired(&bench.store, before).await, []);
}

#[tokio::test]
async fn run_that_was_taken_up_again_after_the_look_is_not_deleted() {
    let bench = Bench::new();
    let claimed = bench.running("report", 1).await;
    let end = finish(OutcomeClass::CostCeiling, RunState::Error);
    bench.store.finish_attempt(claimed.run_id.clone(), claimed.token, end).await.expect("ends");
    let gone = ended(&bench, 2, false, false).await;
    let found = vec![claimed.run_id.clone(), gone.clone()];
    let target = ReplayTarget::Run(claimed.run_id.to_string());
    bench.store.replay(target, now()).await.expect("replayed");
    let deleted = bench.store.delete_expired(rule(0), found).await.expect("deletes");
    assert_eq!(deleted, [gone]);
    let left = bench.store.runs(RunFilter::default()).await.expect("reads");
    let left: Vec<_> = left.into_iter().map(|run| (run.task, run.state)).collect();
    assert_eq!(left, [(TaskName::new("report"), RunState::Pending)]);
}

#[tokio::test]
async fn skipped_occurrences_push_no_run_out() {
    let bench = Bench::new();
    let path = bench.path();
    Past { task: "report", count: 3, state: "success", from: "2026-01-01T00:00:00Z" }.write(&path);
    for number in 1..=20 {
        let skipped = fleet::store::NewOccurrence {
            skip: Some(fleet::run::SkipReason::SkippedOverlap),
            ..crate::store::bench::occurrence("report", number, fleet::run::Trigger::Schedule)
        };
        bench.store.insert_occurrences(vec![skipped], None).await.expect("recorded");
    }
    let gone = expired(&bench.store, rule(3)).await;
    assert_eq!(gone, (1..=17).map(run_id).collect::<Vec<_>>());
}
