//! Writes a request as Messages. Earlier messages never change but for the mark of the cache, which
//! providers leave out when they compare prompts.

use serde_json::{Map, Value, json};

use super::super::{CallRequest, Message, Request, ToolResult, ToolSpec};

/// The answer's bound where the request has none: Messages demands one, and every current model
/// takes this one.
const MAX_TOKENS: u64 = 16_384;

/// The request's JSON.
pub(in crate::model) fn encode(request: &Request) -> Vec<u8> {
    let mut messages = Turns::default();
    for message in &request.messages {
        match &**message {
            Message::User(text) => messages.push("user", text_block(text)),
            Message::Assistant { text, calls, reasoning } => {
                messages.extend("assistant", assistant(text, calls, reasoning.as_ref()));
            }
            Message::Tools(results) => messages.extend("user", results.iter().map(result)),
        }
    }
    let mut body = Map::new();
    body.insert("model".to_owned(), request.model.as_str().into());
    let bound = request.max_output_tokens.unwrap_or(MAX_TOKENS);
    body.insert("max_tokens".to_owned(), bound.into());
    if !request.tools.is_empty() {
        body.insert("tools".to_owned(), request.tools.iter().map(tool).collect());
    }
    if let Some(temperature) = request.temperature {
        // Messages has no temperature above 1.
        body.insert("temperature".to_owned(), temperature.min(1.0).into());
    }
    if !request.system.is_empty() {
        let mut system = text_block(&request.system).unwrap_or_default();
        // What stands before it, the tools too, is kept in the provider's cache.
        system["cache_control"] = cached();
        body.insert("system".to_owned(), json!([system]));
    }
    body.insert("stream".to_owned(), true.into());
    body.insert("messages".to_owned(), messages.marked().into());
    Value::Object(body).to_string().into_bytes()
}

/// Messages in which the roles take turns: what one role says in a row is one message.
#[derive(Default)]
struct Turns(Vec<(&'static str, Vec<Value>)>);

impl Turns {
    fn push(&mut self, role: &'static str, block: Option<Value>) {
        self.extend(role, block);
    }

    fn extend(&mut self, role: &'static str, blocks: impl IntoIterator<Item = Value>) {
        let blocks: Vec<Value> = blocks.into_iter().collect();
        if blocks.is_empty() {
            // A message without content is refused.
            return;
        }
        match self.0.last_mut() {
            Some((last, content)) if *last == role => content.extend(blocks),
            _ => self.0.push((role, blocks)),
        }
    }

    /// The messages, with the last block marked: the next request finds all of this in the cache.
    fn marked(mut self) -> Vec<Value> {
        let last = self.0.last_mut().and_then(|(_, content)| content.last_mut());
        if let Some(Value::Object(block)) = last
            && block.get("type").and_then(Value::as_str) != Some("thinking")
        {
            block.insert("cache_control".to_owned(), cached());
        }
        self.0
            .into_iter()
            .map(|(role, content)| json!({"role": role, "content": content}))
            .collect()
    }
}

fn cached() -> Value {
    json!({"type": "ephemeral"})
}

/// None for an empty text, which is refused.
fn text_block(text: &str) -> Option<Value> {
    (!text.is_empty()).then(|| json!({"type": "text", "text": text}))
}

fn assistant(text: &str, calls: &[CallRequest], reasoning: Option<&Value>) -> Vec<Value> {
    // Thinking is signed: it goes back as it came, before what it led to. Another format's reasoning
    // is an object, and no use here.
    let thinking = reasoning.and_then(Value::as_array).cloned().unwrap_or_default();
    let calls = calls.iter().map(|call| {
        let input: Value = serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!({}));
        json!({"type": "tool_use", "id": plain_id(&call.id), "name": call.name, "input": input})
    });
    thinking.into_iter().chain(text_block(text.trim_end())).chain(calls).collect()
}

fn result(result: &ToolResult) -> Value {
    let mut block = json!({
        "type": "tool_result", "tool_use_id": plain_id(&result.call_id), "content": result.content,
    });
    if result.is_error {
        block["is_error"] = true.into();
    }
    block
}

/// An id as Messages takes it: letters, digits, `_` and `-`. Another format's ids may hold more.
fn plain_id(id: &str) -> String {
    id.chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' })
        .collect()
}

fn tool(tool: &ToolSpec) -> Value {
    json!({"name": tool.name, "description": tool.description, "input_schema": tool.parameters})
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn encoded(messages: Vec<Message>) -> Value {
        let request = Request {
            model: "m".to_owned(),
            system: "s".into(),
            messages: messages.into_iter().map(Arc::new).collect(),
            tools: Arc::new([]),
            temperature: Some(1.5),
            max_output_tokens: None,
        };
        serde_json::from_slice(&encode(&request)).expect("JSON")
    }

    fn call(id: &str) -> CallRequest {
        CallRequest {
            id: id.to_owned(),
            name: "bash".to_owned(),
            arguments: r#"{"command":"true"}"#.to_owned(),
        }
    }

    fn done(id: &str, is_error: bool) -> ToolResult {
        ToolResult {
            call_id: id.to_owned(),
            name: "bash".to_owned(),
            content: "[exit 0]".to_owned(),
            is_error,
        }
    }

    #[test]
    fn roles_take_turns_and_results_come_first_after_their_calls() {
        let thinking = json!([{"type": "thinking", "thinking": "hm", "signature": "sig"}]);
        let body = encoded(vec![
            Message::User("do it".to_owned()),
            Message::Assistant {
                text: "so ".to_owned(),
                calls: vec![call("a.1"), call("b")],
                reasoning: Some(thinking),
            },
            Message::Tools(vec![done("a.1", false), done("b", true)]),
            Message::User("hurry".to_owned()),
        ]);
        assert_eq!(
            body,
            json!({
                "model": "m", "max_tokens": 16384, "temperature": 1.0, "stream": true,
                "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
                "messages": [
                    {"role": "user", "content": [{"type": "text", "text": "do it"}]},
                    {"role": "assistant", "content": [
                        {"type": "thinking", "thinking": "hm", "signature": "sig"},
                        {"type": "text", "text": "so"},
                        {"type": "tool_use", "id": "a_1", "name": "bash", "input": {"command": "true"}},
                        {"type": "tool_use", "id": "b", "name": "bash", "input": {"command": "true"}},
                    ]},
                    {"role": "user", "content": [
                        {"type": "tool_result", "tool_use_id": "a_1", "content": "[exit 0]"},
                        {"type": "tool_result", "tool_use_id": "b", "content": "[exit 0]", "is_error": true},
                        {"type": "text", "text": "hurry", "cache_control": {"type": "ephemeral"}},
                    ]},
                ],
            })
        );
    }

    #[test]
    fn nothing_that_would_be_refused_is_sent() {
        let words = |text: &str, reasoning: Option<Value>| Message::Assistant {
            text: text.to_owned(),
            calls: Vec::new(),
            reasoning,
        };
        let foreign = json!({"reasoning_content": "hm"});
        let body = encoded(vec![
            Message::User("a".to_owned()),
            words(" \n", Some(foreign)),
            Message::User("b".to_owned()),
        ]);
        let content = &body["messages"];
        assert_eq!(content.as_array().map(Vec::len), Some(1), "{content}");
        assert_eq!(content[0]["content"][1]["text"], "b");
    }
}
