//! Dead letters go back to pending or are closed, and nothing else is.

use fleet::run::{Counters, RunState, TaskName};
use fleet::store::{ReplayTarget, StoreError, Totals};

use super::bench::{Bench, claim, now, run_id};

#[tokio::test]
async fn a_replay_starts_afresh_and_keeps_the_log() {
    let bench = Bench::new();
    let run = bench.dead("report", 1).await;
    let listed = bench.store.dead_letters(None, 10, 0).await.expect("reads");
    assert_eq!(listed.len(), 1);
    assert_eq!((&listed[0].run_id, listed[0].dead_letter_attempts), (&run, 1));
    let target = ReplayTarget::Run(run.as_str()[..12].to_owned());
    let replayed = bench.store.replay(target, now()).await.expect("replays");
    assert_eq!(replayed, std::slice::from_ref(&run));
    let detail = bench.store.run_detail(run).await.expect("is there");
    assert_eq!(
        (detail.run.state, detail.run.outcome, detail.run.tokens),
        (RunState::Pending, None, 0)
    );
    assert_eq!((detail.artifacts, detail.events.len()), (Vec::new(), 1));
    assert_eq!(bench.store.dead_letters(None, 10, 0).await.expect("reads"), []);
    let claimed = bench.store.claim_next(claim("b")).await.expect("claims").expect("is pending");
    assert_eq!((claimed.attempt, claimed.counters), (2, Counters::default()));
}

#[tokio::test]
async fn a_running_run_is_not_replayed() {
    let bench = Bench::new();
    let claimed = bench.running("report", 1).await;
    let before = bench.dump();
    let target = ReplayTarget::Run(claimed.run_id.to_string());
    let refused = bench.store.replay(target, now()).await;
    let Err(StoreError::WrongState { run_id, state, needed }) = refused else {
        panic!("not refused: {refused:?}");
    };
    assert_eq!((run_id, state, needed), (claimed.run_id, "running", "dead_lettered"));
    assert_eq!(bench.dump(), before);
}

#[tokio::test]
async fn tag_task_and_all_pick_their_dead_letters() {
    let bench = Bench::new();
    for (task, number) in [("report", 1), ("report", 2), ("tidy", 3), ("count", 4)] {
        bench.dead(task, number).await;
    }
    let replay = |target| bench.store.replay(target, now());
    let tag = ReplayTarget::Tag("tag-tidy".into());
    assert_eq!(replay(tag).await.expect("replays"), [run_id(3)]);
    let task = ReplayTarget::Task(TaskName::new("report"));
    assert_eq!(replay(task).await.expect("replays"), [run_id(2)]);
    assert_eq!(replay(ReplayTarget::All).await.expect("replays"), [run_id(1), run_id(4)]);
    assert_eq!(replay(ReplayTarget::All).await.expect("none is left"), []);
}

#[tokio::test]
async fn a_dropped_dead_letter_keeps_its_reason_and_what_was_counted() {
    let bench = Bench::new();
    let run = bench.dead("report", 1).await;
    let letter = bench.store.dead_letters(None, 10, 0).await.expect("reads").remove(0);
    let before = bench.store.totals().await.expect("reads");
    let why = Some("no longer needed".to_owned());
    bench.store.drop_dead_letter(run.clone(), why).await.expect("is dropped");
    let row = bench.store.run(run.clone()).await.expect("is there");
    let said =
        format!("dropped by an operator: no longer needed (was: {})", letter.dead_letter_reason);
    assert_eq!((row.state, row.reason), (RunState::Cancelled, Some(said)));
    let kept = rusqlite::Connection::open(bench.path()).expect("opens").query_row(
        "SELECT dead_letter_reason FROM runs WHERE run_id = ?1",
        [run.as_str()],
        |row| row.get::<_, String>(0),
    );
    assert_eq!(kept.expect("is kept"), letter.dead_letter_reason);
    let after = Totals { dead_letters_open: 0, ..before };
    assert_eq!(bench.store.totals().await.expect("reads"), after);
    assert_eq!(bench.store.dead_letters(None, 10, 0).await.expect("reads"), []);
    assert_eq!(bench.store.claim_next(claim("b")).await.expect("claims"), None);
}

#[tokio::test]
async fn a_running_run_is_not_dropped() {
    let bench = Bench::new();
    let claimed = bench.running("report", 1).await;
    let before = bench.dump();
    let refused = bench.store.drop_dead_letter(claimed.run_id.clone(), None).await;
    let Err(StoreError::WrongState { run_id, state, needed }) = refused else {
        panic!("not refused: {refused:?}");
    };
    assert_eq!((run_id, state, needed), (claimed.run_id, "running", "dead_lettered"));
    assert_eq!(bench.dump(), before);
}
