//! The session log: one line per thing that happened in a run, in order.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Artifact, AttemptNo, NanoUsd, Outcome, Usage};

/// One line of the session log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    pub at: Timestamp,
    pub attempt: AttemptNo,
    #[serde(flatten)]
    pub kind: EventKind,
}

/// One property of the seal as it was read back from inside a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealLine {
    /// For example `memory.max`, `cap_eff`, `interfaces`.
    pub property: String,
    pub wanted: String,
    pub seen: String,
    /// The property holds. A limit may fail only under `sandbox.limits = "best_effort"`.
    pub holds: bool,
}

/// What happened. Names are past tense; the JSON field `type` holds them in snake case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EventKind {
    /// A holder began an attempt.
    AttemptStarted { bundle_commit: String, holder_pid: u32 },
    /// The worktree exists.
    WorktreeReady { path: String, branch: Option<String>, base_commit: String, duration_ms: u64 },
    /// The container answers.
    SandboxReady {
        container: String,
        image_id: String,
        runtime: String,
        /// `enforced` or `best_effort`.
        limits: String,
        duration_ms: u64,
    },
    /// `run_if` was asked whether the run goes on.
    ConditionChecked {
        command: String,
        /// Absent: it could not be run, or took too long; `output` says why.
        exit_code: Option<i32>,
        output: String,
        goes_on: bool,
    },
    /// A request was sent to a model.
    ModelRequested {
        model: String,
        round: u32,
        messages: u32,
        estimated_tokens: u64,
        /// What it costs if nobody says more: it counts where no answer was recorded.
        #[serde(default)]
        estimated_cost: NanoUsd,
    },
    /// A model answered.
    ModelAnswered {
        model: String,
        round: u32,
        text: String,
        tool_calls: Vec<LoggedCall>,
        stop: String,
        usage: Usage,
        duration_ms: u64,
    },
    /// A model request failed; `retry_in_ms` is set when it is sent again.
    ModelFailed {
        model: String,
        round: u32,
        class: String,
        message: String,
        retry_in_ms: Option<u64>,
    },
    /// A tool began: recorded before it runs.
    ToolStarted {
        call_id: String,
        tool: String,
        /// The tool may have effects outside the worktree: without a result they are unknown.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        effects: bool,
    },
    /// A request beside the conversation: a summary.
    AuxRequested { purpose: String, model: String, estimated_tokens: u64, estimated_cost: NanoUsd },
    /// Its end; a failure that cost nothing has no usage.
    AuxAnswered { purpose: String, model: String, usage: Usage, duration_ms: u64 },
    /// A tool is not offered: the persona's or the task's permissions keep it from the run.
    PersonaToolBlocked { persona: Option<String>, tool: String, reason: String },
    /// The prompt fills much of the model's context window.
    ContextPressure { tokens: u64, window: u64 },
    /// The older half of the conversation became a summary; `reason` is `pressure` or `overflow`.
    ContextCompacted {
        reason: String,
        dropped_messages: u32,
        tokens_before: u64,
        /// A model wrote the summary; else a line of fleet's own stands for it.
        summarized: bool,
    },
    /// Another model answers for the rest of the attempt.
    ModelSwitched { from: String, to: String, reason: String },
    /// A tool's one result, as the model sees it.
    ToolFinished {
        call_id: String,
        tool: String,
        is_error: bool,
        output: String,
        exit_code: Option<i32>,
        duration_ms: u64,
        /// The tool may have had effects outside the worktree.
        effects: bool,
    },
    /// The network policy judged a connection; handed to the log before anything of it passes.
    EgressJudged {
        /// Who asked: `sandbox` or `web_fetch`.
        via: String,
        /// `host:port`, or what was asked for instead, printable.
        target: String,
        allowed: bool,
        /// Why not.
        reason: Option<String>,
    },
    /// A connection that was allowed ended, or did not come about.
    EgressEnded {
        via: String,
        target: String,
        sent_bytes: u64,
        received_bytes: u64,
        duration_ms: u64,
        /// Absent: both sides had ended.
        reason: Option<String>,
    },
    /// Connections beyond those with lines of their own.
    EgressSummed { allowed: u64, denied: u64, sent_bytes: u64, received_bytes: u64 },
    /// A file was published.
    ArtifactPublished { artifact: Artifact },
    /// The run remembered a fact for later runs of its task; perhaps an old one went for it.
    MemoryChanged { key: String, value: String, evicted: Option<String> },
    /// The plan changed; `open` items are left.
    PlanChanged { open: u32, done: u32 },
    /// Spending came near a ceiling.
    BudgetWindDown { ceiling: String, spent: String, limit: String },
    /// A finish gate sent the loop round again, or let it pass.
    GateChecked { gate: String, passed: bool, message: String },
    /// The work was fetched into the repository.
    WorkCollected {
        branch: Option<String>,
        commit: Option<String>,
        commits: u32,
        diff_stat: Option<String>,
    },
    /// Something degraded that a person should know of.
    Warned { message: String },
    /// The attempt takes longer than its task's expected duration: `sla_warning` or `sla_overdue`.
    RanLong { level: String, expected_ms: u64, after_ms: u64 },
    /// An attempt ended.
    AttemptFinished { outcome: Outcome, usage: Usage, retry_at: Option<Timestamp> },
}

/// A tool call as it is logged: the arguments are valid JSON text, redacted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedCall {
    pub call_id: String,
    pub tool: String,
    pub arguments: String,
}
