//! Conversations that outgrow the model's context window.

use std::sync::Arc;

use fleet::agent::ContextPolicy;
use fleet::model::{
    HttpModel, HttpSettings, Message, Model, Request, ScriptedFault, ScriptedTurn, WireFormat,
};
use fleet::run::{EventKind, NanoUsd, Outcome, OutcomeClass};
use proptest::prelude::*;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::bench::{Bench, Finished, bench, call, say, usage};
use super::history::{any_turn, check};
use crate::env::model_server::{ModelServer, streams_text};

const SUMMARY: &str = "Goal\n  count the files";

fn overflow(times: u32) -> ScriptedTurn {
    let fault = ScriptedFault {
        status: 400,
        message: "This model's maximum context length is 5000 tokens".to_owned(),
        retry_after: None,
        times,
    };
    ScriptedTurn { fault: Some(fault), ..ScriptedTurn::default() }
}

fn look(command: &str) -> ScriptedTurn {
    call(&[("bash", &serde_json::json!({"command": command}).to_string())])
}

fn is_summarizer(request: &Request) -> bool {
    request.system.contains("You summarize")
}

/// The texts of the user messages at a request's beginning.
fn preface<'a>(request: &'a Request) -> Vec<&'a str> {
    let text = |message: &'a Arc<Message>| match &**message {
        Message::User(text) => Some(text.as_str()),
        _ => None,
    };
    request.messages.iter().map_while(text).collect()
}

/// (reason, dropped messages, summarized) of each compaction.
fn compactions(done: &Finished) -> Vec<(String, u32, bool)> {
    let compacted = |event| match event {
        EventKind::ContextCompacted { reason, dropped_messages, summarized, .. } => {
            Some((reason, dropped_messages, summarized))
        }
        _ => None,
    };
    done.log.events().into_iter().filter_map(compacted).collect()
}

fn with_check(turns: Vec<ScriptedTurn>) -> Bench {
    let mut bench = bench(turns);
    bench.input.completion.shell = Some("true".to_owned());
    bench
}

