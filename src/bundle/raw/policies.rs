//! Keys of a task that say when its occurrences run and when not.

use schemars::JsonSchema;
use serde::Deserialize;

use super::DurationText;

/// What happens to due times that passed while nothing could run.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
#[schemars(rename = "Misfire")]
pub(crate) struct RawMisfire {
    /// Which of them run late. Default latest.
    pub(crate) policy: Option<RawMisfirePolicy>,
    /// How late a due time may still be run, 1m to 1 year. Default 24h.
    pub(crate) max_delay: Option<DurationText>,
}

/// Which missed due times run late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "MisfirePolicy")]
pub(crate) enum RawMisfirePolicy {
    /// None: what is more than a minute late does not run.
    Skip,
    /// The latest.
    Latest,
    /// Each.
    All,
}

/// What happens to a due time while an earlier scheduled run of the task is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Overlap")]
pub(crate) enum RawOverlap {
    /// It does not run.
    Skip,
    /// It waits for the end of the earlier ones; at most 100 wait.
    Queue,
    /// It runs beside them.
    Allow,
    /// The earlier ones are cancelled.
    CancelRunning,
}

/// A command in the sealed sandbox that decides whether a scheduled run goes on.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
#[schemars(rename = "RunIf")]
pub(crate) struct RawRunIf {
    /// What the shell runs in the workspace, before anything is asked of the model.
    #[schemars(required, length(min = 1))]
    pub(crate) command: Option<String>,
    /// The exit code with which the run goes on, 0 to 255. Default 0.
    #[schemars(range(max = 255))]
    pub(crate) exit_code: Option<u32>,
    /// How long the command may take, 1s to 1h. Default 60s.
    pub(crate) timeout: Option<DurationText>,
    /// What follows when it cannot be run or takes too long. Default fail.
    pub(crate) on_error: Option<RawOnError>,
}

/// What follows when the condition itself fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "OnError")]
pub(crate) enum RawOnError {
    /// The attempt fails as `transient`.
    Fail,
    /// The occurrence does not run.
    Skip,
    /// The run goes on.
    Run,
}
