//! A valid bundle: immutable, every reference resolved, every default filled in.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::channel::{Channel, Sla};
use crate::egress::NetworkPolicy;
use crate::run::{CommitId, NanoUsd, OutputSchema, RetryPolicy, TaskName, ToolPermissions};
use crate::schedule::Schedule;

/// One commit of the bundle repository, validated.
#[derive(Clone, Debug)]
pub struct Bundle {
    /// The commit; for files on disk (`--worktree`) the word `worktree`.
    pub commit: CommitId,
    pub name: String,
    pub providers: BTreeMap<String, Provider>,
    pub pricing: Pricing,
    pub sandbox: SandboxSettings,
    /// The manifest's `notify`, by name.
    pub channels: BTreeMap<String, Arc<Channel>>,
    pub personas: BTreeMap<String, Arc<Persona>>,
    /// Every task, enabled or not.
    pub tasks: BTreeMap<TaskName, Arc<Task>>,
}

/// Who does a task.
#[derive(Clone, Debug)]
pub struct Persona {
    pub name: String,
    pub description: Option<String>,
    /// The text that joins the system prompt.
    pub instructions: String,
    /// The model of tasks that name none.
    pub model: Option<ModelRef>,
    pub tool_permissions: ToolPermissions,
}

/// What to do, on which schedule.
#[derive(Clone, Debug)]
pub struct Task {
    pub name: TaskName,
    pub description: Option<String>,
    pub enabled: bool,
    pub tags: Vec<String>,
    pub owner: Option<String>,
    /// Absent: by hand only.
    pub schedule: Option<TaskSchedule>,
    pub misfire: Misfire,
    pub overlap: Overlap,
    /// Of all runs with the same key at most one runs at a time.
    pub serialization_key: Option<String>,
    /// -100 to 100; higher runs first.
    pub priority: i32,
    pub run_if: Option<RunIf>,
    /// Dead letters in a row that park the task; 0 never.
    pub park_after: u32,
    /// IANA name; also for tasks without a schedule, since times are shown in it.
    pub timezone: String,
    pub persona: Option<Arc<Persona>>,
    /// minijinja source; rendered by [`super::render_prompt`].
    pub prompt: String,
    /// The text of the file that `system_prompt` names.
    pub system_prompt: Option<String>,
    pub model: ModelRef,
    /// Answers when the model's provider fails.
    pub fallback_model: Option<ModelRef>,
    /// Summarize the older half of a long conversation; absent: as the host says.
    pub auto_compact: Option<bool>,
    pub temperature: Option<f64>,
    pub limits: TaskLimits,
    /// `allow_network`, within the manifest's allowlist.
    pub network: NetworkPolicy,
    /// Narrows what the persona's permissions leave.
    pub tool_permissions: ToolPermissions,
    /// Runs keep facts for later ones.
    pub remembers: bool,
    /// Refuse the fourth identical call.
    pub repeat_guard: bool,
    /// `workspace.repo`; absent: fleet keeps a private repository.
    pub repo: Option<PathBuf>,
    pub worktree: WorktreeConfig,
    pub retry: RetryPolicy,
    pub completion: Completion,
    /// The form of the last answer.
    pub output_schema: Option<OutputSchema>,
    /// The channels that are told of it.
    pub notify: Vec<Arc<Channel>>,
    /// When a run of it takes too long; `None`: nobody is told.
    pub sla: Option<Sla>,
    /// The recorded session, when the provider is `scripted`.
    pub script: Option<Arc<Script>>,
}

/// When a task is due.
#[derive(Clone, Debug)]
pub struct TaskSchedule {
    pub schedule: Schedule,
    /// It ends after that many runs.
    pub count: Option<u64>,
}

impl TaskSchedule {
    /// How many runs are left after `used`; `None` is without end.
    pub fn left(&self, used: u64) -> Option<u64> {
        self.count.map(|count| count.saturating_sub(used))
    }
}

impl Bundle {
    /// Whether some task's schedule ends after a number of runs.
    pub fn has_counted_schedules(&self) -> bool {
        let counted = |task: &Arc<Task>| {
            task.schedule.as_ref().is_some_and(|schedule| schedule.count.is_some())
        };
        self.tasks.values().any(counted)
    }
}

/// What happens to due times that passed while nothing could run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misfire {
    pub policy: MisfirePolicy,
    /// How late a due time may still be run.
    pub max_delay: Duration,
}

impl Default for Misfire {
    fn default() -> Self {
        let day = Duration::from_secs(24 * 3600);
        Misfire { policy: MisfirePolicy::Latest, max_delay: day }
    }
}

/// Which missed due times run late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MisfirePolicy {
    Skip,
    Latest,
    All,
}

/// What happens to a due time while an earlier scheduled run of the task is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlap {
    Skip,
    Queue,
    Allow,
    CancelRunning,
}

/// A command in the sandbox that decides whether a scheduled run goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunIf {
    pub command: String,
    /// The exit code with which it goes on; with any other it does not.
    pub exit_code: i32,
    pub timeout: Duration,
    pub on_error: OnError,
}

