//! What people and programs read: the rows behind the command line and the status page.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::run::{Notice, RunId, RunState, TaskName, Usage};

/// One run in a list. The field names are the documented JSON of `fleet runs list --json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRow {
    pub run_id: RunId,
    pub task: TaskName,
    pub due: Timestamp,
    pub state: RunState,
    /// The class of the last attempt's outcome.
    pub outcome: Option<String>,
    /// The failure's or the skip's reason.
    pub reason: Option<String>,
    pub attempts: u32,
    pub cost_usd: f64,
    pub tokens: u64,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
    pub branch: Option<String>,
    /// The branch's tip.
    pub commit: Option<String>,
    pub bundle_commit: Option<String>,
    pub trigger: String,
    /// `enforced` or `best_effort`.
    pub limits: Option<String>,
    pub retry_at: Option<Timestamp>,
}

/// One run whole: `fleet runs show --json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunDetail {
    #[serde(flatten)]
    pub run: RunRow,
    pub answer: Option<String>,
    pub output: Option<serde_json::Value>,
    pub attempt_list: Vec<AttemptRow>,
    pub usage: Usage,
    pub artifacts: Vec<ArtifactRow>,
    pub diff_stat: Option<String>,
    /// The seal report of the last attempt's container.
    pub seal: Option<serde_json::Value>,
    pub events: Vec<EventRow>,
}

/// One attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttemptRow {
    pub attempt: u32,
    pub started_at: Timestamp,
    pub finished_at: Option<Timestamp>,
    pub outcome: Option<String>,
    pub reason: Option<String>,
    pub model: Option<String>,
    pub repo: Option<String>,
    pub worktree: Option<String>,
    pub branch: Option<String>,
    pub base_commit: Option<String>,
    pub container: Option<String>,
    pub usage: Usage,
}

/// One published file of the run's latest, successful attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArtifactRow {
    /// From 1, in the order of publishing; names the copy in the state directory.
    pub number: u32,
    pub attempt: u32,
    pub name: String,
    pub path: String,
    pub description: Option<String>,
    pub size: u64,
    pub sha256: Option<String>,
}

/// One line of the session log. `seq` grows within a run over all attempts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventRow {
    pub seq: i64,
    #[serde(flatten)]
    pub event: crate::run::Event,
}

/// One dead letter: the documented JSON of `fleet sched dlq list --json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeadLetterRow {
    pub run_id: RunId,
    pub task: TaskName,
    pub dead_lettered_at: Timestamp,
    pub dead_letter_reason: String,
    pub dead_letter_attempts: u32,
    pub tags: Vec<String>,
}

/// Which runs to list; the newest due first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFilter {
    pub task: Option<TaskName>,
    pub state: Option<RunState>,
    /// Due at or after.
    pub since: Option<Timestamp>,
    /// 0 = 50.
    pub limit: u32,
    pub offset: u32,
}

/// What to replay from the dead letters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplayTarget {
    /// A run id, or an unambiguous beginning of one.
    Run(String),
    /// The newest dead letter of a task.
    Task(TaskName),
    All,
    Tag(String),
}

/// A task's history in short, for the overview.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskStats {
    pub task: TaskName,
    /// The newest first, at most 30.
    pub last: Vec<RunRow>,
    pub cost_usd: f64,
    pub tokens: u64,
    pub last_success: Option<Timestamp>,
}

/// Counters kept at write time: no query counts runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// (outcome class or skip reason, number).
    pub runs_by_outcome: Vec<(String, u64)>,
    pub dead_letters_queued: Vec<(String, u64)>,
    pub dead_letters_open: u64,
    pub pending: u64,
    pub running: u64,
    pub cost_usd: f64,
    pub tokens: u64,
    /// Notices by what became of them: `sent`, `given_up`.
    pub notices: Vec<(String, u64)>,
    pub notices_waiting: u64,
    pub notices_given_up: u64,
}

/// A notice that waits or was given up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NoticeRow {
    pub id: i64,
    #[serde(flatten)]
    pub notice: Notice,
    pub tries: u32,
    /// Not before then.
    pub try_at: Option<Timestamp>,
    pub last_error: Option<String>,
    pub given_up_at: Option<Timestamp>,
}
