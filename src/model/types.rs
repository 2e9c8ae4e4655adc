//! The provider-neutral request and answer.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

/// A tool as it is offered to the model.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// JSON Schema of the arguments.
    pub parameters: serde_json::Value,
}

/// One message of the history.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    User(String),
    Assistant {
        text: String,
        calls: Vec<CallRequest>,
        /// Reasoning blocks as the provider sent them, to be sent back unread.
        reasoning: Option<serde_json::Value>,
    },
    /// The results of one assistant message's calls, in their order.
    Tools(Vec<ToolResult>),
}

/// A tool call that the model asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallRequest {
    /// Unique within the run: the loop tells equal or empty provider ids apart.
    pub id: String,
    pub name: String,
    /// The arguments exactly as the model wrote them; perhaps not JSON.
    pub arguments: String,
}

/// The one result of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolResult {
    pub call_id: String,
    pub name: String,
    pub content: String,
    pub is_error: bool,
}

/// One request.
#[derive(Clone, Debug)]
pub struct Request {
    /// The model's name as the provider knows it.
    pub model: String,
    pub system: Arc<str>,
    /// Shared, so that a request of a long history costs pointers and not copies.
    pub messages: Vec<Arc<Message>>,
    pub tools: Arc<[ToolSpec]>,
    pub temperature: Option<f64>,
    /// Upper bound of the answer's tokens, where one is wanted.
    pub max_output_tokens: Option<u64>,
}

/// Why the model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    EndTurn,
    ToolCalls,
    /// The answer was cut off: its calls must not be executed.
    Length,
    Refused,
}

impl StopReason {
    /// The stable name: as in the session log and in recorded sessions.
    pub fn as_str(self) -> &'static str {
        match self {
            StopReason::EndTurn => "end_turn",
            StopReason::ToolCalls => "tool_calls",
            StopReason::Length => "length",
            StopReason::Refused => "refused",
        }
    }

    /// The reason of that stable name.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::EndTurn, Self::ToolCalls, Self::Length, Self::Refused]
            .into_iter()
            .find(|reason| reason.as_str() == text)
    }
}

/// Usage as the provider reported it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WireUsage {
    /// All prompt tokens, cached ones included.
    pub prompt_tokens: u64,
    pub cached_tokens: u64,
    pub completion_tokens: u64,
    /// The provider's own cost in US dollars, where it says.
    pub cost_usd: Option<f64>,
}

/// One answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub text: String,
    pub calls: Vec<CallRequest>,
    pub reasoning: Option<serde_json::Value>,
    pub stop: StopReason,
    /// Absent when the provider sent none: the ledger then estimates.
    pub usage: Option<WireUsage>,
}

/// What kind of failure a request met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ModelErrorClass {
    /// 408, 429, 5xx, network, cut streams, overload inside a 200 stream: may be sent again.
    Transient,
    /// The prompt is larger than the model's window.
    ContextOverflow,
    /// Missing or refused key, unknown model, bad request: sending it again cannot help.
    Config,
    /// The caller cancelled.
    Cancelled,
}

impl ModelErrorClass {
    /// The stable name: as in the session log.
    pub fn as_str(self) -> &'static str {
        match self {
            ModelErrorClass::Transient => "transient",
            ModelErrorClass::ContextOverflow => "context_overflow",
            ModelErrorClass::Config => "config",
            ModelErrorClass::Cancelled => "cancelled",
        }
    }
}

/// A failed request. The message names the provider, the status and the provider's words, never a
/// key or the prompt.
#[derive(Clone, Debug, thiserror::Error)]
#[error("model {provider}: {message}")]
pub struct ModelError {
    pub class: ModelErrorClass,
    pub provider: String,
    pub message: String,
    /// From `Retry-After`, capped.
    pub retry_after: Option<Duration>,
    /// The provider had begun to answer, so it may charge for the request.
    pub perhaps_billed: bool,
    /// The model's context window, where a refused prompt's error tells it.
    pub window_tokens: Option<u64>,
}

/// A wire format that answers one request. It does not retry.
pub trait Model: Send + Sync {
    /// Sends one request and waits for the whole answer.
    fn complete<'a>(
        &'a self,
        request: &'a Request,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Answer, ModelError>>;
}
