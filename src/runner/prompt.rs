//! Renders a task's prompts for one attempt.

use super::Context;
use crate::agent::prompt::{EarlierEffect, PromptParts, system_prompt, user_prompt};
use crate::bundle::{PromptPrevious, PromptRun, PromptVars, Task, render_prompt};
use crate::run::{Outcome, OutcomeClass};
use crate::store::ClaimedRun;
use crate::worktree::Checkout;

/// The two texts that the model starts from.
pub struct Rendered {
    pub system: String,
    pub user: String,
}

/// Renders both prompts. A template that fails at run time is a `config` outcome.
pub fn render(
    context: &Context,
    task: &Task,
    claimed: &ClaimedRun,
    checkout: &Checkout,
) -> Result<Rendered, Outcome> {
    let date = local_date(context, task);
    let vars = PromptVars {
        task: task.name.as_str().to_owned(),
        run: PromptRun {
            id: claimed.run_id.as_str().to_owned(),
            due: claimed.due.to_string(),
            attempt: claimed.attempt,
        },
        date: date.clone(),
        previous: PromptPrevious {
            answer: claimed.previous_answer.clone().unwrap_or_default(),
            outcome: claimed.previous_outcome.clone().unwrap_or_default(),
        },
    };
    let prompt = render_prompt(task, &vars)
        .map_err(|error| Outcome::failed(OutcomeClass::Config, error.to_string()))?;
    let effects = claimed.effects.iter().map(|effect| EarlierEffect {
        tool: effect.tool.clone(),
        arguments: effect.arguments.clone(),
        result: effect.result.clone(),
    });
    let parts = PromptParts {
        workspace_path: checkout.path.display().to_string(),
        task_system_prompt: task.system_prompt.clone(),
        persona: task.persona.as_ref().map(|persona| (persona.name.clone(), persona.instructions.clone())),
        earlier_effects: effects.collect(),
    };
    Ok(Rendered { system: system_prompt(&parts), user: user_prompt(&prompt, &date) })
}

/// Today in the task's zone.
fn local_date(context: &Context, task: &Task) -> String {
    let now = context.clock.now();
    let zoned = jiff::tz::TimeZone::get(&task.timezone).map(|zone| now.to_zoned(zone).date().to_string());
    // The zone was validated with the bundle; UTC is right for the rest.
    zoned.unwrap_or_else(|_| now.to_zoned(jiff::tz::TimeZone::UTC).date().to_string())
}
