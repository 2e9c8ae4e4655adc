//! The ways an attempt ends other than by its gates.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fleet::clock::SimulatedClock;
use fleet::model::{
    Answer, Model, ModelError, ModelErrorClass, Request, ScriptedFault, ScriptedTurn, StopReason,
};
use fleet::run::{CancelReason, EventKind, Outcome, OutcomeClass};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::bench::{Bench, Finished, bench, bench_with, call, say};
use crate::env::sandbox_double::never_starts;

pub(super) fn fault(status: u16, times: u32, retry_after: Option<Duration>) -> ScriptedTurn {
    let message = "no luck".to_owned();
    ScriptedTurn {
        fault: Some(ScriptedFault { status, message, retry_after, times }),
        ..ScriptedTurn::default()
    }
}

/// Runs an attempt and moves the clock as far as each retry asks for.
pub(super) async fn run_through_retries(bench: Bench) -> (Finished, Vec<u64>) {
    let (clock, log) = (bench.clock.clone(), bench.log.clone());
    let mut running = tokio::spawn(bench.run());
    let mut waits = Vec::new();
    loop {
        let known = waits.len();
        tokio::select! {
            done = &mut running => return (done.expect("the attempt ends"), waits),
            wait = log.nth_retry(known) => {
                waits.push(wait);
                clock.advance(Duration::from_millis(wait));
            }
        }
    }
}

#[tokio::test]
async fn a_provider_that_falters_is_asked_again_after_1_2_and_4_seconds() {
    let mut bench = bench(vec![fault(503, 3, None), say("done")]);
    bench.input.completion.shell = Some("true".to_owned());
    let (done, waits) = run_through_retries(bench).await;
    assert_eq!(waits, [1000, 2000, 4000]);
    assert_eq!(done.end.outcome, Outcome::success());
    assert_eq!(done.requests.len(), 4);
}

#[tokio::test]
async fn a_provider_that_stays_down_ends_the_attempt_as_transient() {
    let (done, waits) = run_through_retries(bench(vec![fault(529, 9, None)])).await;
    assert_eq!(waits, [1000, 2000, 4000]);
    assert_eq!(
        done.end.outcome,
        Outcome::failed(OutcomeClass::Transient, "model scripted: status 529: no luck")
    );
}

#[tokio::test]
async fn the_providers_own_wait_is_honoured() {
    let turns = vec![fault(429, 1, Some(Duration::from_secs(77))), say("done")];
    let (_, waits) = run_through_retries(bench(turns)).await;
    assert_eq!(waits, [77_000]);
}

#[tokio::test]
async fn failures_that_no_retry_helps_end_at_once_in_their_class() {
    for (status, class) in [(401, OutcomeClass::Config), (404, OutcomeClass::Config)] {
        let done = bench(vec![fault(status, 9, None)]).run().await;
        assert_eq!((done.end.outcome.class, done.requests.len()), (class, 1));
    }
    let overflow = ScriptedFault {
        status: 400,
        message: "maximum context length is 10".to_owned(),
        retry_after: None,
        times: 1,
    };
    let turn = ScriptedTurn { fault: Some(overflow), ..ScriptedTurn::default() };
    let done = bench(vec![turn]).run().await;
    assert_eq!(done.end.outcome.class, OutcomeClass::ContextBudget);
}

#[tokio::test]
async fn each_reason_to_cancel_has_its_outcome() {
    for (reason, class) in [
        (CancelReason::Operator, OutcomeClass::Cancelled),
        (CancelReason::Shutdown, OutcomeClass::Interrupted),
        (CancelReason::LeaseLost, OutcomeClass::Interrupted),
        (CancelReason::StoreFailed, OutcomeClass::Interrupted),
        (CancelReason::WallTimeout, OutcomeClass::WallTimeout),
    ] {
        let waiting = ScriptedTurn { delay: Duration::from_secs(3600), ..say("late") };
        let bench = bench(vec![waiting]);
        let (cancel, log) = (bench.cancel.clone(), bench.log.clone());
        let running = tokio::spawn(bench.run());
        log.wait_for(|event| matches!(event, EventKind::ModelRequested { .. })).await;
        cancel.cancel(reason);
        let done = running.await.expect("the attempt ends");
        assert_eq!(done.end.outcome.class, class, "{reason:?}");
        // The request was on its way, so it may have been paid for.
        assert!(done.end.usage.estimated && done.end.usage.input_tokens > 0, "{reason:?}");
    }
}

