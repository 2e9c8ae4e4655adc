//! What people are told of a run or a task.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{NoticeEvent, RunId, RunState, TaskName};

/// One notice for one channel: what the outbox keeps until it is sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Notice {
    /// The same for every repetition: what receivers tell repetitions by.
    pub idempotency_key: String,
    /// The channel's name in the manifest's `notify`.
    pub channel: String,
    pub event: NoticeEvent,
    pub task: TaskName,
    pub run_id: RunId,
    pub due: Timestamp,
    /// When it happened.
    pub at: Timestamp,
    pub state: RunState,
    /// The class of the last attempt's outcome, where one has ended.
    pub outcome: Option<String>,
    /// One line for a person.
    pub reason: String,
    pub attempts: u32,
    pub failures_in_a_row: u32,
}

impl Notice {
    /// The key of an event of a run's attempt for a channel.
    pub fn key(run: &RunId, attempt: u32, event: NoticeEvent, channel: &str) -> String {
        format!("{run}.{attempt}.{}.{channel}", event.as_str())
    }
}

/// A notice that is sent if the end of the run causes its event.
#[derive(Clone, Debug, PartialEq)]
pub struct PreparedNotice {
    /// The failures in a row that the channel waits for.
    pub nth: u32,
    pub notice: Notice,
}
