//! A backup in the store's place.

use std::path::Path;

use fleet::run::{OutcomeClass, RunState, Trigger};
use fleet::runner::ServeLock;
use fleet::secrets::Redactor;
use fleet::store::{Gap, Restored, RunFilter, SinceBackup, Store, StoreError, backup, restore};
use jiff::{SignedDuration, Timestamp};

use super::backup::damage;
use crate::env::world::{World, eventually};
use crate::store::bench::{Bench, claim, finish, now, occurrence, run_id};

fn later() -> Timestamp {
    now() + SignedDuration::from_hours(100)
}

fn skip(from: &Path, database: &Path) -> Result<Restored, StoreError> {
    restore(from, database, SinceBackup::Skip, later())
}

async fn states(store: &Store) -> Vec<(String, RunState)> {
    let rows = store.runs(RunFilter::default()).await.expect("reads");
    rows.into_iter().map(|row| (row.task.to_string(), row.state)).collect()
}

/// A store with a run of each kind, its backup, and what happened since.
async fn past() -> Bench {
    let bench = Bench::new();
    let ended = bench.running("ended", 1).await;
    let end = finish(OutcomeClass::Success, RunState::Success);
    bench.store.finish_attempt(ended.run_id, ended.token, end).await.expect("ends");
    bench.running("runs", 2).await;
    let waits = vec![occurrence("waits", 3, Trigger::Schedule)];
    bench.store.insert_occurrences(waits, Some(now())).await.expect("recorded");
    backup(&bench.path(), &bench.dir.path().join("copy.db")).expect("a copy");
    let since = vec![occurrence("since", 4, Trigger::Schedule)];
    bench.store.insert_occurrences(since, Some(later())).await.expect("recorded");
    bench
}

#[tokio::test]
async fn restored_store_is_the_backup_and_the_replaced_one_is_kept() {
    let Bench { dir, store } = past().await;
    let (database, copy) = (dir.path().join("fleet.db"), dir.path().join("copy.db"));
    let before = states(&store).await;
    let refusal = skip(&copy, &database).expect_err("it is open").to_string();
    assert!(refusal.ends_with(&format!("in use by pid {}", std::process::id())), "{refusal}");
    drop(store);
    released(&database);

    let restored = restore(&copy, &database, SinceBackup::CatchUp, later()).expect("restores");
    let kept = dir.path().join("fleet.db.replaced-20260305T130000Z");
    let expected = Restored {
        replaced: Some(kept.clone()),
        runs: 3,
        last_tick: Some(now()),
        set_aside: 0,
        running: 1,
    };
    assert_eq!(restored, expected);
    let store = Store::open(&database, Redactor::default()).expect("opens");
    assert_eq!(
        states(&store).await,
        [
            ("waits".to_owned(), RunState::Pending),
            ("runs".to_owned(), RunState::Running),
            ("ended".to_owned(), RunState::Success)
        ]
    );
    assert_eq!(store.last_tick().await.expect("reads"), Some(now()));
    assert_eq!(store.gap().await.expect("reads"), None);
    let replaced = Store::open(&kept, Redactor::default()).expect("opens");
    assert_eq!(states(&replaced).await, before);
}

/// Waits until nobody has a store open: its threads end after its last clone is dropped.
fn released(database: &Path) {
    let lock = database.with_file_name("fleet.db-lock");
    eventually("the store is closed", || {
        std::fs::File::open(&lock).expect("a lock").try_lock().ok()
    });
}

#[tokio::test]
async fn what_waited_or_was_due_since_the_backup_is_not_run_again() {
    let Bench { dir, store } = past().await;
    let (database, copy) = (dir.path().join("fleet.db"), dir.path().join("copy.db"));
    drop(store);
    released(&database);
    let restored = skip(&copy, &database).expect("restores");
    assert_eq!((restored.set_aside, restored.running), (1, 1));
    let store = Store::open(&database, Redactor::default()).expect("opens");
    assert_eq!(store.claim_next(claim("b")).await.expect("claims"), None);
    assert_eq!(store.last_tick().await.expect("reads"), Some(later()));
    let gap = Gap { from: Some(now()), until: later() };
    assert_eq!(store.gap().await.expect("reads"), Some(gap));
    let letters = store.dead_letters(None, 10, 0).await.expect("reads");
    let told: Vec<_> = letters
        .iter()
        .map(|letter| (letter.run_id.clone(), letter.dead_letter_reason.as_str()))
        .collect();
    let reason = "restored from a backup: whether it ran since is unknown";
    assert_eq!(told, [(run_id(3), reason)]);
    // The run that was under way has no interruption left: its policy cannot run it again.
    let open = store.open_runs().await.expect("reads");
    assert_eq!(open[0].counters.interruptions, u32::MAX);
}

