//! What a run is: its ids, states, outcomes, events, usage, and whether it is tried again. Pure data
//! and pure decisions; refuses all input and output.

mod alarms;
mod artifact;
mod cancel;
mod document;
mod event;
mod follow_up;
mod ids;
mod memory;
mod notice;
mod outcome;
mod output_schema;
mod permissions;
mod retry;
mod state;
mod tool_name;
mod usage;

pub use alarms::{Alarm, Alarms};
pub use artifact::Artifact;
pub use cancel::{Cancel, CancelReason};
pub use document::outcomes_document;
pub use event::{Event, EventKind, LoggedCall, SealLine};
pub use follow_up::{FollowUp, NoticeEvent};
pub use ids::{AttemptNo, BootId, CommitId, FencingToken, RunId, TaskName};
pub use memory::{MAX_MEMORIES, MAX_MEMORY_BYTES, MAX_MEMORY_KEY_BYTES, Memory};
pub use notice::{Notice, PreparedNotice};
pub use outcome::{DeadLetterClass, Outcome, OutcomeClass};
pub use output_schema::{MAX_SCHEMA_BYTES, OutputSchema, SchemaError};
pub use permissions::{PatternError, ToolPattern, ToolPermissions};
pub use retry::{Backoff, Counters, Decision, RetryPolicy, decide, may_retry};
pub use state::{RunState, SkipReason, Trigger};
pub use tool_name::NativeTool;
pub use usage::{NanoUsd, Usage};
