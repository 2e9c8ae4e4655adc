//! Renders a task's prompts for one attempt.

use super::Context;
use crate::agent::prompt::{EarlierEffect, PromptParts, system_prompt, user_prompt};
use crate::bundle::{PreviousRun, PromptVars, Task, render_prompt};
use crate::run::{Memory, Outcome, OutcomeClass};
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
    memories: Option<&[Memory]>,
) -> Result<Rendered, Outcome> {
    let now = context.clock.now();
    let vars = PromptVars {
        run_id: claimed.run_id.clone(),
        due: claimed.due,
        attempt: claimed.attempt,
        now,
        previous: claimed.previous_outcome.clone().map(|outcome| PreviousRun {
            answer: claimed.previous_answer.clone().unwrap_or_default(),
            outcome,
        }),
    };
    let prompt = render_prompt(task, &vars)
        .map_err(|error| Outcome::failed(OutcomeClass::Config, super::with_causes(&error)))?;
    let effects = claimed.effects.iter().map(|effect| EarlierEffect {
        tool: effect.tool.clone(),
        arguments: effect.arguments.clone(),
        result: effect.result.clone(),
    });
    let parts = PromptParts {
        workspace_path: checkout.path.display().to_string(),
        task_system_prompt: task.system_prompt.clone(),
        persona: task
            .persona
            .as_ref()
            .map(|persona| (persona.name.clone(), persona.instructions.clone())),
        network: task.network.is_open().then(|| task.network.to_string()),
        output_schema: task.output_schema.as_ref().map(|schema| schema.text().to_owned()),
        memories: memories
            .map(|facts| facts.iter().map(|fact| (fact.key.clone(), fact.value.clone())).collect()),
        earlier_effects: effects.collect(),
    };
    Ok(Rendered {
        system: system_prompt(&parts),
        user: user_prompt(&prompt, &local_date(task, now)),
    })
}

/// Today in the task's zone.
fn local_date(task: &Task, now: jiff::Timestamp) -> String {
    let zone = crate::schedule::zone(&task.timezone);
    now.to_zoned(zone).date().to_string()
}
