//! Runs over each wire format: the same loop, whatever the provider speaks.

use serde_json::json;

use crate::env::model_server::{ModelServer, streams_events};
use crate::env::world::World;

#[test]
fn a_run_over_messages_calls_tools_and_counts_what_it_cost() {
    let call = |id: &str, tool: &str, input: serde_json::Value| {
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
