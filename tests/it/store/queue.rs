//! Who is claimed next: room, priority, age; and what ends the waiting.

use std::collections::HashMap;

use fleet::run::{
    FollowUp, Notice, NoticeEvent, OutcomeClass, PreparedNotice, RunState, TaskName, Trigger,
};
use fleet::store::{
    AttemptFinish, Cancelled, ClaimRequest, HeldTask, NewOccurrence, OpenTask, Room, StoreError,
};
use jiff::{SignedDuration, Timestamp};

use super::bench::{Bench, claim, finish, now, occurrence, run_id};

fn at_once() -> ClaimRequest {
    ClaimRequest { now: now(), ..claim("a") }
}

async fn insert(bench: &Bench, occurrences: Vec<NewOccurrence>) {
    let number = occurrences.len();
    let inserted = bench.store.insert_occurrences(occurrences, None).await.expect("inserted");
    assert_eq!(inserted.len(), number);
}

/// The tasks in the order in which they are claimed.
async fn order(bench: &Bench, request: ClaimRequest) -> Vec<String> {
    let mut order = Vec::new();
    while let Some(claimed) = bench.store.claim_next(request.clone()).await.expect("claims") {
        order.push(claimed.task.to_string());
    }
    order
}

fn due(task: &str, number: u32) -> NewOccurrence {
    NewOccurrence { queued_at: now(), ..occurrence(task, number, Trigger::Schedule) }
}

#[tokio::test]
async fn higher_priority_goes_first_then_the_older() {
    let bench = Bench::new();
    insert(
        &bench,
        vec![
            NewOccurrence { priority: -1, ..due("low", 1) },
            due("second", 3),
            due("first", 2),
            NewOccurrence { priority: 9, ..due("high", 4) },
        ],
    )
    .await;
    assert_eq!(order(&bench, at_once()).await, ["high", "first", "second", "low"]);
}

#[tokio::test]
async fn whatever_waited_half_an_hour_goes_before_every_priority() {
    let bench = Bench::new();
    let half_an_hour = SignedDuration::from_mins(30);
    insert(
        &bench,
        vec![
            NewOccurrence { priority: 100, ..due("important", 1) },
            NewOccurrence { priority: -100, queued_at: now() - half_an_hour, ..due("starved", 2) },
        ],
    )
    .await;
    assert_eq!(order(&bench, at_once()).await, ["starved", "important"]);
}

#[tokio::test]
async fn runs_with_one_key_are_claimed_one_after_another() {
    let bench = Bench::new();
    let keyed = |task: &str, number| NewOccurrence {
        serialization_key: Some("database".to_owned()),
        ..due(task, number)
    };
    insert(&bench, vec![keyed("a", 1), keyed("b", 2), due("free", 3)]).await;
    let first = bench.store.claim_next(at_once()).await.expect("claims").expect("a run");
    assert_eq!(first.task, TaskName::new("a"));
    assert_eq!(order(&bench, at_once()).await, ["free"]);
    let open = bench.store.open_tasks().await.expect("read");
    let waits = OpenTask { runs: 1, waits_for_key: true };
    assert_eq!(open.get(&TaskName::new("b")), Some(&waits));

    let end = finish(OutcomeClass::Success, RunState::Success);
    bench.store.finish_attempt(first.run_id, first.token, end).await.expect("finished");
    assert_eq!(order(&bench, at_once()).await, ["b"]);
}

#[tokio::test]
async fn run_by_hand_is_refused_while_its_key_is_held_and_leaves_no_row() {
    let bench = Bench::new();
    let keyed = |task: &str, number, trigger| NewOccurrence {
        serialization_key: Some("database".to_owned()),
        ..occurrence(task, number, trigger)
    };
    let scheduled = keyed("a", 1, Trigger::Schedule);
    bench.store.insert_and_claim(scheduled, claim("a")).await.expect("claimed");
    let by_hand = keyed("b", 2, Trigger::Manual);
    let refused = bench.store.insert_and_claim(by_hand, claim("b")).await.expect_err("refused");
    assert!(
        matches!(&refused, StoreError::KeyHeld { key, holder, .. } if key == "database" && *holder == run_id(1)),
        "{refused}"
    );
    let missing = bench.store.run(run_id(2)).await.expect_err("no row");
    assert!(matches!(missing, StoreError::RunNotFound(_)));
}

