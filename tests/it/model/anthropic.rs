//! Messages: what is sent, what a stream turns into, and what its faults are.

use std::sync::Arc;

use fleet::model::{
    Answer, CallRequest, HttpModel, HttpSettings, Message, Model, ModelError, ModelErrorClass,
    StopReason, ToolResult, WireFormat, WireUsage,
};
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{KEY, request};
use crate::env::model_server::{
    ModelServer, Reply, SHORT_SILENCE, StreamEnd, refuses, streams_events,
};

fn model(server: &ModelServer) -> HttpModel {
    let key = Some(SecretString::from(KEY.to_owned()));
    let mut settings = HttpSettings::new("lab", WireFormat::Messages, server.base_url(), key);
    settings.idle_timeout = SHORT_SILENCE;
    HttpModel::new(settings).expect("the settings are usable")
}

async fn ask(reply: Reply) -> Result<Answer, ModelError> {
    let server = ModelServer::start(vec![reply]);
    model(&server).complete(&request(), &CancellationToken::new()).await
}

fn opening() -> Value {
    json!({"type": "message_start", "message": {"role": "assistant", "usage": {
        "input_tokens": 10, "cache_read_input_tokens": 40, "cache_creation_input_tokens": 5,
        "output_tokens": 1
    }}})
}

fn block(index: u64, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: u64, delta: Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn ending(stop: &str) -> [Value; 2] {
    [
        json!({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 7}}),
        json!({"type": "message_stop"}),
    ]
}

fn thinking_and_two_calls() -> Vec<Value> {
    let mut events = vec![
        opening(),
        block(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "let me "})),
        delta(0, json!({"type": "thinking_delta", "thinking": "see"})),
        delta(0, json!({"type": "signature_delta", "signature": "abc="})),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "ping"}),
        block(1, json!({"type": "text", "text": ""})),
        delta(1, json!({"type": "text_delta", "text": "I "})),
        delta(1, json!({"type": "text_delta", "text": "look"})),
        block(2, json!({"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {}})),
        delta(2, json!({"type": "input_json_delta", "partial_json": ""})),
        delta(2, json!({"type": "input_json_delta", "partial_json": "{\"command\":"})),
        delta(2, json!({"type": "input_json_delta", "partial_json": " \"ls\"}"})),
        block(3, json!({"type": "tool_use", "id": "toolu_2", "name": "view_file", "input": {}})),
    ];
    events.extend(ending("tool_use"));
    events
}

fn call(id: &str, name: &str, arguments: &str) -> CallRequest {
    CallRequest { id: id.to_owned(), name: name.to_owned(), arguments: arguments.to_owned() }
}

#[tokio::test]
async fn thinking_text_and_calls_in_pieces_become_one_answer_with_usage() {
    let answer = ask(streams_events(&thinking_and_two_calls())).await.expect("an answer");
    assert_eq!(
        answer,
        Answer {
            text: "I look".to_owned(),
            calls: vec![
                call("toolu_1", "bash", "{\"command\": \"ls\"}"),
                call("toolu_2", "view_file", "{}"),
            ],
            reasoning: Some(json!([
                {"type": "thinking", "thinking": "let me see", "signature": "abc="}
            ])),
            stop: StopReason::ToolCalls,
            // What was read from and written to the cache is part of the prompt.
            usage: Some(WireUsage {
                prompt_tokens: 55,
                cached_tokens: 40,
                completion_tokens: 7,
                cost_usd: None,
            }),
        }
    );
}

#[tokio::test]
async fn the_request_carries_key_version_tools_and_the_thinking_of_before() {
    let answer = ask(streams_events(&thinking_and_two_calls())).await.expect("an answer");
    let server = ModelServer::start(vec![streams_events(&thinking_and_two_calls())]);
    let mut second = request();
    let result = |id: &str| ToolResult {
        call_id: id.to_owned(),
        name: "bash".to_owned(),
        content: "[exit 0]".to_owned(),
        is_error: false,
    };
    second.messages.push(Arc::new(Message::Assistant {
        text: answer.text,
        calls: answer.calls,
        reasoning: answer.reasoning,
    }));
    second.messages.push(Arc::new(Message::Tools(vec![result("toolu_1"), result("toolu_2")])));
    model(&server).complete(&second, &CancellationToken::new()).await.expect("an answer");
    let asked = &server.asked()[0];
    assert_eq!(asked.path, "/v1/messages");
    let header = |name: &str| asked.headers.get(name).and_then(|value| value.to_str().ok());
    assert_eq!((header("x-api-key"), header("anthropic-version")), (Some(KEY), Some("2023-06-01")));
    assert_eq!(header("authorization"), None);
    assert_eq!(
        asked.body,
        json!({
            "model": "test-1", "max_tokens": 16384, "temperature": 0.5, "stream": true,
            "tools": [{"name": "bash", "description": "runs", "input_schema": {"type": "object"}}],
            "system": [
                {"type": "text", "text": "be brief", "cache_control": {"type": "ephemeral"}}
            ],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "hello"}]},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "let me see", "signature": "abc="},
                    {"type": "text", "text": "I look"},
                    {"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {"command": "ls"}},
                    {"type": "tool_use", "id": "toolu_2", "name": "view_file", "input": {}},
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_1", "content": "[exit 0]"},
                    {"type": "tool_result", "tool_use_id": "toolu_2", "content": "[exit 0]",
                     "cache_control": {"type": "ephemeral"}},
                ]},
            ]
        })
    );
}

