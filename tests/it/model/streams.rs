//! What a stream turns into.

use std::sync::Arc;

use fleet::model::{Answer, CallRequest, Message, Model, StopReason, ToolResult, WireUsage};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{KEY, ask, model, request};
use crate::env::model_server::{
    ModelServer, Reply, StreamEnd, delta, finish, streams, streams_text, usage,
};

fn calls(calls: &[(&str, &str, &str)]) -> Vec<CallRequest> {
    let call = |(id, name, arguments): &(&str, &str, &str)| CallRequest {
        id: (*id).to_owned(),
        name: (*name).to_owned(),
        arguments: (*arguments).to_owned(),
    };
    calls.iter().map(call).collect()
}

#[tokio::test]
async fn text_in_pieces_becomes_one_answer_with_usage_and_cost() {
    let answer = ask(streams(&[
        delta(json!({"role": "assistant", "content": ""})),
        delta(json!({"content": "hel"})),
        delta(json!({"content": "lo"})),
        finish("stop"),
        json!({"choices": [], "usage": {
            "prompt_tokens": 50, "completion_tokens": 2, "cost": 0.25,
            "prompt_tokens_details": {"cached_tokens": 40}
        }}),
    ]))
    .await
    .expect("an answer");
    assert_eq!(
        answer,
        Answer {
            text: "hello".to_owned(),
            calls: Vec::new(),
            reasoning: None,
            stop: StopReason::EndTurn,
            usage: Some(WireUsage {
                prompt_tokens: 50,
                cached_tokens: 40,
                completion_tokens: 2,
                cost_usd: Some(0.25),
            }),
        }
    );
}

#[tokio::test]
async fn the_request_carries_key_messages_tools_and_asks_for_usage() {
    let server = ModelServer::start(vec![streams_text("hi")]);
    model(&server).complete(&request(), &CancellationToken::new()).await.expect("an answer");
    let asked = server.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].path, "/v1/chat/completions");
    assert_eq!(asked[0].authorization.as_deref(), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(
        asked[0].body,
        json!({
            "model": "test-1",
            "tools": [{"type": "function", "function": {
                "name": "bash", "description": "runs", "parameters": {"type": "object"}
            }}],
            "temperature": 0.5,
            "stream": true,
            "stream_options": {"include_usage": true},
            "messages": [
                {"role": "system", "content": "be brief"},
                {"role": "user", "content": "hello"}
            ]
        })
    );
}

#[tokio::test]
async fn pieces_of_parallel_calls_are_merged_by_index_and_keep_their_bytes() {
    let piece = |index: u64, arguments: &str| {
        delta(json!({"tool_calls": [{"index": index, "function": {"arguments": arguments}}]}))
    };
    let opens = |index: u64, id: &str, name: &str| {
        delta(json!({"tool_calls": [{"index": index, "id": id, "type": "function",
            "function": {"name": name, "arguments": ""}}]}))
    };
    let answer = ask(streams(&[
        opens(0, "a", "bash"),
        opens(1, "b", "view_file"),
        piece(0, "{ \"command\":"),
        piece(1, "{\"path\": \"x\"}"),
        piece(0, " \"ls\" }"),
        finish("tool_calls"),
        usage(9, 9),
    ]))
    .await
    .expect("an answer");
    assert_eq!(
        answer.calls,
        calls(
            &[("a", "bash", "{ \"command\": \"ls\" }"), ("b", "view_file", "{\"path\": \"x\"}"),]
        )
    );
    assert_eq!(answer.stop, StopReason::ToolCalls);
}

#[tokio::test]
async fn equal_and_empty_ids_and_one_index_for_all_do_not_merge_calls() {
    let call = |index: u64, id: &str, command: &str| json!({"index": index, "id": id, "function": {"name": "bash", "arguments": command}});
    let equal_ids = ask(streams(&[
        delta(json!({"tool_calls": [call(0, "x", "1"), call(1, "x", "2"), call(2, "", "3")]})),
        finish("tool_calls"),
    ]))
    .await
    .expect("an answer");
    assert_eq!(
        equal_ids.calls,
        calls(&[("x", "bash", "1"), ("x", "bash", "2"), ("", "bash", "3")])
    );

    let one_index = ask(streams(&[
        delta(json!({"tool_calls": [call(0, "a", "1")]})),
        delta(json!({"tool_calls": [call(0, "b", "2")]})),
        finish("stop"),
    ]))
    .await
    .expect("an answer");
    assert_eq!(one_index.calls, calls(&[("a", "bash", "1"), ("b", "bash", "2")]));
    assert_eq!(one_index.stop, StopReason::ToolCalls);
}

