//! `tasks/<name>.yaml`.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{DurationText, RawMisfire, RawNetwork, RawOverlap, RawRunIf, RawToolPermissions};

/// What to do, and when.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
#[schemars(title = "tasks/<name>.yaml")]
#[schemars(rename = "Task")]
pub(crate) struct RawTask {
    /// For people: what the task is for.
    pub(crate) description: Option<String>,
    /// Whether the schedule is followed. Default true. Also a disabled task is validated.
    pub(crate) enabled: Option<bool>,
    /// Words to select tasks by.
    pub(crate) tags: Option<Vec<String>>,
    /// Who answers for the task.
    pub(crate) owner: Option<String>,
    /// Five crontab fields or a name such as `@daily`. Absent: by hand only.
    pub(crate) schedule: Option<String>,
    /// Makes each due time later by less than this, always by the same seconds, which the task's name
    /// decides: 0s to 24h. Default: the manifest's, else none.
    pub(crate) jitter: Option<DurationText>,
    /// The last day on which the task is due, such as 2026-12-31, in its time zone; or the last
    /// instant, in RFC 3339. Default: without end.
    pub(crate) schedule_until: Option<String>,
    /// The schedule's time zone, an IANA name. Default: the manifest's, else UTC.
    pub(crate) timezone: Option<String>,
    /// After how many scheduled runs the schedule ends: at least 1. Occurrences that do not run are not
    /// counted.
    #[schemars(range(min = 1))]
    pub(crate) schedule_count: Option<u64>,
    /// What happens to due times that passed while nothing could run.
    pub(crate) misfire: Option<RawMisfire>,
    /// What happens to a due time while an earlier scheduled run of the task is open. Default skip.
    pub(crate) overlap: Option<RawOverlap>,
    /// Of all tasks with the same key at most one runs at a time; the others wait.
    #[schemars(length(min = 1, max = 128))]
    pub(crate) serialization_key: Option<String>,
    /// Higher runs first where not all can run at once, -100 to 100. Default 0. Whatever has waited for
    /// half an hour goes first.
    #[schemars(range(min = -100, max = 100))]
    pub(crate) priority: Option<i32>,
    /// A command that decides whether a scheduled run goes on.
    pub(crate) run_if: Option<RawRunIf>,
    /// After how many dead letters in a row the task parks itself, at most 1000; 0 never. Default 5.
    #[schemars(range(max = 1000))]
    pub(crate) park_after: Option<u32>,
    /// The persona: the name of a file in personas/ without `.yaml`.
    pub(crate) persona: Option<String>,
    /// What the model is asked to do: a minijinja template over task, run, date and previous.
    #[schemars(required)]
    pub(crate) prompt: Option<String>,
    /// A file under system_prompts/ whose text begins the system prompt.
    pub(crate) system_prompt: Option<String>,
    /// The model, as `provider/model` or a name that exactly one provider lists.
    pub(crate) model: Option<String>,
    /// The model that takes over for the rest of an attempt when the other's provider fails.
    pub(crate) fallback_model: Option<String>,
    /// Summarize the older half of a conversation before it fills the model's context window. Default
    /// false, or what the host's configuration says.
    pub(crate) auto_compact: Option<bool>,
    /// The sampling temperature, 0 to 2.
    #[schemars(range(min = 0.0, max = 2.0))]
    pub(crate) temperature: Option<f64>,
    /// Ceilings of a run.
    pub(crate) limits: Option<RawLimits>,
    /// What can be reached over the network: `false`, nothing; `true`, every public host on ports 443
    /// and 80; or a list of hosts: `host`, `host:port`, `*.host`. Default: the manifest's, else false.
    pub(crate) allow_network: Option<RawNetwork>,
    /// Which tools the task's runs may use, of those that its persona may. Default: all of them.
    pub(crate) tool_permissions: Option<RawToolPermissions>,
    /// Let runs keep facts for later runs of the task, with `remember` and `recall`. Default false.
    pub(crate) instruction_self_improve: Option<bool>,
    /// Refuse a call that was made three times already while nothing changed in between. Default true.
    pub(crate) repeat_guard: Option<bool>,
    /// In which repository the task works.
    pub(crate) workspace: Option<RawWorkspace>,
    /// How a run's checkout is made and removed.
    pub(crate) worktree_config: Option<RawWorktreeConfig>,
    /// Further attempts after failures that may be retried, at most 100. Default 0.
    #[schemars(range(max = 100))]
    pub(crate) max_retries: Option<u32>,
    /// How and after what a run is tried again.
    pub(crate) retry_policy: Option<RawRetryPolicy>,
    /// A JSON Schema by which the last answer of a run, one JSON value, must be valid.
    pub(crate) output_schema: Option<serde_json::Map<String, serde_json::Value>>,
    /// What must hold before a run is a success.
    pub(crate) completion: Option<RawCompletion>,
    /// The channels that are told. Default: the manifest's, else every one.
    pub(crate) notify: Option<Vec<String>>,
    /// How many minutes a run takes as a rule, 0.1 to 527040. Absent: nobody is told that it takes long.
    #[schemars(range(min = 0.1, max = 527_040.0))]
    pub(crate) expected_duration_minutes: Option<f64>,
    /// After how many times the expected duration a warning is due, 0.1 to 1000. Default 1.
    #[schemars(range(min = 0.1, max = 1000.0))]
    pub(crate) sla_warn: Option<f64>,
    /// After how many times the expected duration a run is overdue, 0.1 to 1000. It goes on. Default 2.
    #[schemars(range(min = 0.1, max = 1000.0))]
    pub(crate) sla_fail: Option<f64>,
}

