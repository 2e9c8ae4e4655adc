//! One request to a language model and its one answer, whatever the wire format. Owns the wire
//! formats, error classes and prices; refuses to know of tools, budgets or runs.

mod types;

pub use types::{
    Answer, CallRequest, Message, Model, ModelError, ModelErrorClass, Request, StopReason,
    ToolResult, ToolSpec, WireUsage,
};
