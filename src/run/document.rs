//! `docs/outcomes.md`, written from what [`decide`] decides.

use super::{
    Counters, DeadLetterClass, Decision, OutcomeClass, RetryPolicy, RunState, decide, may_retry,
};

const HEAD: &str = "\
# How a run can end

<!-- Generated from src/run/document.rs; `cargo nextest run outcomes` says when it is stale. -->

Each attempt ends in exactly one outcome class. The class decides whether another attempt follows, and
which state the run is left in when none does. `fleet runs show` names the class and the reason.

- **retried** says when another attempt follows. `max_retries` is 0 unless the task sets it, so a
  transient failure is retried only in tasks that ask for it.
- **end state** is the run's state when no attempt follows any more. A run in `dead_lettered` waits for
  a person: `fleet dlq list` shows it, `fleet dlq replay` puts it back, and `fleet dlq drop` closes it: the
  run is then `cancelled`, and keeps its class.
- **metric labels** are the label `outcome` of `fleet_runs_total`, and for dead letters the label
  `reason` of `fleet_dead_letter_queued_total`.

| class | retried by default | only with `retry_on` | end state | metric labels | meaning |
|---|---|---|---|---|---|
";

/// The text of `docs/outcomes.md`.
pub fn outcomes_document() -> String {
    let mut text = HEAD.to_owned();
    for class in OutcomeClass::ALL {
        let (state, label) = end(class);
        let labels = label.map_or(format!("`{}`", class.as_str()), |label| {
            format!("`{}`, `{}`", class.as_str(), label.as_str())
        });
        text += &format!(
            "| `{}` | {} | {} | `{}` | {labels} | {} |\n",
            class.as_str(),
            by_default(class),
            if asked_for(class) { "yes" } else { "no" },
            state.as_str(),
            meaning(class)
        );
    }
    text
}

/// Which counter allows another attempt when nobody names the class in `retry_on`.
fn by_default(class: OutcomeClass) -> &'static str {
    let policy = RetryPolicy { max_retries: 1, ..RetryPolicy::default() };
    match decide(class, Counters::default(), &policy, 0.5) {
        Decision::Finish { .. } => "no",
        Decision::Retry { counters, .. } if counters.retries > 0 => "up to `max_retries`",
        Decision::Retry { counters, .. } if counters.interruptions > 0 => {
            "up to `max_interruptions`, at once"
        }
        Decision::Retry { .. } => "twice, after 5 and 10 minutes",
    }
}

/// Whether `retry_on` makes the difference.
fn asked_for(class: OutcomeClass) -> bool {
    may_retry(class) && by_default(class) == "no"
}

/// What is decided when every counter is used up.
fn end(class: OutcomeClass) -> (RunState, Option<DeadLetterClass>) {
    let used_up = u32::MAX;
    let counters =
        Counters { retries: used_up, connector_retries: used_up, interruptions: used_up };
    match decide(class, counters, &RetryPolicy::default(), 0.5) {
        Decision::Finish { state, dead_letter } => (state, dead_letter),
        Decision::Retry { .. } => unreachable!("no counter is left for {class:?}"),
    }
}

/// What happened, in one line.
fn meaning(class: OutcomeClass) -> &'static str {
    match class {
        OutcomeClass::Success => "The task was done and its checks passed.",
        OutcomeClass::Transient => {
            "A model, the network, name resolution or the start of the sandbox failed in a way that may pass."
        }
        OutcomeClass::ConnectorUnavailable => "A connector that the task needs did not answer.",
        OutcomeClass::CostCeiling => "The run spent as much money as it may.",
        OutcomeClass::TokenCeiling => "The run spent as many tokens as it may.",
        OutcomeClass::IterationCeiling => "The attempt went as many rounds as it may.",
        OutcomeClass::ContextBudget => "The conversation no longer fits into the model's context.",
        OutcomeClass::WallTimeout => {
            "The attempt took longer than `limits.wall_timeout` or the host allows."
        }
        OutcomeClass::EnforcementRounds => {
            "The agent was sent back too often without meeting the conditions for finishing."
        }
        OutcomeClass::AuditAbort => {
            "The agent said itself, in its audit, that it could not do the task."
        }
        OutcomeClass::Unverified => "Nothing confirmed the work, such as a check in `completion`.",
        OutcomeClass::CompletionFailed => {
            "A required tool, artifact or check of the task's `completion` is missing or failed, or the agent's commits were refused."
        }
        OutcomeClass::DeniedTool => "A tool that the task needs was denied.",
        OutcomeClass::StructuredOutput => "The answer never matched the task's output schema.",
        OutcomeClass::LoopExhausted => "The task's loop ended before its goal was reached.",
        OutcomeClass::Config => {
            "Something that the task needs is missing or unknown at run time, such as a key or a model."
        }
        OutcomeClass::Interrupted => "fleet was stopped, or crashed, while the attempt ran.",
        OutcomeClass::Panic => "fleet itself failed: a defect worth reporting.",
        OutcomeClass::Cancelled => "A person cancelled the run.",
    }
}