#[tokio::test]
async fn exclusive_occurrences_of_a_task_wait_for_each_other_and_their_retries() {
    let bench = Bench::new();
    let exclusive = |number| NewOccurrence { room: Room::Exclusive, ..due("t", number) };
    insert(&bench, vec![exclusive(2), exclusive(1)]).await;
    let first = bench.store.claim_next(at_once()).await.expect("claims").expect("a run");
    assert_eq!(first.run_id, run_id(1));
    assert_eq!(order(&bench, at_once()).await, [""; 0]);

    let again = now() + SignedDuration::from_mins(10);
    let retry = AttemptFinish {
        retry_at: Some(again),
        ..finish(OutcomeClass::Transient, RunState::Scheduled)
    };
    bench.store.finish_attempt(first.run_id, first.token, retry).await.expect("finished");
    // The later one waits also while the earlier one waits for its retry.
    assert_eq!(order(&bench, at_once()).await, [""; 0]);
    let request = ClaimRequest { now: again, ..at_once() };
    let retried = bench.store.claim_next(request.clone()).await.expect("claims").expect("a run");
    assert_eq!((retried.run_id.clone(), retried.attempt), (run_id(1), 2));
    let end = finish(OutcomeClass::Success, RunState::Success);
    bench.store.finish_attempt(retried.run_id, retried.token, end).await.expect("finished");
    let second = bench.store.claim_next(request).await.expect("claims").expect("a run");
    assert_eq!(second.run_id, run_id(2));
}

#[tokio::test]
async fn newer_occurrence_replaces_those_that_wait_and_tells_those_that_run() {
    let bench = Bench::new();
    let replacing = |number| NewOccurrence { room: Room::ReplacesOlder, ..due("t", number) };
    insert(&bench, vec![replacing(1)]).await;
    let running = bench.store.claim_next(at_once()).await.expect("claims").expect("a run");
    insert(&bench, vec![due("other", 9), replacing(2)]).await;
    insert(&bench, vec![replacing(3)]).await;

    let waited = bench.store.run(run_id(2)).await.expect("read");
    let reason = "replaced by the occurrence due 2026-03-01T09:03:00Z";
    assert_eq!((waited.state, waited.reason.as_deref()), (RunState::Cancelled, Some(reason)));
    let first = "replaced by the occurrence due 2026-03-01T09:02:00Z".to_owned();
    let wishes = bench.store.cancel_requests().await.expect("read");
    assert_eq!(wishes, [(running.run_id.clone(), first)]);
    assert_eq!(order(&bench, at_once()).await, ["other"]);

    let end = finish(OutcomeClass::Cancelled, RunState::Cancelled);
    bench.store.finish_attempt(running.run_id, running.token, end).await.expect("finished");
    assert_eq!(order(&bench, at_once()).await, ["t"]);
    assert_eq!(bench.store.cancel_requests().await.expect("read"), []);
}

#[tokio::test]
async fn cancelling_ends_what_waits_and_refuses_what_has_ended() {
    let bench = Bench::new();
    insert(&bench, vec![due("t", 1)]).await;
    let cancel = || bench.store.cancel_run(run_id(1), now(), "not today".to_owned());
    assert_eq!(cancel().await.expect("cancelled"), Cancelled::AtOnce);
    let row = bench.store.run(run_id(1)).await.expect("read");
    assert_eq!(
        (row.state, row.outcome.as_deref(), row.reason.as_deref(), row.finished_at),
        (RunState::Cancelled, Some("cancelled"), Some("not today"), Some(now()))
    );
    let refused = cancel().await.expect_err("it has ended").to_string();
    let id = run_id(1);
    assert_eq!(refused, format!("run {id} is cancelled, not pending, scheduled or running"));
    assert_eq!(order(&bench, at_once()).await, [""; 0]);
}

