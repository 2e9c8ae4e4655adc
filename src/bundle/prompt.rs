//! Task prompts: minijinja with strict undefined and a fuel limit.

use std::sync::LazyLock;

use jiff::Timestamp;
use jiff::tz::TimeZoneDatabase;
use minijinja::{Environment, UndefinedBehavior, Value, context};

use super::Task;
use crate::run::{AttemptNo, RunId};

/// What a prompt may speak of.
#[derive(Clone, Debug)]
pub struct PromptVars {
    pub run_id: RunId,
    /// When the occurrence was due.
    pub due: Timestamp,
    pub attempt: AttemptNo,
    /// The instant whose date in the task's zone is `date`.
    pub now: Timestamp,
    /// The task's previous finished run.
    pub previous: Option<PreviousRun>,
}

/// The end of an earlier run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PreviousRun {
    /// The model's last words.
    pub answer: String,
    /// The outcome's class.
    pub outcome: String,
}

/// Why a prompt could not be rendered.
#[derive(Debug, thiserror::Error)]
#[error("prompt of task {task}")]
pub struct PromptError {
    pub task: String,
    pub source: minijinja::Error,
}

/// Every variable, as templates write it.
pub(super) const VARIABLES: [&str; 11] = [
    "task",
    "task.name",
    "task.description",
    "run",
    "run.id",
    "run.due",
    "run.attempt",
    "date",
    "previous",
    "previous.answer",
    "previous.outcome",
];

/// A prompt is a few hundred instructions; a loop over everything is a mistake.
const FUEL: u64 = 50_000;

/// Renders a task's prompt.
pub fn render_prompt(task: &Task, vars: &PromptVars) -> Result<String, PromptError> {
    let zone = TimeZoneDatabase::bundled().get(&task.timezone).unwrap_or(jiff::tz::TimeZone::UTC);
    let due = vars.due.to_zoned(zone.clone());
    let date = vars.now.to_zoned(zone).date().to_string();
    let due = due.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string();
    let previous = vars.previous.clone().unwrap_or_default();
    let values = context! {
        task => context! {
            name => task.name.as_str(),
            description => task.description.as_deref().unwrap_or_default(),
        },
        run => context! { id => vars.run_id.as_str(), due => due, attempt => vars.attempt },
        date => date,
        previous => context! { answer => previous.answer, outcome => previous.outcome },
    };
    render(&task.prompt, values)
        .map_err(|source| PromptError { task: task.name.to_string(), source })
}

/// Sample values of every variable, to validate with.
pub(super) fn samples() -> Value {
    context! {
        task => context! { name => "task", description => "description" },
        run => context! {
            id => "0000000000000000",
            due => "2026-01-01T09:00:00+00:00",
            attempt => 1,
        },
        date => "2026-01-01",
        previous => context! { answer => "answer", outcome => "success" },
    }
}

fn render(source: &str, values: Value) -> Result<String, minijinja::Error> {
    ENVIRONMENT.template_from_str(source)?.render(values)
}

/// The rules of prompts.
pub(super) static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(FUEL));
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    environment
});