#[tokio::test]
async fn a_refused_prompt_is_compacted_and_the_work_goes_on() {
    let turns =
        vec![look("a"), look("b"), look("c"), look("d"), overflow(1), say(SUMMARY), say("done")];
    let done = with_check(turns).run().await;

    assert_eq!(done.end.outcome, Outcome::success());
    assert_eq!(compactions(&done), [("overflow".to_owned(), 4, true)]);
    let last = &done.requests[6];
    let said = format!("[context compaction summary]\n{SUMMARY}");
    assert_eq!(preface(last), ["do it", said.as_str()]);
    // The newer two exchanges are as they were.
    assert_eq!(last.messages[2..], done.requests[4].messages[5..]);
    check(last);
    // The summarizer is offered nothing, and reads what was done.
    let asked = &done.requests[5];
    assert!(is_summarizer(asked) && asked.tools.is_empty(), "{asked:?}");
    let Message::User(read) = &*asked.messages[0] else { panic!("{asked:?}") };
    assert!(read.contains(r#"CALL bash {"command":"a"}"#), "{read}");
}

#[tokio::test]
async fn three_refusals_in_a_row_end_the_attempt_as_context_budget() {
    let turns = vec![
        look("a"),
        look("b"),
        look("c"),
        look("d"),
        overflow(1),
        say(SUMMARY),
        overflow(1),
        say(SUMMARY),
        overflow(1),
    ];
    let done = with_check(turns).run().await;
    assert_eq!(done.end.outcome.class, OutcomeClass::ContextBudget);
    assert_eq!(compactions(&done).len(), 2);
}

#[tokio::test]
async fn a_prompt_that_is_too_long_by_itself_ends_at_once() {
    let done = with_check(vec![overflow(9)]).run().await;
    assert_eq!(done.end.outcome.class, OutcomeClass::ContextBudget);
    assert_eq!((done.requests.len(), compactions(&done).len()), (1, 0));
}

/// Turns whose prompts are counted as 1,000 tokens more each.
fn growing(turns: Vec<ScriptedTurn>) -> Vec<ScriptedTurn> {
    (1..)
        .zip(turns)
        .map(|(number, turn)| ScriptedTurn { usage: Some(usage(number * 1000, 10)), ..turn })
        .collect()
}

fn small_window(mut bench: Bench, auto_compact: bool) -> Bench {
    bench.input.model.window_tokens = 5000;
    bench.input.context =
        ContextPolicy { warn_fraction: 0.75, compact_fraction: 0.9, auto_compact };
    bench
}

#[tokio::test]
async fn a_window_that_fills_up_is_told_once_and_unattended_work_is_not_rewritten() {
    let turns = growing(vec![look("a"), look("b"), look("c"), look("d"), look("e"), say("done")]);
    let done = small_window(with_check(turns), false).run().await;
    assert_eq!(done.end.outcome, Outcome::success());
    let pressures: Vec<_> = done
        .log
        .events()
        .into_iter()
        .filter(|event| matches!(event, EventKind::ContextPressure { .. }))
        .collect();
    let [EventKind::ContextPressure { tokens, window: 5000 }] = pressures[..] else {
        panic!("{pressures:?}")
    };
    assert!((4000..4100).contains(&tokens), "{tokens}");
    assert_eq!(compactions(&done), []);
}

#[tokio::test]
async fn with_auto_compact_the_older_half_is_summarized_before_the_window_is_full() {
    let mut turns = growing(vec![look("a"), look("b"), look("c"), look("d"), look("e")]);
    turns.extend([say(SUMMARY), say("done")]);
    let done = small_window(with_check(turns), true).run().await;
    assert_eq!(done.end.outcome, Outcome::success());
    assert_eq!(compactions(&done), [("pressure".to_owned(), 6, true)]);
    assert_eq!(done.requests.iter().filter(|request| is_summarizer(request)).count(), 1);
}

#[tokio::test]
async fn the_open_plan_is_told_again_once_and_the_last_summary_is_the_baseline() {
    let plan = call(&[(
        "task_tracker",
        r#"{"action":"set","items":[{"id":"1","title":"count","status":"in_progress"}]}"#,
    )]);
    let finish =
        call(&[("task_tracker", r#"{"action":"update","items":[{"id":"1","status":"done"}]}"#)]);
    let turns = vec![
        plan,
        look("a"),
        look("b"),
        look("c"),
        overflow(1),
        say("first summary"),
        look("d"),
        look("e"),
        overflow(1),
        say("second summary"),
        finish,
        say("done"),
    ];
    let done = with_check(turns).run().await;
    assert_eq!(done.end.outcome, Outcome::success());
    let plan = "[plan state after compaction]\n- 1 (in_progress): count";
    let told = |number: usize| preface(&done.requests[number]);
    assert_eq!(told(6), ["do it", "[context compaction summary]\nfirst summary", plan]);
    assert_eq!(told(10), ["do it", "[context compaction summary]\nsecond summary", plan]);
    let Message::User(read) = &*done.requests[9].messages[0] else { panic!("a user message") };
    assert!(read.starts_with("Update this summary."), "{read}");
    assert!(read.contains("first summary"), "{read}");
}

#[tokio::test]
async fn the_summary_is_paid_from_the_runs_account_and_left_out_without_budget() {
    let turns =
        || vec![look("a"), look("b"), look("c"), look("d"), overflow(1), say(SUMMARY), say("done")];
    // Each answer costs 100 in and 10 out: $0.0002.
    let done = with_check(turns()).run().await;
    assert_eq!(done.end.usage.cost_nano_usd, NanoUsd(6 * 200_000));
    let aux: Vec<_> = done
        .log
        .events()
        .into_iter()
        .filter_map(|event| match event {
            EventKind::AuxAnswered { purpose, usage, .. } => Some((purpose, usage.cost_nano_usd)),
            _ => None,
        })
        .collect();
    assert_eq!(aux, [("summarizer".to_owned(), NanoUsd(200_000))]);

    let mut poor = with_check(turns());
    poor.input.limits.max_cost = Some(NanoUsd(4 * 200_000 + 1));
    let done = poor.run().await;
    // The refused request cost nothing, the summary was still within the ceiling, the next was not.
    assert_eq!(done.end.outcome.class, OutcomeClass::CostCeiling);
    assert_eq!(done.requests.len(), 6);
}

#[tokio::test]
async fn a_summarizer_that_fails_leaves_a_line_that_is_true() {
    let turns = vec![
        look("a"),
        look("b"),
        look("c"),
        look("d"),
        overflow(1),
        ScriptedTurn {
            fault: Some(ScriptedFault {
                status: 401,
                message: "no".to_owned(),
                retry_after: None,
                times: 1,
            }),
            ..ScriptedTurn::default()
        },
        say("done"),
    ];
    let done = with_check(turns).run().await;
    assert_eq!(done.end.outcome, Outcome::success());
    assert_eq!(compactions(&done), [("overflow".to_owned(), 4, false)]);
    let told = preface(&done.requests[6])[1].to_owned();
    assert!(told.contains("4 earlier messages were taken out"), "{told}");
}

/// Panics unless the body is one that the provider takes: calls and results match, roles take turns.
fn check_chat_completions(body: &Value) {
    let messages = body["messages"].as_array().expect("messages");
    let mut open: Vec<&str> = Vec::new();
    let mut last = "";
    for message in messages {
        let role = message["role"].as_str().expect("a role");
        if role == "tool" {
            let id = message["tool_call_id"].as_str().expect("an id");
            assert_eq!(open.first(), Some(&id), "{body:#}");
            open.remove(0);
        } else {
            assert_eq!(open, Vec::<&str>::new(), "{body:#}");
            assert!(role != "user" || last != "user", "two user messages in a row: {body:#}");
        }
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        open.extend(calls.map(|call| call["id"].as_str().expect("an id")));
        last = role;
    }
    assert_eq!(open, Vec::<&str>::new(), "{body:#}");
}

fn check_messages(body: &Value) {
    let messages = body["messages"].as_array().expect("messages");
    let mut open: Vec<&str> = Vec::new();
    for (number, message) in messages.iter().enumerate() {
        let role = if number % 2 == 0 { "user" } else { "assistant" };
        assert_eq!(message["role"], role, "{body:#}");
        let blocks = message["content"].as_array().expect("blocks");
        assert!(!blocks.is_empty(), "{body:#}");
        let of_kind = |kind: &str, id: &str| -> Vec<&str> {
            let wanted = blocks.iter().filter(|block| block["type"] == *kind);
            wanted.map(|block| block[id].as_str().expect("an id")).collect()
        };
        assert_eq!(of_kind("tool_result", "tool_use_id"), open, "{body:#}");
        // Results come before anything else.
        let results = blocks.iter().take(open.len());
        assert!(results.into_iter().all(|block| block["type"] == "tool_result"), "{body:#}");
        open = of_kind("tool_use", "id");
    }
    assert_eq!(open, Vec::<&str>::new(), "{body:#}");
}

/// Writes requests in a wire format, on a real connection.
async fn written(requests: &[Request], format: WireFormat) -> Vec<Value> {
    let server = ModelServer::answering(|_| Some(streams_text("x")));
    let settings = HttpSettings::new("lab", format, server.base_url(), None);
    let model = HttpModel::new(settings).expect("usable settings");
    for request in requests {
        // What it answers is of no interest: one format's words are nothing to the other.
        let _ = model.complete(request, &CancellationToken::new()).await;
    }
    server.asked().into_iter().map(|asked| asked.body).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]
    #[test]
    fn any_history_after_any_compaction_is_valid_for_both_wire_formats(
        turns in proptest::collection::vec(prop_oneof![
            6 => any_turn(),
            1 => Just(overflow(1)),
        ], 1..12),
        window in 20_u64..400,
    ) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let mut bench = small_window(bench(turns), true);
            bench.input.model.window_tokens = window;
            bench.input.completion.shell = Some("never".to_owned());
            bench.input.limits.max_iterations = Some(30);
            bench.sandbox.on_command("never", crate::env::sandbox_double::exits(1, ""));
            let done = bench.run().await;
            done.requests.iter().for_each(check);
            for body in written(&done.requests, WireFormat::ChatCompletions).await {
                check_chat_completions(&body);
            }
            for body in written(&done.requests, WireFormat::Messages).await {
                check_messages(&body);
            }
        });
    }
}
