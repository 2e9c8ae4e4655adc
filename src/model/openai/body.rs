//! Writes a request as a chat completion. The bytes of earlier messages never change, so that
//! providers can cache them.

use serde_json::{Map, Value, json};

use super::super::{CallRequest, Message, Request, ToolSpec};

/// The request's JSON.
pub(super) fn encode(request: &Request) -> Vec<u8> {
    let mut messages = vec![json!({"role": "system", "content": &*request.system})];
    for message in &request.messages {
        push_message(message, &mut messages);
    }
    let mut body = Map::new();
    body.insert("model".to_owned(), request.model.as_str().into());
    if !request.tools.is_empty() {
        body.insert("tools".to_owned(), request.tools.iter().map(tool).collect());
    }
    if let Some(temperature) = request.temperature {
        body.insert("temperature".to_owned(), temperature.into());
    }
    if let Some(bound) = request.max_output_tokens {
        body.insert("max_tokens".to_owned(), bound.into());
    }
    body.insert("stream".to_owned(), true.into());
    body.insert("stream_options".to_owned(), json!({"include_usage": true}));
    body.insert("messages".to_owned(), messages.into());
    Value::Object(body).to_string().into_bytes()
}

fn push_message(message: &Message, messages: &mut Vec<Value>) {
    match message {
        Message::User(text) => messages.push(json!({"role": "user", "content": text})),
        Message::Assistant { text, calls, reasoning } => {
            messages.push(assistant(text, calls, reasoning.as_ref()));
        }
        Message::Tools(results) => messages.extend(results.iter().map(|result| {
            json!({"role": "tool", "tool_call_id": result.call_id, "content": result.content})
        })),
    }
}

fn assistant(text: &str, calls: &[CallRequest], reasoning: Option<&Value>) -> Value {
    let mut message = Map::new();
    message.insert("role".to_owned(), "assistant".into());
    let content = if text.is_empty() && !calls.is_empty() { Value::Null } else { text.into() };
    message.insert("content".to_owned(), content);
    // What the provider sent as reasoning goes back member by member, unread.
    if let Some(Value::Object(members)) = reasoning {
        message.extend(members.clone());
    }
    if !calls.is_empty() {
        let calls: Vec<_> = calls.iter().map(call).collect();
        message.insert("tool_calls".to_owned(), calls.into());
    }
    Value::Object(message)
}

fn call(call: &CallRequest) -> Value {
    json!({
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments}
    })
}

fn tool(tool: &ToolSpec) -> Value {
    json!({
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters
        }
    })
}
