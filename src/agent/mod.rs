//! The one loop: model, tools, finish gates, until a verdict. Owns the ledger of cost, tokens, rounds
//! and time. Knows no bundle, no SQL and no git: its input is rendered by the runner, its events go
//! down one bounded, ordered channel.

mod event_sink;
mod input;

pub use event_sink::{EventSink, LogClosed, LogRequest};
pub use input::{AgentEnd, AgentInput, Completion, Limits, ModelChoice, Price};
