//! Writes a request as a chat completion. The bytes of earlier messages never change, so that
//! providers can cache them.

use serde_json::{Map, Value, json};

use super::super::{CallRequest, Message, Request, ToolSpec};

/// Whom the request is written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::model) enum Dialect {
    Plain,
    OpenRouter,
}

/// The request's JSON.
pub(in crate::model) fn encode(request: &Request, dialect: Dialect) -> Vec<u8> {
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
    if dialect == Dialect::OpenRouter {
        // It tells the cost of an answer only when it is asked to.
        body.insert("usage".to_owned(), json!({"include": true}));
    }
    body.insert("messages".to_owned(), messages.into());
    Value::Object(body).to_string().into_bytes()
}

fn push_message(message: &Message, messages: &mut Vec<Value>) {
    match message {
        Message::User(text) => push_user(text, messages),
        Message::Assistant { text, calls, reasoning } => {
            messages.push(assistant(text, calls, reasoning.as_ref()));
        }
        Message::Tools(results) => messages.extend(results.iter().map(|result| {
            json!({"role": "tool", "tool_call_id": result.call_id, "content": result.content})
        })),
    }
}

/// What a user says in a row is one message: some servers' templates refuse two.
fn push_user(text: &str, messages: &mut Vec<Value>) {
    match messages.last_mut() {
        Some(last) if last["role"] == "user" => {
            let before = last["content"].as_str().unwrap_or_default();
            last["content"] = format!("{before}\n\n{text}").into();
        }
        _ => messages.push(json!({"role": "user", "content": text})),
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::super::ToolResult;
    use super::*;

    fn request(calls: usize) -> Request {
        let mut messages = vec![Arc::new(Message::User("do it".to_owned()))];
        for number in 0..calls {
            let id = format!("call_{number:024}");
            messages.push(Arc::new(Message::Assistant {
                text: String::new(),
                calls: vec![CallRequest {
                    id: id.clone(),
                    name: "bash".to_owned(),
                    arguments: r#"{"command":"true"}"#.to_owned(),
                }],
                reasoning: None,
            }));
            messages.push(Arc::new(Message::Tools(vec![ToolResult {
                call_id: id,
                name: "bash".to_owned(),
                content: "[exit 0]".to_owned(),
                is_error: false,
            }])));
        }
        Request {
            model: "m".to_owned(),
            system: "s".into(),
            messages,
            tools: Arc::new([]),
            temperature: None,
            max_output_tokens: None,
        }
    }

    #[test]
    fn earlier_bytes_never_change_and_an_empty_call_adds_little() {
        let (one, two) = (encode(&request(1), Dialect::Plain), encode(&request(2), Dialect::Plain));
        let unclosed = one.strip_suffix(b"]}").expect("the messages come last");
        assert!(two.starts_with(unclosed));
        assert!(two.len() - one.len() <= 256, "{} bytes", two.len() - one.len());
    }
}
