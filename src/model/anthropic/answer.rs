//! Puts an answer together from the events of a Messages stream.

use serde_json::{Value, json};

use super::super::fault::Fault;
use super::super::http::{Progress, body_fault, error_of};
use super::super::sse::SseEvent;
use super::super::{Answer, CallRequest, StopReason, WireUsage};

/// The most blocks of one answer.
const MAX_BLOCKS: usize = 256;

/// An answer in the making.
#[derive(Debug, Default)]
pub(in crate::model) struct Assembly {
    blocks: Vec<Block>,
    stop: Option<String>,
    usage: Usage,
}

/// One content block, as far as it has come.
#[derive(Debug)]
struct Block {
    index: u64,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Text(String),
    Call {
        id: String,
        name: String,
        /// The arguments of the block's opening: whole where nothing is streamed.
        input: Value,
        pieces: String,
    },
    /// Thinking, or what the provider encrypted: kept as it came, to be sent back.
    Thinking(Value),
    /// A kind that fleet does not ask for.
    Other,
}

/// Counts are sent in parts; later ones replace earlier ones.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    input: Option<u64>,
    output: Option<u64>,
    cache_read: u64,
    cache_written: u64,
}

impl Assembly {
    /// Takes one event of the stream.
    pub(in crate::model) fn take(&mut self, event: &SseEvent) -> Result<Progress, Fault> {
        let data = event.data.trim();
        if data.is_empty() {
            return Ok(Progress::More);
        }
        if event.name == "error" {
            return Err(body_fault(data.as_bytes()));
        }
        let event: Value = serde_json::from_str(data).map_err(|error| Fault {
            message: format!("an event of the stream is not JSON ({error})"),
            ..Fault::default()
        })?;
        if let Some(fault) = error_of(&event) {
            return Err(fault);
        }
        let index = event.get("index").and_then(Value::as_u64).unwrap_or_default();
        match event.get("type").and_then(Value::as_str).unwrap_or_default() {
            "message_start" => self.usage.take(event.pointer("/message/usage")),
            "content_block_start" => self.open(index, event.get("content_block"))?,
            "content_block_delta" => self.append(index, event.get("delta")),
            "message_delta" => {
                self.usage.take(event.get("usage"));
                if let Some(stop) = event.pointer("/delta/stop_reason").and_then(Value::as_str) {
                    self.stop = Some(stop.to_owned());
                }
            }
            "message_stop" => return Ok(Progress::Done),
            // Pings, ends of blocks, and what later versions add.
            _ => {}
        }
        Ok(Progress::More)
    }

    /// Takes an answer that came in one piece.
    pub(in crate::model) fn take_whole(&mut self, body: &[u8]) -> Result<(), Fault> {
        let whole = match serde_json::from_slice::<Value>(body) {
            Ok(whole) if whole.get("content").is_some_and(Value::is_array) => whole,
            _ => return Err(body_fault(body)),
        };
        self.usage.take(whole.get("usage"));
        let blocks = whole.get("content").and_then(Value::as_array).into_iter().flatten();
        for (index, block) in (0..).zip(blocks) {
            self.open(index, Some(block))?;
        }
        self.stop = whole.get("stop_reason").and_then(Value::as_str).map(str::to_owned);
        Ok(())
    }

    /// Whether the provider said why it stopped: only the end can follow.
    pub(in crate::model) fn is_finished(&self) -> bool {
        self.stop.is_some()
    }

    /// The answer; `None` when it was never finished.
    pub(in crate::model) fn finish(self) -> Option<Answer> {
        let stop = self.stop?;
        let mut answer = Answer {
            text: String::new(),
            calls: Vec::new(),
            reasoning: None,
            stop: StopReason::EndTurn,
            usage: self.usage.total(),
        };
        let mut thinking = Vec::new();
        for block in self.blocks {
            match block.content {
                Content::Text(text) => answer.text.push_str(&text),
                Content::Call { id, name, input, pieces } => {
                    let arguments = if pieces.is_empty() { input.to_string() } else { pieces };
                    answer.calls.push(CallRequest { id, name, arguments });
                }
                Content::Thinking(block) => thinking.push(block),
                Content::Other => {}
            }
        }
        answer.reasoning = (!thinking.is_empty()).then_some(Value::Array(thinking));
        answer.stop = match stop.as_str() {
            "max_tokens" | "model_context_window_exceeded" => StopReason::Length,
            "refusal" => StopReason::Refused,
            _ if answer.calls.is_empty() => StopReason::EndTurn,
            _ => StopReason::ToolCalls,
        };
        Some(answer)
    }

    fn open(&mut self, index: u64, block: Option<&Value>) -> Result<(), Fault> {
        if self.blocks.len() >= MAX_BLOCKS {
            let message = format!("an answer has more than {MAX_BLOCKS} blocks");
            return Err(Fault { message, ..Fault::default() });
        }
        let empty = Value::Null;
        let block = block.unwrap_or(&empty);
        let text = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or("").to_owned();
        let content = match text("type").as_str() {
            "text" => Content::Text(text("text")),
            "tool_use" => Content::Call {
                id: text("id"),
                name: text("name"),
                input: block.get("input").cloned().unwrap_or_else(|| json!({})),
                pieces: String::new(),
            },
            "thinking" | "redacted_thinking" => Content::Thinking(block.clone()),
            _ => Content::Other,
        };
        self.blocks.push(Block { index, content });
        Ok(())
    }

    fn append(&mut self, index: u64, delta: Option<&Value>) {
        let block = self.blocks.iter_mut().rev().find(|block| block.index == index);
        let (Some(block), Some(delta)) = (block, delta) else { return };
        let piece = |key: &str| delta.get(key).and_then(Value::as_str).unwrap_or("");
        match &mut block.content {
            Content::Text(text) => text.push_str(piece("text")),
            Content::Call { pieces, .. } => pieces.push_str(piece("partial_json")),
            Content::Thinking(thinking) => {
                for key in ["thinking", "signature"] {
                    let before = thinking.get(key).and_then(Value::as_str).unwrap_or("");
                    let joined = format!("{before}{}", piece(key));
                    if !joined.is_empty() {
                        thinking[key] = joined.into();
                    }
                }
            }
            Content::Other => {}
        }
    }
}

impl Usage {
    fn take(&mut self, usage: Option<&Value>) {
        let Some(usage) = usage else { return };
        let count = |key: &str| usage.get(key).and_then(Value::as_u64);
        self.input = count("input_tokens").or(self.input);
        self.output = count("output_tokens").or(self.output);
        self.cache_read = count("cache_read_input_tokens").unwrap_or(self.cache_read);
        self.cache_written = count("cache_creation_input_tokens").unwrap_or(self.cache_written);
    }

    /// `input_tokens` leaves out what was read from or written to the cache.
    fn total(self) -> Option<WireUsage> {
        self.input.or(self.output)?;
        Some(WireUsage {
            prompt_tokens: self
                .input
                .unwrap_or(0)
                .saturating_add(self.cache_read)
                .saturating_add(self.cache_written),
            cached_tokens: self.cache_read,
            completion_tokens: self.output.unwrap_or(0),
            cost_usd: None,
        })
    }
}
