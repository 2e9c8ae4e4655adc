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