#[tokio::test]
async fn the_wall_time_ends_a_request() {
    let waiting = ScriptedTurn { delay: Duration::from_secs(3600), ..say("late") };
    let mut bench = bench(vec![waiting]);
    bench.input.limits.wall_deadline = Some(bench.clock.now() + Duration::from_secs(60));
    let (clock, log) = (bench.clock.clone(), bench.log.clone());
    let running = tokio::spawn(bench.run());
    log.wait_for(|event| matches!(event, EventKind::ModelRequested { .. })).await;
    clock.advance(Duration::from_secs(60));
    let done = running.await.expect("the attempt ends");
    assert_eq!(done.end.outcome.class, OutcomeClass::WallTimeout);
}

#[tokio::test]
async fn a_sandbox_that_does_not_start_ends_the_attempt_even_while_the_model_thinks() {
    for (transient, class) in [(true, OutcomeClass::Transient), (false, OutcomeClass::Config)] {
        let waiting = ScriptedTurn { delay: Duration::from_secs(3600), ..say("late") };
        let mut bench = bench(vec![waiting]);
        bench.input.sandbox = never_starts("no subordinate ids; run usermod", transient);
        let done = bench.run().await;
        assert_eq!(
            done.end.outcome,
            Outcome::failed(class, "sandbox did not start: no subordinate ids; run usermod")
        );
    }
}

#[tokio::test]
async fn a_log_that_is_closed_ends_the_attempt() {
    let mut bench = bench(vec![call(&[("bash", r#"{"command":"ls"}"#)])]);
    let (events, receiver) = fleet::agent::EventSink::channel(4);
    drop(receiver);
    bench.input.events = events;
    let done = bench.run().await;
    assert_eq!(
        done.end.outcome,
        Outcome::failed(OutcomeClass::Interrupted, "the session log could not be written")
    );
    assert_eq!(done.requests.len(), 0);
}

/// Fails once in the middle of an answer, then answers.
struct CutOnce(Mutex<u32>);

impl Model for CutOnce {
    fn complete<'a>(
        &'a self,
        _request: &'a Request,
        _cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Answer, ModelError>> {
        let mut asked = self.0.lock().expect("no test panics in here");
        *asked += 1;
        let answered = if *asked == 1 {
            Err(ModelError {
                class: ModelErrorClass::Transient,
                provider: "lab".to_owned(),
                message: "cut".to_owned(),
                retry_after: None,
                perhaps_billed: true,
                window_tokens: None,
            })
        } else {
            Ok(Answer {
                text: "done".to_owned(),
                calls: Vec::new(),
                reasoning: None,
                stop: StopReason::EndTurn,
                usage: Some(super::bench::usage(1, 1)),
            })
        };
        futures_util::future::ready(answered).boxed()
    }
}

#[tokio::test]
async fn an_answer_that_was_cut_off_is_charged_as_an_estimate() {
    let clock = SimulatedClock::starting_at(Timestamp::UNIX_EPOCH);
    let bench = bench_with(CutOnce(Mutex::new(0)), clock);
    let (done, _) = run_through_retries(bench).await;
    let requested = done.log.events().into_iter().find_map(|event| match event {
        EventKind::ModelRequested { estimated_tokens, .. } => Some(estimated_tokens),
        _ => None,
    });
    assert_eq!(Some(done.end.usage.input_tokens), requested.map(|estimate| estimate + 1));
    assert!(done.end.usage.estimated);
}

#[tokio::test]
async fn everything_recorded_is_stored_before_a_request_is_sent() {
    let mut bench = bench(vec![call(&[("bash", r#"{"command":"ls"}"#)]), say("done")]);
    let (events, mut wanted) = fleet::agent::EventSink::channel(1);
    bench.input.events = events;
    let requests = Arc::clone(&bench.requests);
    let running = tokio::spawn(bench.run());
    let mut order = Vec::new();
    while let Some(request) = wanted.recv().await {
        let sent = requests.lock().expect("no test panics in here").len();
        match request {
            fleet::agent::LogRequest::Event(event) => {
                if matches!(*event, EventKind::ModelRequested { .. }) {
                    order.push(("requested", sent));
                }
            }
            fleet::agent::LogRequest::Flush(stored) => {
                order.push(("flush", sent));
                stored.send(()).expect("the loop waits");
            }
        }
    }
    running.await.expect("the attempt ends");
    assert_eq!(order, [("requested", 0), ("flush", 0), ("requested", 1), ("flush", 1)]);
}
