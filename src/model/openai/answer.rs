//! Puts an answer together from the pieces of a stream.

use serde_json::{Map, Value};

use super::super::fault::Fault;
use super::super::http::{Progress, body_fault, error_of};
use super::super::sse::SseEvent;
use super::super::{Answer, CallRequest, StopReason, WireUsage};
use super::usage::usage_of;

/// The most calls of one answer.
const MAX_CALLS: usize = 128;

/// An answer in the making.
#[derive(Debug, Default)]
pub(in crate::model) struct Assembly {
    text: String,
    calls: Vec<PartialCall>,
    reasoning: Map<String, Value>,
    finish: Option<String>,
    usage: Option<WireUsage>,
}

#[derive(Debug, Default)]
struct PartialCall {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

impl Assembly {
    /// Takes one event of the stream.
    pub(in crate::model) fn take(&mut self, event: &SseEvent) -> Result<Progress, Fault> {
        let data = event.data.trim();
        if data == "[DONE]" {
            return Ok(Progress::Done);
        }
        if event.name == "error" {
            return Err(body_fault(data.as_bytes()));
        }
        match serde_json::from_str::<Value>(data) {
            Ok(chunk) => self.take_chunk(&chunk, "delta").map(|()| Progress::More),
            Err(_) if data.is_empty() => Ok(Progress::More),
            Err(error) => Err(Fault {
                message: format!("an event of the stream is not JSON ({error})"),
                ..Fault::default()
            }),
        }
    }

    /// Takes an answer that came in one piece.
    pub(in crate::model) fn take_whole(&mut self, body: &[u8]) -> Result<(), Fault> {
        match serde_json::from_slice::<Value>(body) {
            Ok(whole) if whole.get("choices").is_some() => self.take_chunk(&whole, "message"),
            _ => Err(body_fault(body)),
        }
    }

    /// Whether the provider said why it stopped: nothing but usage can follow.
    pub(in crate::model) fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    /// The answer; `None` when it was never finished.
    pub(in crate::model) fn finish(self) -> Option<Answer> {
        let by_calls = match self.calls.is_empty() {
            true => StopReason::EndTurn,
            false => StopReason::ToolCalls,
        };
        let stop = match self.finish?.as_str() {
            "length" | "max_tokens" | "model_length" => StopReason::Length,
            "content_filter" | "refusal" => StopReason::Refused,
            // Several servers say `stop` after calls; the calls are what counts.
            _ => by_calls,
        };
        let calls = self
            .calls
            .into_iter()
            .map(|call| CallRequest { id: call.id, name: call.name, arguments: call.arguments })
            .collect();
        Some(Answer {
            text: self.text,
            calls,
            reasoning: (!self.reasoning.is_empty()).then_some(Value::Object(self.reasoning)),
            stop,
            usage: self.usage,
        })
    }

    fn take_chunk(&mut self, chunk: &Value, member: &str) -> Result<(), Fault> {
        if let Some(fault) = error_of(chunk) {
            return Err(fault);
        }
        if let Some(usage) = usage_of(chunk) {
            self.usage = Some(usage);
        }
        let Some(choice) = chunk.pointer("/choices/0") else {
            return Ok(());
        };
        if let Some(fault) = error_of(choice) {
            return Err(fault);
        }
        if let Some(delta) = choice.get(member) {
            self.take_delta(delta)?;
        }
        if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str) {
            if reason == "error" {
                let message = "the provider stopped with an error".to_owned();
                return Err(Fault { message, ..Fault::default() });
            }
            self.finish = Some(reason.to_owned());
        }
        Ok(())
    }

    fn take_delta(&mut self, delta: &Value) -> Result<(), Fault> {
        push_text(&mut self.text, delta.get("content"));
        if let Some(refusal) = delta.get("refusal").and_then(Value::as_str) {
            self.text.push_str(refusal);
        }
        for name in ["reasoning_content", "reasoning"] {
            if let Some(piece) = delta.get(name).and_then(Value::as_str) {
                append(&mut self.reasoning, name, piece);
            }
        }
        for detail in list(delta.get("reasoning_details")) {
            self.take_reasoning_detail(detail);
        }
        for call in list(delta.get("tool_calls")) {
            self.take_call(call)?;
        }
        Ok(())
    }

    /// Merges a piece of a call into the call that it belongs to: by index; a piece without index
    /// opens a call when it has a name. A new id and a name under a known index open another call,
    /// because some servers give all parallel calls index 0.
    fn take_call(&mut self, piece: &Value) -> Result<(), Fault> {
        let text = |path: &str| piece.pointer(path).and_then(Value::as_str).unwrap_or("");
        let (id, name) = (text("/id"), text("/function/name"));
        let index = piece.get("index").and_then(Value::as_u64);
        let known = match index {
            Some(_) => self.calls.iter().rposition(|call| call.index == index),
            None if name.is_empty() => self.calls.len().checked_sub(1),
            None => None,
        };
        let another = |at: &usize| {
            let known_id = &self.calls[*at].id;
            !name.is_empty() && !id.is_empty() && !known_id.is_empty() && known_id != id
        };
        let known = known.filter(|at| !another(at));
        let at = match known {
            Some(at) => at,
            None if self.calls.len() >= MAX_CALLS => {
                let message = format!("an answer has more than {MAX_CALLS} tool calls");
                return Err(Fault { message, ..Fault::default() });
            }
            None => {
                self.calls.push(PartialCall { index, ..PartialCall::default() });
                self.calls.len() - 1
            }
        };
        let call = &mut self.calls[at];
        if call.id.is_empty() {
            call.id = id.to_owned();
        }
        // A name that is sent again with every piece is not a longer name.
        if call.name != name {
            call.name.push_str(name);
        }
        match piece.pointer("/function/arguments") {
            Some(Value::String(text)) => call.arguments.push_str(text),
            Some(Value::Null) | None => {}
            Some(whole) => call.arguments.push_str(&whole.to_string()),
        }
        Ok(())
    }

    /// Merges OpenRouter's reasoning details: texts of one index are pieces, the rest is kept as it
    /// came.
    fn take_reasoning_detail(&mut self, detail: &Value) {
        let details =
            self.reasoning.entry("reasoning_details").or_insert_with(|| Value::Array(Vec::new()));
        let (Value::Array(details), Value::Object(piece)) = (details, detail) else {
            return;
        };
        let same = |known: &&mut Value| {
            known.get("index").is_some()
                && known.get("index") == piece.get("index")
                && known.get("type") == piece.get("type")
        };
        let Some(Value::Object(known)) = details.iter_mut().rev().find(same) else {
            details.push(detail.clone());
            return;
        };
        for (name, value) in piece {
            match value {
                Value::String(text) if matches!(name.as_str(), "text" | "summary" | "data") => {
                    append(known, name, text);
                }
                Value::Null => {}
                value => {
                    known.insert(name.clone(), value.clone());
                }
            }
        }
    }
}

/// Content is text, or a list of parts of which the texts count.
fn push_text(text: &mut String, content: Option<&Value>) {
    match content {
        Some(Value::String(piece)) => text.push_str(piece),
        Some(Value::Array(parts)) => {
            let texts = parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str));
            texts.for_each(|piece| text.push_str(piece));
        }
        _ => {}
    }
}

fn list(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    value.and_then(Value::as_array).into_iter().flatten()
}

fn append(members: &mut Map<String, Value>, name: &str, piece: &str) {
    match members.get_mut(name) {
        Some(Value::String(text)) => text.push_str(piece),
        _ => {
            members.insert(name.to_owned(), piece.into());
        }
    }
}