#[tokio::test]
async fn an_answer_in_one_piece_is_read_as_well() {
    let body = json!({
        "type": "message", "role": "assistant", "stop_reason": "tool_use",
        "content": [
            {"type": "text", "text": "so"},
            {"type": "redacted_thinking", "data": "xyz"},
            {"type": "tool_use", "id": "t", "name": "bash", "input": {"command": "ls"}},
        ],
        "usage": {"input_tokens": 3, "output_tokens": 2},
    });
    let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    let answer = ask(Reply::Whole { status: 200, headers, body: body.to_string() })
        .await
        .expect("an answer");
    assert_eq!(answer.calls, [call("t", "bash", "{\"command\":\"ls\"}")]);
    assert_eq!((answer.text.as_str(), answer.stop), ("so", StopReason::ToolCalls));
    assert_eq!(answer.reasoning, Some(json!([{"type": "redacted_thinking", "data": "xyz"}])));
}

#[tokio::test]
async fn why_the_model_stopped_is_told_apart() {
    for (stop, reason) in [
        ("end_turn", StopReason::EndTurn),
        ("stop_sequence", StopReason::EndTurn),
        ("max_tokens", StopReason::Length),
        ("model_context_window_exceeded", StopReason::Length),
        ("refusal", StopReason::Refused),
    ] {
        let mut events = vec![opening(), block(0, json!({"type": "text", "text": "x"}))];
        events.extend(ending(stop));
        assert_eq!(ask(streams_events(&events)).await.expect("an answer").stop, reason, "{stop}");
    }
}

#[tokio::test]
async fn faults_have_the_class_of_their_code_or_status() {
    let error = |kind: &str, message: &str| json!({"type": kind, "message": message});
    let inside = |kind: &str| {
        streams_events(&[opening(), json!({"type": "error", "error": error(kind, "no")})])
    };
    let too_long =
        error("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum");
    for (reply, class) in [
        (refuses(529, error("overloaded_error", "Overloaded")), ModelErrorClass::Transient),
        (refuses(429, error("rate_limit_error", "slow down")), ModelErrorClass::Transient),
        (refuses(401, error("authentication_error", "no key")), ModelErrorClass::Config),
        (refuses(400, error("invalid_request_error", "bad")), ModelErrorClass::Config),
        (refuses(404, error("not_found_error", "model")), ModelErrorClass::Config),
        (refuses(400, too_long), ModelErrorClass::ContextOverflow),
        (refuses(413, error("request_too_large", "too big")), ModelErrorClass::ContextOverflow),
        (inside("overloaded_error"), ModelErrorClass::Transient),
        (inside("authentication_error"), ModelErrorClass::Config),
    ] {
        let told = format!("{reply:?}");
        assert_eq!(ask(reply).await.expect_err("a fault").class, class, "{told}");
    }
}

#[tokio::test]
async fn a_stream_that_ends_early_is_transient_and_perhaps_billed() {
    let event = format!("event: message_start\ndata: {}\n\n", opening());
    for end in [StreamEnd::Clean, StreamEnd::Cut, StreamEnd::Stall] {
        let reply = Reply::Stream { events: vec![event.clone()], end };
        let error = ask(reply).await.expect_err("the answer is not whole");
        assert_eq!((error.class, error.perhaps_billed), (ModelErrorClass::Transient, true));
    }
}
