//! Every call gets exactly one result, whatever happens.

use std::time::Duration;

use fleet::model::{Message, ScriptedCall, ScriptedTurn, StopReason};
use fleet::run::{CancelReason, EventKind, Outcome, OutcomeClass};
use fleet::sandbox::Call;

use super::bench::{Finished, bench, call, say, usage};
use crate::env::sandbox_double::{CommandEnd, exits};

const LS: (&str, &str) = ("bash", r#"{"command":"ls"}"#);

/// The results of the last exchange, as they go back to the model.
fn results_sent(done: &Finished, request: usize) -> Vec<(String, String, bool)> {
    let last = done.requests[request].messages.last().expect("the request has messages");
    match &**last {
        Message::Tools(results) => results
            .iter()
            .map(|result| (result.call_id.clone(), result.content.clone(), result.is_error))
            .collect(),
        other => panic!("the last message holds no results: {other:?}"),
    }
}

#[tokio::test]
async fn malformed_arguments_become_an_error_and_are_stored_as_json() {
    let done = bench(vec![call(&[("view_file", r#"{"path":"a"#)]), say("so be it")]).run().await;
    let told = done.only_result();
    assert!(told.starts_with("not executed: the arguments are not valid JSON"), "{told}");
    let stored = done.requests[1].messages.iter().find_map(|message| match &**message {
        Message::Assistant { calls, .. } => Some(calls[0].arguments.clone()),
        _ => None,
    });
    assert_eq!(stored.as_deref(), Some(r#"{"invalid_arguments":"{\"path\":\"a"}"#));
    assert_eq!(done.sandbox.calls(), []);
}

#[tokio::test]
async fn unknown_tools_and_tools_off_the_roster_become_errors_that_name_the_tools() {
    let mut bench = bench(vec![call(&[("rm_rf", "{}"), LS]), say("so be it")]);
    bench.input.tools.retain(|tool| tool.as_str() == "view_file");
    let done = bench.run().await;
    let told: Vec<_> = done.log.results().into_iter().map(|(_, _, _, output)| output).collect();
    assert_eq!(
        told,
        [
            "there is no tool \"rm_rf\"; the tools are: view_file",
            "there is no tool \"bash\"; the tools are: view_file",
        ]
    );
}

#[tokio::test]
async fn empty_and_null_arguments_are_no_arguments() {
    let none = |id: &str, arguments: &str| ScriptedCall {
        id: Some(id.to_owned()),
        name: "bash".to_owned(),
        arguments: arguments.to_owned(),
    };
    let turn = ScriptedTurn {
        calls: vec![none("a", ""), none("b", "null")],
        usage: Some(usage(1, 1)),
        ..ScriptedTurn::default()
    };
    let done = bench(vec![turn, say("so be it")]).run().await;
    let missing = "not executed: bash: argument list: missing field `command`".to_owned();
    assert_eq!(
        done.log.results(),
        [
            ("a".to_owned(), "bash".to_owned(), true, missing.clone()),
            ("b".to_owned(), "bash".to_owned(), true, missing),
        ]
    );
}

#[tokio::test]
async fn a_call_of_an_answer_that_was_cut_off_is_never_executed() {
    let cut = ScriptedTurn {
        stop: Some(StopReason::Length),
        ..call(&[("write_file", r#"{"path":"a","content":"half"}"#)])
    };
    let done = bench(vec![cut, say("so be it")]).run().await;
    assert!(done.only_result().starts_with("not executed: your answer was cut off"));
    assert_eq!(done.sandbox.calls(), []);
    assert_eq!(done.requests.len(), 2);
}

#[tokio::test]
async fn equal_and_empty_ids_are_told_apart() {
    let with_id = |id: &str, command: &str| ScriptedCall {
        id: Some(id.to_owned()),
        name: "bash".to_owned(),
        arguments: format!(r#"{{"command":"{command}"}}"#),
    };
    let turn = ScriptedTurn {
        calls: vec![
            with_id("x", "1"),
            with_id("x", "2"),
            with_id("", "3"),
            with_id("", "4"),
            with_id("call_1", "5"),
        ],
        usage: Some(usage(1, 1)),
        ..ScriptedTurn::default()
    };
    let again = ScriptedTurn { calls: vec![with_id("x", "6")], ..turn.clone() };
    let done = bench(vec![turn, again, say("so be it")]).run().await;
    let ids: Vec<_> = done.log.results().into_iter().map(|(id, ..)| id).collect();
    assert_eq!(ids, ["x", "call_1", "call_2", "call_3", "call_4", "call_5"]);
    let commands = done.sandbox.calls().into_iter().map(|call| match call {
        Call::Bash { command, .. } => command,
        other => panic!("unexpected {other:?}"),
    });
    assert_eq!(commands.collect::<Vec<_>>(), ["1", "2", "3", "4", "5", "6"]);
}

#[tokio::test]
async fn the_fourth_identical_call_is_refused() {
    let turns = (0..4).map(|_| call(&[LS])).chain([say("so be it")]).collect();
    let done = bench(turns).run().await;
    let errors: Vec<_> = done.log.results().into_iter().map(|(_, _, error, _)| error).collect();
    assert_eq!(errors, [false, false, false, true]);
    assert_eq!(done.sandbox.calls().len(), 3);
    let told = &done.log.results()[3].3;
    assert!(told.contains("made 3 times already"), "{told}");
}

#[tokio::test]
async fn a_panic_becomes_one_error_with_an_incident_and_the_run_goes_on() {
    let mut bench = bench(vec![call(&[("bash", r#"{"command":"boom"}"#), LS]), say("went on")]);
    bench.sandbox.on_command("boom", CommandEnd::Panics("the secret of the tool"));
    bench.input.completion.required_tools = vec!["bash".to_owned()];
    let done = bench.run().await;
    let results = done.log.results();
    assert_eq!(results.len(), 2);
    assert!(results[0].3.contains("incident inc_"), "{results:?}");
    assert!(results[0].3.contains("possibly executed"), "{results:?}");
    assert_eq!((results[0].2, results[1].2), (true, false));
    assert_eq!(done.end.outcome, Outcome::success());
    let everything = format!("{:?} {:?} {:?}", done.end, done.log.events(), done.requests);
    assert!(!everything.contains("the secret of the tool"));
}

#[tokio::test]
async fn read_only_calls_of_one_answer_run_beside_each_other_and_keep_their_order() {
    let view = |path: &str| format!(r#"{{"path":"{path}"}}"#);
    let (a, b) = (view("a"), view("b"));
    let bench = bench(vec![
        call(&[("view_file", &a), ("task_tracker", r#"{"action":"view"}"#), ("view_file", &b)]),
        say("ok"),
    ]);
    bench.sandbox.put("a", b"1\n");
    bench.sandbox.put("b", b"2\n");
    let done = bench.run().await;
    assert_eq!(
        done.log.kinds()[2..8],
        [
            "tool_started",
            "tool_started",
            "tool_started",
            "tool_finished",
            "tool_finished",
            "tool_finished"
        ]
    );
    let sent: Vec<_> = results_sent(&done, 1).into_iter().map(|(_, text, _)| text).collect();
    assert!(sent[0].starts_with("1\n") && sent[2].starts_with("2\n"), "{sent:?}");
    assert_eq!(sent[1], "the plan is empty");
}

#[tokio::test]
async fn a_cancelled_tool_ends_at_once_and_the_rest_is_not_executed() {
    let bench = bench(vec![call(&[("bash", r#"{"command":"sleep"}"#), LS])]);
    bench.sandbox.on_command("sleep", CommandEnd::Hangs);
    let (cancel, sandbox) = (bench.cancel.clone(), bench.sandbox.clone());
    let running = tokio::spawn(bench.run());
    sandbox.wait_for_calls(1).await;
    cancel.cancel(CancelReason::Operator);
    let done = running.await.expect("the attempt ends");
    assert_eq!(
        done.end.outcome,
        Outcome::failed(OutcomeClass::Cancelled, "cancelled by the operator")
    );
    let told: Vec<_> = done.log.results().into_iter().map(|(_, _, _, output)| output).collect();
    assert_eq!(
        told,
        [
            "stopped, possibly executed: cancelled by the operator",
            "not executed: cancelled by the operator",
        ]
    );
    assert_eq!(sandbox.calls().len(), 1);
}

#[tokio::test]
async fn the_wall_time_ends_a_tool_that_hangs() {
    let mut bench = bench(vec![call(&[("bash", r#"{"command":"sleep"}"#)])]);
    bench.sandbox.on_command("sleep", CommandEnd::Hangs);
    bench.input.limits.wall_deadline = Some(bench.clock.now() + Duration::from_secs(60));
    let (clock, sandbox) = (bench.clock.clone(), bench.sandbox.clone());
    let running = tokio::spawn(bench.run());
    sandbox.wait_for_calls(1).await;
    clock.advance(Duration::from_secs(60));
    let done = running.await.expect("the attempt ends");
    assert_eq!(
        done.end.outcome,
        Outcome::failed(OutcomeClass::WallTimeout, "the wall time limit was reached")
    );
}

#[tokio::test]
async fn a_sandbox_that_dies_ends_the_attempt_as_transient_with_the_reason() {
    let bench = bench(vec![call(&[("bash", r#"{"command":"fill"}"#), LS])]);
    bench.sandbox.on_command("fill", CommandEnd::Dies("soft disk limit of 5120 MB was passed"));
    let done = bench.run().await;
    assert_eq!(
        done.end.outcome,
        Outcome::failed(
            OutcomeClass::Transient,
            "the sandbox ended during the run: soft disk limit of 5120 MB was passed"
        )
    );
    let errors: Vec<_> = done.log.results().into_iter().map(|(_, _, error, _)| error).collect();
    assert_eq!(errors, [true, true]);
}

#[tokio::test]
async fn a_tool_is_logged_before_it_runs_and_its_end_says_how_it_went() {
    let bench = bench(vec![call(&[("bash", r#"{"command":"make"}"#)]), say("so be it")]);
    bench.sandbox.on_command("make", exits(2, "no rule\n"));
    let done = bench.run().await;
    assert_eq!(
        done.log.events()[2..4],
        [
            EventKind::ToolStarted {
                call_id: "scripted_1_0".to_owned(),
                tool: "bash".to_owned(),
                effects: false,
            },
            EventKind::ToolFinished {
                call_id: "scripted_1_0".to_owned(),
                tool: "bash".to_owned(),
                is_error: true,
                output: "no rule\n[exit 2]".to_owned(),
                exit_code: Some(2),
                duration_ms: 0,
                effects: false,
            },
        ]
    );
    assert!(!done.end.effects);
}
