//! The one loop: model, tools, finish gates, until a verdict. Owns the ledger of cost, tokens, rounds
//! and time. Knows no bundle, no SQL and no git: its input is rendered by the runner, its events go
//! down one bounded, ordered channel.

mod aside;
mod attempt;
mod breaker;
mod compaction;
mod containment;
mod dispatch;
mod event_sink;
mod gates;
mod guard;
mod history;
mod input;
mod ledger;
mod pressure;
pub mod prompt;
mod repeat_guard;
mod request;

pub use attempt::run;
pub use breaker::Breaker;
pub use event_sink::{EventSink, LogClosed, LogRequest};
pub use input::{AgentEnd, AgentInput, Completion, Limits, ModelChoice, Price};
pub use pressure::ContextPolicy;