#[tokio::test]
async fn pause_is_kept_until_it_is_resumed() {
    let bench = Bench::new();
    let task = || TaskName::new("t");
    assert_eq!(bench.store.resume_task(task()).await.expect("written"), None);
    let until = now() + SignedDuration::from_hours(2);
    let pause = bench.store.pause_task(task(), now(), Some(until), "moving house".to_owned());
    pause.await.expect("paused");
    let held = HeldTask {
        paused_at: Some(now()),
        paused_until: Some(until),
        pause_reason: Some("moving house".to_owned()),
        ..HeldTask::default()
    };
    let seen = bench.store.held_tasks().await.expect("read");
    assert_eq!(seen, HashMap::from([(task(), held.clone())]));
    assert_eq!(bench.store.resume_task(task()).await.expect("resumed"), Some(held));
    assert_eq!(bench.store.held_tasks().await.expect("read"), HashMap::new());
}

async fn dies(bench: &Bench, number: u32, park_after: u32) {
    let claimed = bench.running("t", number).await;
    let notice = |event: NoticeEvent| PreparedNotice {
        nth: 2,
        notice: Notice {
            idempotency_key: Notice::key(&claimed.run_id, 1, event, "ops"),
            channel: "ops".to_owned(),
            event,
            task: claimed.task.clone(),
            run_id: claimed.run_id.clone(),
            due: claimed.due,
            at: now(),
            state: RunState::DeadLettered,
            outcome: Some("cost_ceiling".to_owned()),
            reason: "spent".to_owned(),
            attempts: 1,
            failures_in_a_row: 0,
        },
    };
    let end = AttemptFinish {
        park_after,
        notices: NoticeEvent::ALL.into_iter().map(notice).collect(),
        ..finish(OutcomeClass::CostCeiling, RunState::DeadLettered)
    };
    bench.store.finish_attempt(claimed.run_id, claimed.token, end).await.expect("finished");
}

fn promised(bench: &Bench) -> Vec<(String, u32)> {
    let connection = rusqlite::Connection::open(bench.path()).expect("opens");
    let mut query = connection
        .prepare("SELECT job ->> 'event', job ->> 'failures_in_a_row' FROM outbox WHERE kind = 'notice' ORDER BY id")
        .expect("a query");
    let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("rows");
    rows.collect::<Result<_, _>>().expect("read")
}

#[tokio::test]
async fn failures_in_a_row_promise_notices_and_park_the_task() {
    let bench = Bench::new();
    dies(&bench, 1, 2).await;
    assert_eq!(promised(&bench), [("failure".to_owned(), 1)]);
    assert_eq!(bench.store.held_tasks().await.expect("read"), HashMap::new());
    dies(&bench, 2, 2).await;
    let events = ["failure", "failure", "repeated_failure", "parked"];
    let counts = [1, 2, 2, 2];
    let expected: Vec<_> = events.map(str::to_owned).into_iter().zip(counts).collect();
    assert_eq!(promised(&bench), expected);
    let held = bench.store.held_tasks().await.expect("read");
    let parked = HeldTask {
        parked_at: Some(now() + SignedDuration::from_hours(24)),
        park_reason: Some("2 runs in a row failed for good".to_owned()),
        failures_in_a_row: 2,
        ..HeldTask::default()
    };
    assert_eq!(held, HashMap::from([(TaskName::new("t"), parked)]));
    bench.store.resume_task(TaskName::new("t")).await.expect("resumed");
    dies(&bench, 3, 2).await;
    assert_eq!(bench.store.held_tasks().await.expect("read"), HashMap::new());
    assert_eq!(FollowUp::after(0, RunState::DeadLettered, 2).failures_in_a_row, 1);
}

#[tokio::test]
async fn schedule_counts_what_it_lets_run_and_nothing_else() {
    let bench = Bench::new();
    let skipped =
        NewOccurrence { skip: Some(fleet::run::SkipReason::SkippedPaused), ..due("t", 2) };
    let by_hand = NewOccurrence { trigger: Trigger::Manual, ..due("t", 3) };
    insert(&bench, vec![due("t", 1), skipped, by_hand, due("t", 4)]).await;
    let again: Vec<_> =
        bench.store.insert_occurrences(vec![due("t", 1)], None::<Timestamp>).await.expect("left");
    assert_eq!(again, []);
    let counted = bench.store.scheduled_runs().await.expect("read");
    assert_eq!(counted, HashMap::from([(TaskName::new("t"), 2)]));
}
