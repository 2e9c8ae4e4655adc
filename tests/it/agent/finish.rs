//! What must hold before a run counts as a success.

use fleet::agent::Completion;
use fleet::run::{Outcome, OutcomeClass};

use super::bench::{bench, call, say};
use crate::env::sandbox_double::{CommandEnd, exits};

#[tokio::test]
async fn a_run_whose_checks_pass_is_a_success() {
    let mut bench = bench(vec![
        call(&[("write_file", r##"{"path":"report.md","content":"# done"}"##)]),
        call(&[("publish_artifact", r#"{"path":"/w/report.md"}"#)]),
        say("written"),
    ]);
    bench.input.completion = Completion {
        artifacts: vec!["report.md".to_owned()],
        shell: Some("test -s report.md".to_owned()),
        required_tools: vec!["write_file".to_owned()],
        output_schema: None,
    };
    let done = bench.run().await;
    assert_eq!(done.end.outcome, Outcome::success());
    assert_eq!(done.end.answer.as_deref(), Some("written"));
    assert_eq!(done.end.artifacts.len(), 1);
    assert_eq!(done.end.artifacts[0].path, "report.md");
    assert_eq!(done.end.artifacts[0].size, 6);
    assert_eq!(
        done.log.kinds(),
        [
            "model_requested",
            "model_answered",
            "tool_started",
            "tool_finished",
            "model_requested",
            "model_answered",
            "tool_started",
            "tool_finished",
            "artifact_published",
            "model_requested",
            "model_answered",
            "gate_checked",
            "gate_checked",
            "gate_checked",
        ]
    );
}

#[tokio::test]
async fn a_run_without_any_check_is_unverified() {
    let done = bench(vec![say("all done, trust me")]).run().await;
    assert_eq!(done.end.outcome.class, OutcomeClass::Unverified);
    assert_eq!(done.end.answer.as_deref(), Some("all done, trust me"));
}

#[tokio::test]
async fn a_failing_check_sends_the_loop_round_with_its_output() {
    let mut bench =
        bench(vec![say("done"), call(&[("bash", r#"{"command":"fix"}"#)]), say("really done")]);
    bench.input.completion.required_tools = vec!["bash".to_owned()];
    let done = bench.run().await;
    assert_eq!(done.end.outcome, Outcome::success());
    assert_eq!(done.requests.len(), 3);
    let told = format!("{:?}", done.requests[1].messages.last());
    assert!(told.contains("these tools must succeed at least once: bash"), "{told}");
}

#[tokio::test]
async fn a_check_that_never_passes_ends_as_completion_failed_after_twenty_rounds() {
    let mut bench = bench(vec![say("done")]);
    bench.input.completion.shell = Some("make test".to_owned());
    bench.sandbox.on_command("make test", exits(2, "1 failed\n"));
    let done = bench.run().await;
    assert_eq!(
        done.end.outcome,
        Outcome::failed(
            OutcomeClass::CompletionFailed,
            "shell: the check `make test` exited with 2 (after 20 enforcement rounds)"
        )
    );
    assert_eq!(done.requests.len(), 21);
    let told = format!("{:?}", done.requests[1].messages.last());
    assert!(told.contains("1 failed"), "{told}");
}

#[tokio::test]
async fn an_open_plan_ends_as_enforcement_rounds() {
    let plan = r#"{"action":"set","items":[{"id":"1","title":"read"}]}"#;
    let mut bench = bench(vec![call(&[("task_tracker", plan)]), say("done")]);
    bench.input.completion.shell = Some("true".to_owned());
    let done = bench.run().await;
    assert_eq!(
        done.end.outcome,
        Outcome::failed(
            OutcomeClass::EnforcementRounds,
            "plan: the plan has 1 open items: 1 (read) (after 20 enforcement rounds)"
        )
    );
}

#[tokio::test]
async fn a_published_file_that_is_gone_again_does_not_count() {
    let mut bench = bench(vec![
        call(&[("write_file", r#"{"path":"a","content":"x"}"#)]),
        call(&[("publish_artifact", r#"{"path":"a"}"#)]),
        call(&[("bash", r#"{"command":"rm a"}"#)]),
        say("done"),
    ]);
    bench.input.completion.artifacts = vec!["a".to_owned()];
    bench.sandbox.on_command("rm a", CommandEnd::Removes("a"));
    let done = bench.run().await;
    assert_eq!(done.end.outcome.class, OutcomeClass::CompletionFailed);
}

#[tokio::test]
async fn a_required_tool_that_is_not_offered_ends_the_run_before_it_spends() {
    let mut bench = bench(vec![say("done")]);
    bench.input.tools.retain(|tool| tool.as_str() != "bash");
    bench.input.completion.required_tools = vec!["bash".to_owned()];
    let done = bench.run().await;
    assert_eq!(
        done.end.outcome,
        Outcome::failed(
            OutcomeClass::DeniedTool,
            "completion.required_tools names \"bash\", which this run may not use"
        )
    );
    assert_eq!(done.requests.len(), 0);
}

/// An attempt whose answer must have a number of rows.
fn with_schema(turns: Vec<fleet::model::ScriptedTurn>) -> super::bench::Bench {
    let schema = serde_json::json!({
        "type": "object", "properties": {"rows": {"type": "integer"}}, "required": ["rows"],
    });
    let mut bench = bench(turns);
    bench.input.completion.output_schema =
        Some(fleet::run::OutputSchema::new(&schema).expect("a schema"));
    bench
}

#[tokio::test]
async fn an_answer_in_another_form_may_be_corrected_twice() {
    let done = with_schema(vec![say("3 rows"), say("{\"rows\": \"3\"}"), say("{\"rows\": 3}")])
        .run()
        .await;
    assert_eq!(done.end.outcome, Outcome::success());
    assert_eq!(done.end.output, Some(serde_json::json!({"rows": 3})));
    let told = done.requests[2].messages.last().expect("a message");
    let told = format!("{told:?}");
    assert!(
        told.contains("not valid by the output schema: /rows: ") && told.contains("one JSON value"),
        "{told}"
    );

    let turns = vec![say("no"), say("{}"), say("[]"), say("{\"rows\": 3}")];
    let done = with_schema(turns).run().await;
    assert_eq!(done.end.outcome.class, OutcomeClass::StructuredOutput);
    assert!(
        done.end.outcome.reason.ends_with("(after 2 corrections)"),
        "{}",
        done.end.outcome.reason
    );
    assert_eq!((done.end.output, done.requests.len()), (None, 3));
    // What was paid for is there.
    assert_eq!(done.end.answer.as_deref(), Some("[]"));
}

#[tokio::test]
async fn an_earlier_answer_in_the_right_form_is_no_result() {
    let early = call(&[("bash", r#"{"command":"ls"}"#)]);
    let early = fleet::model::ScriptedTurn { text: "{\"rows\": 3}".to_owned(), ..early };
    let done = with_schema(vec![early, say(""), say(""), say("")]).run().await;
    assert_eq!(done.end.outcome.class, OutcomeClass::StructuredOutput);
}

#[tokio::test]
async fn a_model_that_gives_the_task_up_ends_the_run_whatever_else_holds() {
    let abort = ("confirm_audit", r#"{"status":"abort","summary":"there is no stock.csv"}"#);
    let mut bench = bench(vec![call(&[abort, ("bash", r#"{"command":"ls"}"#)]), say("done")]);
    bench.input.completion.required_tools = vec!["confirm_audit".to_owned()];
    let done = bench.run().await;
    assert_eq!(
        done.end.outcome,
        Outcome::failed(
            OutcomeClass::AuditAbort,
            "the model gave the task up: there is no stock.csv"
        )
    );
    // The second call has its result too, and did not run.
    let results = done.log.results();
    assert_eq!((results.len(), done.requests.len()), (2, 1));
    assert!(results[1].3.starts_with("not executed: the model gave the task up"), "{results:?}");
    assert_eq!(done.sandbox.calls(), []);
}

#[tokio::test]
async fn confirming_alone_passes_no_gate_and_an_empty_word_is_refused() {
    let empty = ("confirm_audit", r#"{"status":"done","summary":" "}"#);
    let done = ("confirm_audit", r#"{"status":"done","summary":"counted"}"#);
    let done = bench(vec![call(&[empty]), call(&[done]), say("done")]).run().await;
    let errors: Vec<bool> = done.log.results().iter().map(|result| result.2).collect();
    assert_eq!(errors, [true, false]);
    assert_eq!(done.end.outcome.class, OutcomeClass::Unverified);
}
