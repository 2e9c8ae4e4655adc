//! Notices in the outbox.

use std::time::Duration;

use fleet::run::{Event, EventKind, Notice, NoticeEvent, OutcomeClass, PreparedNotice, RunState};
use fleet::store::{AfterFailure, AttemptFinish, ClaimedRun, DueNotices, StoreError};

use super::bench::{Bench, finish, now};

fn notice(claimed: &ClaimedRun, event: NoticeEvent, channel: &str) -> Notice {
    Notice {
        idempotency_key: Notice::key(&claimed.run_id, claimed.attempt, event, channel),
        channel: channel.into(),
        event,
        task: claimed.task.clone(),
        run_id: claimed.run_id.clone(),
        due: claimed.due,
        at: now(),
        state: RunState::DeadLettered,
        outcome: None,
        reason: "key sk-abcdefghijklmnopqrstuvwxyz".into(),
        attempts: 1,
        failures_in_a_row: 0,
    }
}

fn failed(claimed: &ClaimedRun, park_after: u32) -> AttemptFinish {
    let events = [NoticeEvent::Failure, NoticeEvent::RepeatedFailure, NoticeEvent::Parked];
    let prepared =
        events.map(|event| PreparedNotice { nth: 2, notice: notice(claimed, event, "ops") });
    AttemptFinish {
        park_after,
        notices: prepared.to_vec(),
        ..finish(OutcomeClass::CostCeiling, RunState::DeadLettered)
    }
}

async fn fail(bench: &Bench, due: u32, park_after: u32) -> ClaimedRun {
    let claimed = bench.running("report", due).await;
    let end = failed(&claimed, park_after);
    bench.store.finish_attempt(claimed.run_id.clone(), claimed.token, end).await.expect("ends");
    claimed
}

async fn events(bench: &Bench) -> Vec<(&'static str, u32)> {
    let rows = bench.store.notices(50).await.expect("reads");
    rows.iter().map(|row| (row.notice.event.as_str(), row.notice.failures_in_a_row)).collect()
}

#[tokio::test]
async fn the_end_of_a_run_promises_what_it_causes_and_nothing_else() {
    let bench = Bench::new();
    let first = fail(&bench, 1, 3).await;
    assert_eq!(events(&bench).await, [("failure", 1)]);
    let row = &bench.store.notices(1).await.expect("reads")[0];
    assert_eq!(row.notice.reason, "key [redacted]");
    assert_eq!(row.notice.due, first.due);
    fail(&bench, 2, 3).await;
    fail(&bench, 3, 3).await;
    let seen = events(&bench).await;
    assert_eq!(
        seen,
        [("failure", 1), ("failure", 2), ("repeated_failure", 2), ("failure", 3), ("parked", 3)]
    );
}

#[tokio::test]
async fn a_task_that_is_parked_already_is_not_told_to_park_again() {
    let bench = Bench::new();
    for due in 1..=4 {
        fail(&bench, due, 2).await;
    }
    let parked = events(&bench).await.into_iter().filter(|(event, _)| *event == "parked").count();
    assert_eq!(parked, 1);
}

#[tokio::test]
async fn one_sender_has_a_notice_at_a_time_until_its_claim_ends() {
    let bench = Bench::new();
    fail(&bench, 1, 0).await;
    let store = &bench.store;
    let due = DueNotices { channels: vec!["ops".into()], next: None };
    assert_eq!(store.due_notices(now()).await.expect("reads"), due);
    let until = now() + Duration::from_secs(30);
    let claim = |at| store.claim_notice("ops".into(), at, at + Duration::from_secs(30));
    let first = claim(now()).await.expect("claims").expect("it is due");
    assert_eq!((first.tries, first.waits_since), (1, now()));
    assert_eq!(claim(now()).await.expect("claims"), None);
    let later = DueNotices { channels: Vec::new(), next: Some(until) };
    assert_eq!(store.due_notices(now()).await.expect("reads"), later);
    // Whoever had it is gone: another one takes it, and the first one's word counts no more.
    let second = claim(until).await.expect("claims").expect("it is due again");
    assert_eq!((second.tries, &second.notice.idempotency_key), (2, &first.notice.idempotency_key));
    assert!(!store.notice_sent(first.id, first.tries).await.expect("writes"));
    assert!(store.notice_sent(second.id, second.tries).await.expect("writes"));
    assert_eq!(events(&bench).await, []);
    let totals = store.totals().await.expect("reads");
    assert_eq!((totals.notices, totals.notices_waiting), (vec![("sent".to_owned(), 1)], 0));
}

#[tokio::test]
async fn failures_are_kept_redacted_and_what_was_given_up_waits_for_a_person() {
    let bench = Bench::new();
    fail(&bench, 1, 0).await;
    let store = &bench.store;
    let claim = |at| store.claim_notice("ops".into(), at, at + Duration::from_secs(30));
    let first = claim(now()).await.expect("claims").expect("it is due");
    let again = now() + Duration::from_secs(10);
    let error = "answered sk-abcdefghijklmnopqrstuvwxyz".to_owned();
    store.notice_failed(first.id, 1, error, AfterFailure::TryAt(again)).await.expect("writes");
    let row = store.notices(1).await.expect("reads").remove(0);
    assert_eq!(
        (row.tries, row.try_at, row.last_error.as_deref(), row.given_up_at),
        (1, Some(again), Some("answered [redacted]"), None)
    );
    let second = claim(again).await.expect("claims").expect("its time came");
    let given_up = AfterFailure::GiveUp(again);
    store.notice_failed(second.id, 2, "no".into(), given_up).await.expect("writes");
    assert_eq!(store.due_notices(again).await.expect("reads"), DueNotices::default());
    let totals = store.totals().await.expect("reads");
    assert_eq!((totals.notices_waiting, totals.notices_given_up), (0, 1));
    assert_eq!(store.retry_notices(Some(second.id + 1), again).await.expect("writes"), [0; 0]);
    assert_eq!(store.retry_notices(None, again).await.expect("writes"), [second.id]);
    let third = claim(again).await.expect("claims").expect("it waits");
    assert_eq!((third.tries, third.waits_since), (1, again));
}

#[tokio::test]
async fn a_long_run_is_recorded_and_promised_together_and_only_by_its_holder() {
    let bench = Bench::new();
    let claimed = bench.running("report", 1).await;
    let kind = EventKind::RanLong { level: "sla_warning".into(), expected_ms: 1, after_ms: 1 };
    let event = Event { at: now(), attempt: 1, kind };
    let promise = |token| {
        let notices = vec![notice(&claimed, NoticeEvent::SlaWarning, "ops")];
        bench.store.record_and_promise(claimed.run_id.clone(), token, vec![event.clone()], notices)
    };
    promise(claimed.token).await.expect("writes");
    assert_eq!(events(&bench).await, [("sla_warning", 0)]);
    let detail = bench.store.run_detail(claimed.run_id.clone()).await.expect("reads");
    assert_eq!(detail.events.iter().map(|row| &row.event).collect::<Vec<_>>(), [&event]);
    // The same key is promised once.
    promise(claimed.token).await.expect("writes");
    assert_eq!(events(&bench).await.len(), 1);
    let end = finish(OutcomeClass::Success, RunState::Success);
    bench.store.finish_attempt(claimed.run_id.clone(), claimed.token, end).await.expect("ends");
    let late = promise(claimed.token).await;
    assert!(matches!(late, Err(StoreError::LeaseLost(_))), "{late:?}");
}
