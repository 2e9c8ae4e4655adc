//! No secret reaches the disk.

use fleet::run::{Artifact, Event, EventKind, LoggedCall, Outcome, OutcomeClass, RunState, Usage};
use fleet::secrets::Redactor;
use fleet::store::AttemptFinish;

use super::bench::{Bench, finish, now};

const LITERAL: &str = "correct horse/battery";
const SHAPE: &str = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";

#[tokio::test]
async fn a_planted_secret_is_nowhere_in_the_files() {
    let redactor = Redactor::default();
    redactor.register(LITERAL);
    let bench = Bench::with(redactor);
    let claimed = bench.running("report", 1).await;
    let leak = format!("it is {LITERAL}, or {SHAPE}!");
    let event = |kind| Event { at: now(), attempt: 1, kind };
    let events = vec![
        event(EventKind::Warned { message: leak.clone() }),
        event(EventKind::ModelAnswered {
            model: "m".into(),
            round: 1,
            text: leak.clone(),
            tool_calls: vec![LoggedCall {
                call_id: "1".into(),
                tool: "bash".into(),
                arguments: serde_json::json!({ "command": leak }).to_string(),
            }],
            stop: "stop".into(),
            usage: Usage::default(),
            duration_ms: 1,
        }),
    ];
    let (run, token) = (claimed.run_id.clone(), claimed.token);
    bench.store.append_events(run.clone(), token, events).await.expect("appended");
    let artifact = Artifact {
        name: leak.clone(),
        path: leak.clone(),
        description: Some(leak.clone()),
        size: 1,
        sha256: None,
    };
    let end = AttemptFinish {
        outcome: Outcome::failed(OutcomeClass::Config, leak.clone()),
        dead_letter: Some(fleet::run::DeadLetterClass::NonRetryable),
        answer: Some(leak.clone()),
        output: Some(serde_json::json!({ "found": leak })),
        artifacts: vec![artifact],
        ..finish(OutcomeClass::Config, RunState::DeadLettered)
    };
    bench.store.finish_attempt(run.clone(), token, end).await.expect("ends");
    assert_eq!(files_that_hold(&bench, LITERAL), Vec::<String>::new());
    assert_eq!(files_that_hold(&bench, SHAPE), Vec::<String>::new());
    assert_ne!(files_that_hold(&bench, "[redacted]"), Vec::<String>::new());
    let row = bench.store.run(run).await.expect("is there");
    assert_eq!(row.reason.as_deref(), Some("it is [redacted], or [redacted]!"));
}

fn files_that_hold(bench: &Bench, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(bench.dir.path()).expect("directory") {
        let path = entry.expect("entry").path();
        let bytes = std::fs::read(&path).expect("file");
        if bytes.windows(text.len()).any(|window| window == text.as_bytes()) {
            found.push(path.display().to_string());
        }
    }
    found
}
