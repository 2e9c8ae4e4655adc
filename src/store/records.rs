//! What the runner gives to the store and takes from it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::run::{
    Artifact, AttemptNo, BootId, CommitId, Counters, DeadLetterClass, Event, FencingToken, Notice,
    Outcome, PreparedNotice, RunId, RunState, SkipReason, TaskName, Trigger, Usage,
};

/// A process that may hold runs. It is alive as long as its lock file in `holders/` is locked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Random, one a process.
    pub instance: String,
    pub pid: u32,
    pub boot: BootId,
}

/// An occurrence to be inserted, unless (task, due) is there already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewOccurrence {
    pub run_id: RunId,
    pub task: TaskName,
    /// For manual triggers the instant of the asking.
    pub due: Timestamp,
    pub trigger: Trigger,
    /// `Some`: recorded as not run, with the reason.
    pub skip: Option<SkipReason>,
    pub tags: Vec<String>,
    /// Since when it may be claimed.
    pub queued_at: Timestamp,
    /// Higher is claimed first.
    pub priority: i32,
    pub room: Room,
    /// No other run with this key may run at the same time.
    pub serialization_key: Option<String>,
}

/// How an occurrence stands to the other scheduled runs of its task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// It may run beside them.
    Shared,
    /// It waits until they have ended.
    Exclusive,
    /// Those that wait are cancelled, those that run are told to end, and it waits until they have.
    ReplacesOlder,
}

/// Who claims, and how long the lease holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimRequest {
    pub holder: Holder,
    pub now: Timestamp,
    pub lease_until: Timestamp,
    /// Claim this run and no other (`fleet task run`).
    pub only: Option<RunId>,
}

/// A run that this process may carry out; every later write carries the token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedRun {
    pub run_id: RunId,
    pub task: TaskName,
    pub due: Timestamp,
    pub trigger: Trigger,
    pub token: FencingToken,
    /// The attempt that now begins, from 1.
    pub attempt: AttemptNo,
    pub counters: Counters,
    /// What earlier attempts spent.
    pub spent: Usage,
    /// The bundle commit of the run's first attempt since its last replay: a run keeps it.
    pub bundle_commit: Option<CommitId>,
    /// What earlier attempts did outside their worktree.
    pub effects: Vec<OutsideEffect>,
    /// Answer and outcome of the task's previous finished run.
    pub previous_answer: Option<String>,
    pub previous_outcome: Option<String>,
    /// The branch of the task's last successful run that left one.
    pub previous_branch: Option<String>,
    /// The tip that the branch had then.
    pub previous_commit: Option<String>,
}

/// Something that an earlier attempt did outside its worktree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutsideEffect {
    pub tool: String,
    pub arguments: String,
    /// As the model saw it; absent where the attempt ended first, so that nobody knows whether it
    /// happened.
    pub result: Option<String>,
}

/// Facts about an attempt, known once it is under way. `None` leaves a column as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AttemptFacts {
    pub bundle_commit: Option<CommitId>,
    pub repo: Option<String>,
    pub worktree: Option<String>,
    pub branch: Option<String>,
    pub base_commit: Option<String>,
    pub container: Option<String>,
    pub model: Option<String>,
    /// `enforced` or `best_effort`.
    pub limits: Option<String>,
    /// The seal report as JSON.
    pub seal: Option<serde_json::Value>,
}

/// The one terminal transaction of an attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct AttemptFinish {
    pub at: Timestamp,
    pub outcome: Outcome,
    /// The run's next state: terminal, or `Scheduled` with `retry_at`.
    pub state: RunState,
    pub retry_at: Option<Timestamp>,
    pub counters: Counters,
    pub dead_letter: Option<DeadLetterClass>,
    /// What this attempt spent.
    pub usage: Usage,
    pub answer: Option<String>,
    pub output: Option<serde_json::Value>,
    pub artifacts: Vec<Artifact>,
    /// The branch that holds the work, where there is any, and its tip.
    pub branch: Option<String>,
    pub commit: Option<CommitId>,
    pub diff_stat: Option<String>,
    pub events: Vec<Event>,
    /// Clean-up that must happen after this transaction, once, whatever happens: kept in the outbox
    /// until it is done.
    pub cleanup: Vec<serde_json::Value>,
    /// Failures in a row that park the task; 0 never.
    pub park_after: u32,
    /// Sent after this transaction, each if the end causes its event.
    pub notices: Vec<PreparedNotice>,
}

/// A run that says it is running: an orphan when its holder is dead.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenRun {
    pub run_id: RunId,
    pub task: TaskName,
    pub attempt: AttemptNo,
    pub token: FencingToken,
    pub holder: Holder,
    pub lease_until: Timestamp,
    pub counters: Counters,
    pub repo: Option<String>,
    pub worktree: Option<String>,
    pub branch: Option<String>,
    pub base_commit: Option<String>,
    pub container: Option<String>,
    pub bundle_commit: Option<CommitId>,
    /// Why somebody wanted it to end.
    pub cancel_requested: Option<String>,
}