#[tokio::test]
async fn unusable_backup_is_refused_and_the_store_stays_as_it_is() {
    let Bench { dir, store } = past().await;
    let database = dir.path().join("fleet.db");
    drop(store);
    released(&database);
    let copy = |name: &str| {
        let path = dir.path().join(name);
        std::fs::copy(dir.path().join("copy.db"), &path).expect("copied");
        path
    };
    let damaged = copy("damaged.db");
    damage(&damaged, "runs");
    let newer = copy("newer.db");
    let connection = rusqlite::Connection::open(&newer).expect("opens");
    connection.pragma_update(None, "user_version", 1_000).expect("written");
    drop(connection);
    let foreign = dir.path().join("foreign.db");
    let connection = rusqlite::Connection::open(&foreign).expect("opens");
    connection.execute_batch("CREATE TABLE t (a)").expect("made");
    drop(connection);
    let text = dir.path().join("text.db");
    std::fs::write(&text, "this is no database. ".repeat(100)).expect("written");
    let dangling = copy("dangling.db");
    let connection = rusqlite::Connection::open(&dangling).expect("opens");
    connection
        .execute_batch("PRAGMA foreign_keys = OFF; INSERT INTO events VALUES ('gone', 1, 1, '{}')")
        .expect("written");
    drop(connection);

    let before = std::fs::read(&database).expect("read");
    let kind = |path: &Path| match skip(path, &database).expect_err("refused") {
        StoreError::Corrupt { path: named, .. } if named == path.display().to_string() => "damaged",
        StoreError::TooNew { .. } => "too new",
        StoreError::NotAStore { .. } => "foreign",
        StoreError::Open { .. } => "not opened",
        other => panic!("{other:?}"),
    };
    let missing = dir.path().join("missing.db");
    let all = [&damaged, &newer, &foreign, &text, &dangling, &missing, &database];
    assert_eq!(
        all.map(|path| kind(path)),
        ["damaged", "too new", "foreign", "damaged", "damaged", "not opened", "not opened"]
    );
    assert_eq!(std::fs::read(&database).expect("read"), before);
    assert!(!dir.path().join("fleet.db.restored.part").exists());
}

#[tokio::test]
async fn log_that_a_dead_process_left_is_not_taken_for_the_restored_store_s() {
    let Bench { dir, store } = past().await;
    // What a killed process leaves: the files as they are while the store is open.
    let crashed = tempfile::tempdir().expect("scratch directory");
    for name in ["fleet.db", "fleet.db-wal"] {
        std::fs::copy(dir.path().join(name), crashed.path().join(name)).expect("copied");
    }
    let database = crashed.path().join("fleet.db");
    let before = states(&store).await;
    let restored = skip(&dir.path().join("copy.db"), &database).expect("restores");
    let store = Store::open(&database, Redactor::default()).expect("opens");
    assert_eq!(states(&store).await.len(), 3);
    let replaced = restored.replaced.expect("one was there");
    let replaced = Store::open(&replaced, Redactor::default()).expect("opens");
    assert_eq!(states(&replaced).await, before, "its log went with it");
}

#[tokio::test]
async fn damaged_store_is_replaced_and_kept_for_looking_at() {
    let Bench { dir, store } = past().await;
    let database = dir.path().join("fleet.db");
    drop(store);
    released(&database);
    let garbage = "no header any more. ".repeat(500);
    std::fs::write(&database, &garbage).expect("written");
    let restored = skip(&dir.path().join("copy.db"), &database).expect("restores");
    let store = Store::open(&database, Redactor::default()).expect("opens");
    assert_eq!(states(&store).await.len(), 3);
    let replaced = restored.replaced.expect("one was there");
    assert_eq!(std::fs::read_to_string(replaced).expect("read"), garbage);
}

const SLOW: &[(&str, &str)] = &[
    ("tasks/slow.yaml", "prompt: Wait.\nschedule: '0 0 1 1 *'\ncompletion: {shell: 'true'}\n"),
    (
        "scripted/slow.yaml",
        "turns:\n  - tool_calls:\n      - {name: bash, arguments: {command: 'sleep 300'}}\n",
    ),
];

#[test]
fn restore_beside_a_daemon_is_refused_and_a_run_of_the_backup_is_interrupted_at_the_next_start() {
    let world = World::new(SLOW);
    let daemon = world.serve();
    let bundle = world.bundle();
    world.ok(&["sched", "trigger", "slow", "--bundle", bundle.to_str().expect("UTF-8")]);
    let run = eventually("the tool call has started", || {
        let run = world.runs().into_iter().next()?;
        let whole = world.run(&run["run_id"]);
        let started = |event: &serde_json::Value| event["type"] == "tool_started";
        whole["events"].as_array()?.iter().any(started).then_some(run)
    });
    let copy = world.path().join("copy.db");
    let copy = copy.to_str().expect("UTF-8");
    world.ok(&["backup", "--to", copy]);
    let refused = world.fleet(&["restore", copy]);
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(3), "{told}");
    assert!(told.contains(&format!("pid {}", daemon.pid())), "{told}");

    daemon.kill();
    let text = world.ok(&["restore", copy]);
    assert!(text.contains("1 runs were under way"), "{text}");
    assert!(text.contains("fleet.db.replaced-"), "{text}");
    let daemon = world.serve();
    daemon.wait_for("run failed");
    let whole = world.run(&run["run_id"]);
    assert_eq!(
        (&whole["state"], &whole["outcome"]),
        (&"dead_lettered".into(), &"interrupted".into()),
        "{whole:#}"
    );
    let status = world.fleet(&["status"]);
    let status = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(status.contains("restored from a backup: nothing is known of the time"), "{status}");
    assert_eq!(daemon.stop(), Some(0));
    assert!(world.containers().is_empty());
}

#[test]
fn restore_beside_a_run_by_hand_is_refused_with_its_pid() {
    let world = World::new(SLOW);
    let bundle = world.bundle();
    let mut command =
        world.command(&["task", "run", "slow", "--bundle", bundle.to_str().expect("UTF-8")]);
    let mut child = command
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("fleet starts");
    let copy = world.path().join("copy.db");
    let copy = copy.to_str().expect("UTF-8");
    eventually("it is recorded", || (!world.runs().is_empty()).then_some(()));
    world.ok(&["backup", "--to", copy]);
    let refused = world.fleet(&["restore", copy]);
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    child.kill().expect("it is killed");
    child.wait().expect("it is reaped");
    assert_eq!(refused.status.code(), Some(3), "{told}");
    assert!(told.contains(&format!("pid {}", child.id())), "{told}");
    assert!(ServeLock::holder(&fleet::config::StateDir::new(world.state())).is_none());
}
