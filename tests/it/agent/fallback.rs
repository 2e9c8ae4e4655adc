//! What answers when a model's provider fails.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fleet::agent::Breaker;
use fleet::clock::SimulatedClock;
use fleet::model::{
    Answer, CallRequest, Message, Model, ModelError, ModelErrorClass, Request, ScriptedFault,
    ScriptedTurn, StopReason,
};
use fleet::run::{EventKind, Outcome, OutcomeClass};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::bench::{Finished, bench, bench_with, call, say};
use super::ends::{fault, run_through_retries};

/// Thinks and calls a tool, and fails from then on.
struct ThinksAndFails(AtomicBool);

impl Model for ThinksAndFails {
    fn complete<'a>(
        &'a self,
        _request: &'a Request,
        _cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Answer, ModelError>> {
        let answer = if self.0.swap(true, Ordering::Relaxed) {
            Err(ModelError {
                class: ModelErrorClass::Transient,
                provider: "scripted".to_owned(),
                message: "busy".to_owned(),
                retry_after: None,
                perhaps_billed: false,
                window_tokens: None,
            })
        } else {
            Ok(Answer {
                text: String::new(),
                calls: vec![CallRequest {
                    id: "a".to_owned(),
                    name: "bash".to_owned(),
                    arguments: r#"{"command":"true"}"#.to_owned(),
                }],
                reasoning: Some(serde_json::json!([{"type": "thinking", "thinking": "hm"}])),
                stop: StopReason::ToolCalls,
                usage: None,
            })
        };
        std::future::ready(answer).boxed()
    }
}

/// (from, to) of each change of models.
fn switches(done: &Finished) -> Vec<(String, String)> {
    let switch = |event| match event {
        EventKind::ModelSwitched { from, to, .. } => Some((from, to)),
        _ => None,
    };
    done.log.events().into_iter().filter_map(switch).collect()
}

fn asked(done: &Finished) -> Vec<&str> {
    done.requests.iter().map(|request| request.model.as_str()).collect()
}

#[tokio::test]
async fn the_fallback_goes_on_from_the_last_completed_step_and_stays() {
    let turns = vec![call(&[("bash", r#"{"command":"true"}"#)]), fault(503, 4, None)];
    let mut bench = bench(turns);
    bench.input.completion.shell = Some("true".to_owned());
    let turns = vec![call(&[("bash", r#"{"command":"date"}"#)]), say("done")];
    bench.input.fallback = Some(bench.another("second", turns));
    let (done, waits) = run_through_retries(bench).await;

    assert_eq!(done.end.outcome, Outcome::success());
    assert_eq!(waits, [1000, 2000, 4000]);
    assert_eq!(asked(&done), ["m", "m", "m", "m", "m", "second", "second"]);
    assert_eq!(switches(&done), [("scripted/m".to_owned(), "other/second".to_owned())]);
    // The call that ran before is in the history, and was not made again.
    assert_eq!(done.requests[5].messages.len(), 3);
    assert_eq!(done.log.results().len(), 2);
}

#[tokio::test]
async fn what_one_provider_thought_is_not_sent_to_another() {
    let clock = SimulatedClock::starting_at(Timestamp::UNIX_EPOCH);
    let mut bench = bench_with(ThinksAndFails(AtomicBool::new(false)), clock);
    bench.input.fallback = Some(bench.another("second", vec![say("done"), say("done")]));
    let (done, _) = run_through_retries(bench).await;
    let thought = |number: usize| {
        let thinks =
            |message: &Message| matches!(message, Message::Assistant { reasoning: Some(_), .. });
        done.requests[number].messages.iter().any(|message| thinks(message))
    };
    assert_eq!((thought(1), thought(5)), (true, false));
}

#[tokio::test]
async fn a_fallback_that_fails_too_ends_the_attempt_with_its_own_words() {
    let mut bench = bench(vec![fault(503, 9, None)]);
    bench.input.fallback = Some(bench.another("second", vec![fault(529, 9, None)]));
    let (done, waits) = run_through_retries(bench).await;
    assert_eq!(waits, [1000, 2000, 4000, 1000, 2000, 4000]);
    assert_eq!(
        done.end.outcome,
        Outcome::failed(OutcomeClass::Transient, "model second: status 529: no luck")
    );
}

#[tokio::test]
async fn a_mistake_of_the_bundle_is_not_hidden_by_the_fallback() {
    let mut bench = bench(vec![fault(401, 9, None)]);
    bench.input.fallback = Some(bench.another("second", vec![say("done")]));
    let done = bench.run().await;
    assert_eq!((done.end.outcome.class, asked(&done)), (OutcomeClass::Config, vec!["m"]));
}

/// A breaker that the failures of another run have opened.
async fn opened() -> Breaker {
    let breaker = Breaker::default();
    for _ in 0..2 {
        let mut bench = bench(vec![fault(503, 9, None)]);
        bench.input.model.breaker = breaker.clone();
        bench.input.fallback = Some(bench.another("second", vec![say("done")]));
        run_through_retries(bench).await;
    }
    breaker
}

#[tokio::test]
async fn a_provider_that_failed_other_runs_is_left_alone_for_the_fallback() {
    let mut bench = bench(vec![say("never asked")]);
    bench.input.model.breaker = opened().await;
    bench.input.fallback = Some(bench.another("second", vec![say("done"), say("done")]));
    let done = bench.run().await;
    assert_eq!(asked(&done), ["second"]);
    assert_eq!(switches(&done), [("scripted/m".to_owned(), "other/second".to_owned())]);
}

#[tokio::test]
async fn without_a_fallback_the_request_waits_until_the_breaker_closes() {
    let mut bench = bench(vec![say("done")]);
    bench.input.model.breaker = opened().await;
    let (clock, log) = (bench.clock.clone(), bench.log.clone());
    let mut running = tokio::spawn(bench.run());
    tokio::select! {
        _ = &mut running => panic!("it asked a provider whose breaker is open"),
        () = log.wait_for(|event| matches!(event, EventKind::Warned { .. })) => {}
    }
    // The other runs failed at most 8 s after the epoch, and a breaker is open for 60.
    clock.advance(Duration::from_secs(80));
    let done = running.await.expect("the attempt ends");
    assert_eq!(asked(&done), ["m"]);
}

#[tokio::test]
async fn an_answer_that_blames_the_request_shows_that_the_provider_is_up() {
    let breaker = Breaker::default();
    for turns in [vec![fault(503, 4, None)], vec![fault(400, 1, None)], vec![fault(503, 4, None)]] {
        let mut bench = bench(turns);
        bench.input.model.breaker = breaker.clone();
        run_through_retries(bench).await;
    }
    let mut last = bench(vec![ScriptedTurn {
        fault: Some(ScriptedFault {
            status: 401,
            message: "no".to_owned(),
            retry_after: None,
            times: 1,
        }),
        ..ScriptedTurn::default()
    }]);
    last.input.model.breaker = breaker;
    assert_eq!(last.run().await.requests.len(), 1, "the breaker was open");
}