/// What follows when the condition itself fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnError {
    Fail,
    Skip,
    Run,
}

/// `provider/model`, resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelRef {
    /// A key of [`Bundle::providers`].
    pub provider: String,
    /// The model's name as the provider knows it.
    pub model: String,
}

/// A place that answers model requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Provider {
    pub name: String,
    pub kind: ProviderKind,
    pub models: Vec<String>,
    pub context_window_tokens: Option<u64>,
}

/// Who answers for a provider.
#[derive(Clone, Debug, PartialEq)]
pub enum ProviderKind {
    /// A service over HTTP.
    Http {
        service: HttpService,
        /// Without a trailing slash, for example `https://api.openai.com/v1`.
        base_url: String,
        /// The *name* of the environment variable that holds the key.
        api_key_env: Option<String>,
    },
    /// Recorded sessions of the bundle.
    Scripted,
}

/// What a provider over HTTP speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpService {
    /// Chat completions: OpenAI itself and everything compatible.
    OpenAi,
    /// Messages.
    Anthropic,
    /// Chat completions with OpenRouter's account of costs.
    OpenRouter,
    /// Chat completions of a local Ollama, which asks for no key.
    Ollama,
}

impl HttpService {
    /// The name in `type`.
    pub fn as_str(self) -> &'static str {
        match self {
            HttpService::OpenAi => "openai",
            HttpService::Anthropic => "anthropic",
            HttpService::OpenRouter => "openrouter",
            HttpService::Ollama => "ollama",
        }
    }
}

/// What models cost where the provider does not say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pricing {
    /// By `provider/model`.
    pub overrides: BTreeMap<String, PriceEntry>,
    /// For every other model; absent: fleet's own cautious guess, marked as an estimate.
    pub fallback: Option<PriceEntry>,
}

/// US dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriceEntry {
    pub input: NanoUsd,
    pub cached: NanoUsd,
    pub output: NanoUsd,
}

/// The manifest's `sandbox`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SandboxSettings {
    /// An image in fleet's Podman storage; absent: the one that `fleet sandbox build` made.
    pub image: Option<String>,
    /// `crun`, `runc` …; absent: the host's choice.
    pub runtime: Option<String>,
}

/// Ceilings of a run; `None` = unlimited (`0` in YAML, with a warning).
#[derive(Clone, Debug, PartialEq)]
pub struct TaskLimits {
    /// Default $5.
    pub max_cost: Option<NanoUsd>,
    /// Default 10,000,000.
    pub max_total_tokens: Option<u64>,
    /// Default 300.
    pub max_iterations: Option<u32>,
    /// `None`: only the host's FLEET_TASK_WALL_TIMEOUT.
    pub wall_timeout: Option<Duration>,
    pub sandbox: SandboxLimits,
}

/// Limits of a run's container.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SandboxLimits {
    /// Default 512.
    pub memory_mb: u64,
    /// Default 1.0.
    pub cpus: f64,
    /// Default 128.
    pub pids: u32,
    /// Default 5120. Soft: polled.
    pub disk_mb: u64,
    /// Open files of each process. Default 1024.
    pub nofile: u32,
}

impl Default for SandboxLimits {
    fn default() -> Self {
        SandboxLimits { memory_mb: 512, cpus: 1.0, pids: 128, disk_mb: 5120, nofile: 1024 }
    }
}

/// `worktree_config`, with the source document's defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorktreeConfig {
    /// Default true. False: a plain checkout without a branch, whose changes are not collected.
    pub enabled: bool,
    /// `None` = the repository's HEAD.
    pub base_branch: Option<String>,
    /// Default `fleet/task-`.
    pub branch_prefix: String,
    /// Default true: the worktree is removed after the run; a branch with commits stays.
    pub auto_cleanup: bool,
    pub cleanup_delay: Duration,
}

/// `completion`: what must hold before a run is a success.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    pub required_tools: Vec<String>,
    pub artifacts: Vec<String>,
    /// Runs in the sandbox; exit 0 passes.
    pub shell: Option<String>,
}

/// A recorded session: what the scripted model says, turn by turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Script {
    pub turns: Vec<ScriptTurn>,
    /// What happens after the last turn: repeat from this index (for runaway scripts), else a plain
    /// end of turn without text.
    pub loop_from: Option<usize>,
}

/// One answer of the scripted model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScriptTurn {
    pub text: String,
    /// Tool name and arguments: a mapping becomes JSON, a string is sent as it is (perhaps malformed).
    pub tool_calls: Vec<(String, String)>,
    pub prompt_tokens: u64,
    pub cached_tokens: u64,
    pub completion_tokens: u64,
    pub cost_usd: Option<f64>,
    pub delay: Duration,
    /// `length`, `end_turn`; absent: by whether there are calls.
    pub stop: Option<String>,
    /// Instead of an answer.
    pub fault: Option<ScriptFault>,
}

/// An HTTP-like fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptFault {
    pub status: u16,
    pub message: String,
    pub retry_after: Option<Duration>,
    /// How many requests it answers before the script goes on. Default 1.
    pub times: u32,
}
