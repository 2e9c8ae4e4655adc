//! What the loop is given and what it gives back.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::clock::Clock;
use crate::egress::Gate;
use crate::model::Model;
use crate::run::{Artifact, Cancel, NanoUsd, NativeTool, Outcome, OutputSchema, Usage};
use crate::sandbox::PendingSandbox;
use crate::secrets::Redactor;
use crate::tools::Memories;

use super::{Breaker, ContextPolicy, EventSink};

/// Prices per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Price {
    pub input_per_million: NanoUsd,
    pub cached_per_million: NanoUsd,
    pub output_per_million: NanoUsd,
}

/// The model that answers, and what it costs.
#[derive(Clone)]
pub struct ModelChoice {
    pub model: Arc<dyn Model>,
    /// The name as the provider knows it.
    pub name: String,
    /// `provider/model`, for events and logs.
    pub display_name: String,
    /// The price, where the provider does not report cost; a missing price is an estimate that the
    /// runner marks.
    pub price: Price,
    /// The price is a guess: every cost computed from it is marked as estimated.
    pub price_is_estimate: bool,
    pub temperature: Option<f64>,
    /// The context window, by the provider's catalogue or the model's name.
    pub window_tokens: u64,
    /// The provider's, shared by every run.
    pub breaker: Breaker,
}

/// Ceilings; `None` is unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub max_cost: Option<NanoUsd>,
    pub max_total_tokens: Option<u64>,
    pub max_iterations: Option<u32>,
    /// The instant at which the attempt's wall time is over.
    pub wall_deadline: Option<Timestamp>,
}

/// What must hold before a run counts as a success.
#[derive(Clone, Debug, Default)]
pub struct Completion {
    /// Paths or names that must have been published.
    pub artifacts: Vec<String>,
    /// A command that must exit 0 in the sandbox.
    pub shell: Option<String>,
    /// Tools that must have succeeded at least once.
    pub required_tools: Vec<String>,
    /// The form of the last answer.
    pub output_schema: Option<OutputSchema>,
}

/// Everything the loop needs for one attempt.
pub struct AgentInput {
    pub model: ModelChoice,
    /// Takes over for the rest of the attempt when the model's provider fails.
    pub fallback: Option<ModelChoice>,
    pub system_prompt: String,
    pub user_prompt: String,
    /// The roster, in the order in which it is offered.
    pub tools: Vec<NativeTool>,
    /// Refuse the fourth identical call while nothing changed in between.
    pub repeat_guard: bool,
    pub limits: Limits,
    /// What earlier attempts of the run spent: counts against the ceilings.
    pub spent_before: Usage,
    /// The share of a ceiling from which on the model is told to wrap up (default 0.8); 1 never tells.
    pub wind_down_fraction: f64,
    pub completion: Completion,
    /// What earlier runs of the task remembered; empty for tasks without a memory.
    pub memories: Memories,
    pub context: ContextPolicy,
    pub sandbox: PendingSandbox,
    /// The run's way out; absent: none.
    pub egress: Option<Gate>,
    pub workspace_path: String,
    /// The ceiling for one bash call or Python cell.
    pub tool_timeout: Duration,
    /// FLEET_PYTHON_CELL_TIMEOUT: a further ceiling for one Python cell.
    pub python_cell_timeout: Option<Duration>,
    /// Bytes of a tool's output that the model sees (1–128 KiB; default 64 KiB).
    pub output_limit_bytes: usize,
    /// Output is never cut inside what this masks.
    pub redactor: Redactor,
    pub events: EventSink,
    pub clock: Clock,
    pub cancel: Cancel,
}

/// How the attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentEnd {
    pub outcome: Outcome,
    /// The model's last words.
    pub answer: Option<String>,
    /// The answer's value, where the task has an output schema and the value is valid.
    pub output: Option<serde_json::Value>,
    /// What this attempt spent.
    pub usage: Usage,
    pub artifacts: Vec<Artifact>,
    /// A tool ran that may have had effects outside the worktree.
    pub effects: bool,
}
