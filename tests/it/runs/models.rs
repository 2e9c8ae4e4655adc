//! Runs over each wire format: the same loop, whatever the provider speaks.

use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};

use crate::env::model_server::{
    ModelServer, Reply, refuses, streams_call, streams_events, streams_text,
};
use crate::env::world::World;

#[test]
fn a_run_over_messages_calls_tools_and_counts_what_it_cost() {
    let call = |id: &str, tool: &str, input: Value| {
        streams_events(&[
            json!({"type": "message_start", "message": {"usage": {
                "input_tokens": 100, "cache_read_input_tokens": 900, "output_tokens": 1
            }}}),
            json!({"type": "content_block_start", "index": 0,
                   "content_block": {"type": "tool_use", "id": id, "name": tool, "input": {}}}),
            json!({"type": "content_block_delta", "index": 0,
                   "delta": {"type": "input_json_delta", "partial_json": input.to_string()}}),
            json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"},
                   "usage": {"output_tokens": 10}}),
            json!({"type": "message_stop"}),
        ])
    };
    let words = streams_events(&[
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 100}}}),
        json!({"type": "content_block_start", "index": 0,
               "content_block": {"type": "text", "text": "done"}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"},
               "usage": {"output_tokens": 10}}),
        json!({"type": "message_stop"}),
    ]);
    let server = ModelServer::start(vec![
        call("a", "bash", json!({"command": "echo hello > out.txt"})),
        call("b", "publish_artifact", json!({"path": "out.txt"})),
        words,
    ]);
    let manifest = format!(
        "version: 1\nname: messages\ndefaults: {{model: lab/m}}\nproviders:\n  - {{name: lab, type: anthropic, base_url: '{}'}}\npricing: {{fallback: {{input_per_million: 10, cached_per_million: 1, output_per_million: 100}}}}\n",
        server.base_url()
    );
    let world = World::new(&[
        ("manifest.yaml", &manifest),
        ("tasks/ask.yaml", "prompt: Say hello.\ncompletion: {artifacts: [out.txt]}\n"),
    ]);
    let run = world.run_task("ask");

    assert_eq!(run["state"], "success", "{run:#}");
    // Twice 100 new, 900 cached and 10 written, once 100 and 10.
    let cost = 2.0 * (100.0 * 10.0 + 900.0 + 10.0 * 100.0) / 1e6 + (100.0 * 10.0 + 1000.0) / 1e6;
    let seen = run["cost_usd"].as_f64().expect("a cost");
    assert!((seen - cost).abs() < 1e-9, "{seen} instead of {cost}: {run:#}");
    let results = &server.asked()[2].body["messages"];
    assert_eq!(results[2]["content"][0]["tool_use_id"], "a", "{results:#}");
    assert_eq!(results[4]["content"][0]["type"], "tool_result", "{results:#}");
}

/// The same answer to a prompt that filled nearly all of a window of 1,000 tokens.
fn crowded(reply: Reply) -> Reply {
    match reply {
        Reply::Stream { events, end } => {
            let counted =
                |event: String| event.replace("\"prompt_tokens\":100", "\"prompt_tokens\":950");
            Reply::Stream { events: events.into_iter().map(counted).collect(), end }
        }
        other => other,
    }
}

/// The reasons of the compactions of a run of five steps, the fourth of which may be refused.
fn compactions(auto_compact: bool, refused: bool) -> Vec<String> {
    let step = AtomicU32::new(0);
    let server = ModelServer::answering(move |asked| {
        if asked.body.to_string().contains("You summarize") {
            return Some(streams_text("Goal\n  say hello"));
        }
        Some(crowded(match step.fetch_add(1, Ordering::Relaxed) {
            0..3 => streams_call("", "bash", r#"{"command":"echo hello > out.txt"}"#),
            3 if refused => {
                refuses(400, json!({"code": "context_length_exceeded", "message": "too long"}))
            }
            3 | 4 => streams_call("", "publish_artifact", r#"{"path":"out.txt"}"#),
            _ => streams_text("done"),
        }))
    });
    let manifest = format!(
        "version: 1\nname: long\ndefaults: {{model: lab/m}}\nproviders:\n  - {{name: lab, type: openai, base_url: '{}', context_window_tokens: 1000}}\n",
        server.base_url()
    );
    let task = format!(
        "prompt: Say hello.\ncompletion: {{artifacts: [out.txt]}}\nauto_compact: {auto_compact}\n"
    );
    let world = World::new(&[("manifest.yaml", &manifest), ("tasks/long.yaml", &task)]);
    let run = world.run_task("long");
    assert_eq!(run["state"], "success", "{run:#}");
    let id = run["run_id"].as_str().expect("an id");
    let logs = world.ok(&["runs", "logs", id, "--json"]);
    logs.lines()
        .map(|line| -> Value { serde_json::from_str(line).expect("a line of JSON") })
        .filter(|event| event["type"] == "context_compacted")
        .map(|event| event["reason"].as_str().expect("a reason").to_owned())
        .collect()
}

#[test]
fn a_refused_prompt_is_compacted_and_the_run_succeeds() {
    assert_eq!(compactions(false, true), ["overflow"]);
}

#[test]
fn a_task_with_auto_compact_makes_room_before_the_provider_refuses() {
    // Every round with two exchanges or more makes room first.
    let seen = compactions(true, false);
    assert!(!seen.is_empty() && seen.iter().all(|reason| reason == "pressure"), "{seen:?}");
}
