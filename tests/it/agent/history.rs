//! Whatever a model answers, the history stays one that every provider accepts.

use std::collections::HashSet;

use fleet::model::{Message, Request, ScriptedCall, ScriptedTurn, StopReason};
use proptest::prelude::*;

use super::bench::{bench, usage};

fn any_call() -> impl Strategy<Value = ScriptedCall> {
    let id = proptest::option::of(prop_oneof![
        Just(String::new()),
        Just("x".to_owned()),
        Just("call_1".to_owned()),
        "[a-c]{1,2}",
    ]);
    let name = prop_oneof![
        Just("bash".to_owned()),
        Just("view_file".to_owned()),
        Just("task_tracker".to_owned()),
        Just("publish_artifact".to_owned()),
        ".{0,8}",
    ];
    let arguments = prop_oneof![
        Just(r#"{"command":"ls"}"#.to_owned()),
        Just(r#"{"path":"a"}"#.to_owned()),
        Just(r#"{"action":"view"}"#.to_owned()),
        Just(r#"{"path":"a"#.to_owned()),
        Just("null".to_owned()),
        ".{0,12}",
    ];
    (id, name, arguments).prop_map(|(id, name, arguments)| ScriptedCall { id, name, arguments })
}

pub(super) fn any_turn() -> impl Strategy<Value = ScriptedTurn> {
    let stop = prop_oneof![
        3 => Just(None),
        1 => Just(Some(StopReason::Length)),
        1 => Just(Some(StopReason::Refused)),
        1 => Just(Some(StopReason::EndTurn)),
    ];
    ("[a-z]{0,4}", proptest::collection::vec(any_call(), 0..5), stop).prop_map(
        |(text, calls, stop)| ScriptedTurn {
            text,
            calls,
            stop,
            usage: Some(usage(10, 1)),
            ..ScriptedTurn::default()
        },
    )
}

/// Panics unless each call is followed by its one result, ids are distinct and arguments are objects.
pub(super) fn check(request: &Request) {
    let mut ids = HashSet::new();
    let mut messages = request.messages.iter().peekable();
    while let Some(message) = messages.next() {
        match &**message {
            Message::User(text) => assert!(!text.is_empty()),
            Message::Tools(results) => panic!("results without calls: {results:?}"),
            Message::Assistant { text, calls, .. } => {
                assert!(!text.is_empty() || !calls.is_empty(), "an empty message");
                if calls.is_empty() {
                    continue;
                }
                for call in calls {
                    assert!(ids.insert(call.id.clone()) && !call.id.is_empty(), "{call:?}");
                    let arguments: serde_json::Value =
                        serde_json::from_str(&call.arguments).expect("arguments are JSON");
                    assert!(arguments.is_object(), "{call:?}");
                    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
                    assert!(!call.name.is_empty() && call.name.chars().all(plain), "{call:?}");
                }
                match messages.next().map(|message| &**message) {
                    Some(Message::Tools(results)) => {
                        let answered: Vec<_> = results.iter().map(|r| &r.call_id).collect();
                        assert_eq!(answered, calls.iter().map(|c| &c.id).collect::<Vec<_>>());
                    }
                    other => panic!("calls without results, but {other:?}"),
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn each_call_has_exactly_one_result(turns in proptest::collection::vec(any_turn(), 1..6)) {
        let calls: usize = turns.iter().map(|turn| turn.calls.len()).sum();
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let done = runtime.block_on(async {
            let mut bench = bench(turns);
            bench.input.completion.shell = Some("never".to_owned());
            bench.input.limits.max_iterations = Some(40);
            bench.sandbox.on_command("never", crate::env::sandbox_double::exits(1, ""));
            bench.run().await
        });
        done.requests.iter().for_each(check);
        prop_assert_eq!(done.log.results().len(), calls);
    }
}