#[tokio::test]
async fn finish_reasons_are_mapped() {
    for (wire, stop) in [
        ("stop", StopReason::EndTurn),
        ("length", StopReason::Length),
        ("content_filter", StopReason::Refused),
        ("eos", StopReason::EndTurn),
    ] {
        let answer =
            ask(streams(&[delta(json!({"content": "x"})), finish(wire)])).await.expect("an answer");
        assert_eq!(answer.stop, stop, "{wire}");
    }
}

#[tokio::test]
async fn missing_usage_is_absent_and_not_zero() {
    let answer = ask(streams(&[delta(json!({"content": "x"})), finish("stop")])).await;
    assert_eq!(answer.expect("an answer").usage, None);
}

#[tokio::test]
async fn keep_alive_comments_and_a_missing_done_do_no_harm() {
    let events = vec![
        ": OPENROUTER PROCESSING\n\n".to_owned(),
        format!("data: {}\r\n\r\n", delta(json!({"content": "x"}))),
        format!("data: {}", finish("stop")),
    ];
    let answer = ask(Reply::Stream { events, end: StreamEnd::Clean }).await.expect("an answer");
    assert_eq!(answer.text, "x");
}

#[tokio::test]
async fn a_connection_that_breaks_after_the_finish_loses_only_the_usage() {
    let events = vec![
        format!("data: {}\n\n", delta(json!({"content": "x"}))),
        format!("data: {}\n\n", finish("stop")),
    ];
    let answer = ask(Reply::Stream { events, end: StreamEnd::Cut }).await.expect("an answer");
    assert_eq!((answer.text.as_str(), answer.usage), ("x", None));
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_understood() {
    let body = json!({
        "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
            "role": "assistant", "content": null, "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
            ]
        }}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4}
    });
    let answer = ask(Reply::Whole {
        status: 200,
        headers: vec![("content-type".to_owned(), "application/json".to_owned())],
        body: body.to_string(),
    })
    .await
    .expect("an answer");
    assert_eq!(answer.calls, calls(&[("a", "bash", "{}")]));
    assert_eq!(answer.usage.map(|usage| usage.completion_tokens), Some(4));
}

#[tokio::test]
async fn reasoning_goes_back_as_it_came() {
    let detail = |text: &str, signature: serde_json::Value| json!({"type": "reasoning.text", "index": 0, "text": text, "signature": signature});
    let server = ModelServer::start(vec![
        streams(&[
            delta(
                json!({"reasoning_content": "thi", "reasoning_details": [detail("thi", json!(null))]}),
            ),
            delta(
                json!({"reasoning_content": "nk", "reasoning_details": [detail("nk", json!("sig"))]}),
            ),
            delta(json!({"tool_calls": [{"index": 0, "id": "a", "function":
                {"name": "bash", "arguments": "{\"command\":\"ls\"}"}}]})),
            finish("tool_calls"),
        ]),
        streams_text("done"),
    ]);
    let model = model(&server);
    let mut request = request();
    let answer = model.complete(&request, &CancellationToken::new()).await.expect("an answer");
    request.messages.push(Arc::new(Message::Assistant {
        text: answer.text,
        calls: answer.calls,
        reasoning: answer.reasoning,
    }));
    request.messages.push(Arc::new(Message::Tools(vec![ToolResult {
        call_id: "a".to_owned(),
        name: "bash".to_owned(),
        content: "[exit 0]".to_owned(),
        is_error: false,
    }])));
    model.complete(&request, &CancellationToken::new()).await.expect("an answer");
    assert_eq!(
        server.asked()[1].body["messages"].as_array().expect("messages")[2..],
        [
            json!({
                "role": "assistant",
                "content": null,
                "reasoning_content": "think",
                "reasoning_details": [
                    {"type": "reasoning.text", "index": 0, "text": "think", "signature": "sig"}
                ],
                "tool_calls": [{"id": "a", "type": "function", "function":
                    {"name": "bash", "arguments": "{\"command\":\"ls\"}"}}]
            }),
            json!({"role": "tool", "tool_call_id": "a", "content": "[exit 0]"})
        ]
    );
}