/// Ceilings of a run. 0 is unlimited, with a warning.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
#[schemars(rename = "Limits")]
pub(crate) struct RawLimits {
    /// US dollars, over all attempts. Default 5.
    #[schemars(range(min = 0.0))]
    pub(crate) max_cost_usd: Option<f64>,
    /// Tokens that were not read from a cache, over all attempts. Default 10000000.
    pub(crate) max_total_tokens: Option<u64>,
    /// Model requests of an attempt. Default 300.
    pub(crate) max_iterations: Option<u32>,
    /// An attempt's time on the clock, such as 4h. Default: the host's ceiling alone.
    pub(crate) wall_timeout: Option<DurationText>,
    /// Limits of the container.
    pub(crate) sandbox: Option<RawSandboxLimits>,
}

/// Limits of a run's container, which is never without.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
#[schemars(rename = "SandboxLimits")]
pub(crate) struct RawSandboxLimits {
    /// Memory in MiB, 64 to 1048576. Default 512.
    #[schemars(range(min = 64, max = 1_048_576))]
    pub(crate) memory_mb: Option<u64>,
    /// Processors, fractions allowed, 0.1 to 1024. Default 1.
    #[schemars(range(min = 0.1, max = 1024.0))]
    pub(crate) cpus: Option<f64>,
    /// Processes and threads, 16 to 1000000. Default 128.
    #[schemars(range(min = 16, max = 1_000_000))]
    pub(crate) pids: Option<u64>,
    /// Disk in MiB, polled, 16 to 16777216. Default 5120.
    #[schemars(range(min = 16, max = 16_777_216))]
    pub(crate) disk_mb: Option<u64>,
    /// Files that each process may have open, 64 to 1048576. Default 1024.
    #[schemars(range(min = 64, max = 1_048_576))]
    pub(crate) nofile: Option<u64>,
}

/// In which repository the task works.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
#[schemars(rename = "Workspace")]
pub(crate) struct RawWorkspace {
    /// The root of a local git repository; relative to the bundle's directory. Absent: fleet keeps a
    /// private repository for the task.
    pub(crate) repo: Option<String>,
}

/// How a run's checkout is made and removed.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
#[schemars(rename = "WorktreeConfig")]
pub(crate) struct RawWorktreeConfig {
    /// Default true: a git worktree on a branch of its own. False: a plain checkout whose changes are
    /// not collected.
    pub(crate) enabled: Option<bool>,
    /// Where the run's branch starts. Default: the repository's HEAD.
    pub(crate) base_branch: Option<String>,
    /// What the branch's name begins with. Default `fleet/task-`.
    pub(crate) branch_prefix: Option<String>,
    /// Default true: the worktree is removed after the run. A branch with commits stays.
    pub(crate) auto_cleanup: Option<bool>,
    /// How long it stays before it is removed, at most 30 days. Default 0.
    #[schemars(range(max = 2_592_000))]
    pub(crate) cleanup_delay_seconds: Option<u64>,
}

/// How and after what a run is tried again.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
#[schemars(rename = "RetryPolicy")]
pub(crate) struct RawRetryPolicy {
    /// How the wait grows. Default exponential.
    pub(crate) backoff: Option<RawBackoff>,
    /// The first wait. Default 30s.
    pub(crate) initial_delay: Option<DurationText>,
    /// The longest wait. Default 10m.
    pub(crate) max_delay: Option<DurationText>,
    /// Classes of failure that are tried again besides the transient ones.
    pub(crate) retry_on: Option<Vec<String>>,
    /// Further attempts after interruptions, counted apart. Default 3.
    pub(crate) max_interruptions: Option<u32>,
}

/// How the wait between attempts grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Backoff")]
pub(crate) enum RawBackoff {
    /// It doubles.
    Exponential,
    /// It stays.
    Fixed,
}

/// What must hold before a run is a success.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
#[schemars(rename = "Completion")]
pub(crate) struct RawCompletion {
    /// Tools that must have been called with success.
    pub(crate) required_tools: Option<Vec<String>>,
    /// Files that must have been published, relative to the workspace.
    pub(crate) artifacts: Option<Vec<String>>,
    /// A command that must end with 0 in the sandbox.
    pub(crate) shell: Option<String>,
}
