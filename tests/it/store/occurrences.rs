//! What is due is recorded once; readers hold up no writer.

use fleet::run::{RunState, SkipReason, Trigger};
use fleet::store::{NewOccurrence, RunFilter};

use super::bench::{Bench, now, occurrence, run_id};

#[tokio::test]
async fn an_occurrence_that_is_recorded_twice_is_one_run() {
    let bench = Bench::new();
    let first = occurrence("report", 1, Trigger::Schedule);
    let again = NewOccurrence { run_id: run_id(2), ..first.clone() };
    let insert = |one| bench.store.insert_occurrences(vec![one], Some(now()));
    assert_eq!(insert(first).await.expect("recorded"), [run_id(1)]);
    assert_eq!(insert(again).await.expect("left alone"), []);
    let rows = bench.store.runs(RunFilter::default()).await.expect("reads");
    assert_eq!(rows.into_iter().map(|row| row.run_id).collect::<Vec<_>>(), [run_id(1)]);
    assert_eq!(bench.store.last_tick().await.expect("reads"), Some(now()));
}

#[tokio::test]
async fn a_manual_run_is_never_taken_for_an_earlier_one() {
    let bench = Bench::new();
    let scheduled = occurrence("report", 1, Trigger::Schedule);
    let manual = NewOccurrence { run_id: run_id(2), trigger: Trigger::Manual, ..scheduled.clone() };
    let another = NewOccurrence { run_id: run_id(3), ..manual.clone() };
    let all = vec![scheduled, manual, another];
    let inserted = bench.store.insert_occurrences(all, None).await.expect("recorded");
    assert_eq!(inserted, [run_id(1), run_id(2), run_id(3)]);
}

#[tokio::test]
async fn a_skipped_occurrence_is_recorded_with_its_reason_and_never_claimed() {
    let bench = Bench::new();
    let skipped = NewOccurrence {
        skip: Some(SkipReason::SkippedOverlap),
        ..occurrence("report", 1, Trigger::Schedule)
    };
    bench.store.insert_occurrences(vec![skipped], None).await.expect("recorded");
    let row = bench.store.run(run_id(1)).await.expect("is there");
    assert_eq!((row.state, row.reason.as_deref()), (RunState::Skipped, Some("skipped_overlap")));
    let claimed = bench.store.claim_next(super::bench::claim("a")).await.expect("claims");
    assert_eq!(claimed, None);
}

#[tokio::test]
async fn a_held_read_transaction_does_not_block_writers() {
    let bench = Bench::new();
    bench.running("report", 1).await;
    let reader = rusqlite::Connection::open(bench.path()).expect("opens");
    reader.execute_batch("BEGIN").expect("begins");
    let count = || -> i64 {
        reader.query_row("SELECT count(*) FROM runs", [], |row| row.get(0)).expect("counts")
    };
    assert_eq!(count(), 1);
    bench.running("report", 2).await;
    assert_eq!(count(), 1, "the snapshot stands");
    reader.execute_batch("COMMIT").expect("ends");
    assert_eq!(count(), 2);
}

#[tokio::test]
async fn the_version_changes_with_every_commit() {
    let bench = Bench::new();
    let before = bench.store.version().expect("reads");
    assert_eq!(bench.store.version().expect("reads"), before);
    bench.running("report", 1).await;
    assert_ne!(bench.store.version().expect("reads"), before);
}