/// What a task's open scheduled runs are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenTask {
    pub runs: u32,
    /// One of them waits for the end of another task's run with the same serialization key.
    pub waits_for_key: bool,
}

/// Why nothing of a task is due.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldTask {
    pub paused_at: Option<Timestamp>,
    /// The pause ends by itself then.
    pub paused_until: Option<Timestamp>,
    pub pause_reason: Option<String>,
    /// It parked itself.
    pub parked_at: Option<Timestamp>,
    pub park_reason: Option<String>,
    pub failures_in_a_row: u32,
}

impl HeldTask {
    /// Whether an occurrence that is due at that instant does not run.
    pub fn holds(&self, due: Timestamp) -> bool {
        let paused = self.paused_at.is_some_and(|at| at <= due)
            && self.paused_until.is_none_or(|until| due < until);
        paused || self.parked_at.is_some_and(|at| at <= due)
    }

    /// How it is held, for people.
    pub fn words(&self) -> String {
        let minute = |at: Timestamp| at.strftime("%Y-%m-%d %H:%M UTC").to_string();
        let paused = self.paused_at.map(|at| {
            let until = self.paused_until.map(|until| format!(" until {}", minute(until)));
            let reason = self.pause_reason.as_deref().unwrap_or_default();
            format!("paused since {}{}: {reason}", minute(at), until.unwrap_or_default())
        });
        let parked = self.parked_at.map(|at| {
            let reason = self.park_reason.as_deref().unwrap_or_default();
            format!("parked since {}: {reason}", minute(at))
        });
        let both: Vec<String> = [paused, parked].into_iter().flatten().collect();
        both.join("; ")
    }
}

/// What came of the wish that a run should end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancelled {
    /// It had not begun, or waited: it is cancelled.
    AtOnce,
    /// It runs, and is told.
    Requested,
}

fn by(pids: &[u32]) -> String {
    let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
    if pids.is_empty() { String::new() } else { format!(" by pid {}", pids.join(", ")) }
}

/// Which channels have notices to send.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DueNotices {
    pub channels: Vec<String>,
    /// When the next ones are due.
    pub next: Option<Timestamp>,
}

/// A notice that this process sends now, and nobody else.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimedNotice {
    pub id: i64,
    /// This try included. Also what the claim is told by.
    pub tries: u32,
    pub waits_since: Timestamp,
    pub notice: Notice,
}

/// What becomes of a notice that could not be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterFailure {
    /// It is tried again, not before then.
    TryAt(Timestamp),
    /// It is kept for people to see.
    GiveUp(Timestamp),
}

/// Why the store did not do it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The run was claimed by somebody else, or ended: nothing was written.
    #[error("run {0}: the lease was lost to a newer claim")]
    LeaseLost(RunId),
    /// Another daemon has the state directory: nothing was written.
    #[error("another fleet serve took over this state directory ({0})")]
    DaemonReplaced(String),
    #[error("no run with id {0}")]
    RunNotFound(String),
    #[error("{0} matches {1} runs: give more of the id")]
    AmbiguousRun(String, u64),
    /// Another run with the key runs: nothing was recorded.
    #[error("run {holder} of task {task} holds the serialization key {key:?}")]
    KeyHeld { key: String, holder: RunId, task: TaskName },
    /// The run is not in the state that the act needs.
    #[error("run {run_id} is {state}, not {needed}")]
    WrongState { run_id: RunId, state: &'static str, needed: &'static str },
    #[error("cannot open the store {path}: {message}")]
    Open { path: String, message: String },
    /// A copy that was asked for in a place where there is something.
    #[error("{path} is there already, and a backup overwrites nothing")]
    Exists { path: String },
    #[error("cannot write the backup {path}: {message}")]
    NotWritten { path: String, message: String },
    /// The file is damaged.
    #[error("the store {path} is damaged: {message}")]
    Corrupt { path: String, message: String },
    /// Nothing more fits on its disk, or in what this process may write.
    #[error("the store {path} cannot grow: {message}")]
    Full { path: String, message: String },
    #[error("the store {path} cannot be written: {message}")]
    ReadOnly { path: String, message: String },
    /// Sound, but without fleet's tables.
    #[error("{path} is no store of fleet: {message}")]
    NotAStore { path: String, message: String },
    /// Others have it open.
    #[error("the store {path} is in use{}", by(.pids))]
    InUse { path: String, pids: Vec<u32> },
    #[error("the store {path} has schema {found}, newer than this fleet's {known}")]
    TooNew { path: String, found: i64, known: i64 },
    #[error("the store failed while it {doing}")]
    Sql {
        doing: &'static str,
        #[source]
        source: rusqlite::Error,
    },
    /// The transaction did not begin or did not commit: nothing of it stands.
    #[error("the store could not commit: {0}")]
    Failed(String),
    #[error("the store is closed")]
    Closed,
}

impl StoreError {
    pub(super) fn sql(doing: &'static str, source: rusqlite::Error) -> Self {
        StoreError::Sql { doing, source }
    }
}
