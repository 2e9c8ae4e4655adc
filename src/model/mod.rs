//! One request to a language model and its one answer, whatever the wire format. Owns the wire
//! formats and error classes; refuses to know of tools, budgets or runs.

mod anthropic;
mod fault;
mod http;
mod openai;
mod scripted;
mod sse;
mod types;

pub use http::{HttpModel, HttpSettings, WireFormat};
pub use scripted::{
    ScriptCursor, ScriptTurns, ScriptedCall, ScriptedFault, ScriptedModel, ScriptedTurn,
};
pub use types::{
    Answer, CallRequest, Message, Model, ModelError, ModelErrorClass, Request, StopReason,
    ToolResult, ToolSpec, WireUsage,
};
