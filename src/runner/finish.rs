//! Ends an attempt: decides what follows, and writes the one terminal transaction.

use jiff::Timestamp;
use tracing::{info, warn};

use super::cleanup::Cleanup;
use super::collect::Work;
use super::{Context, notices};
use crate::bundle::Task;
use crate::fault;
use crate::run::{
    CommitId, Decision, Event, EventKind, Outcome, OutcomeClass, RetryPolicy, RunState, SkipReason,
    Usage, decide,
};
use crate::store::{AttemptFinish, ClaimedRun, StoreError};
use crate::worktree::Checkout;

/// How an attempt ended, with all that it left.
#[derive(Debug)]
pub struct Ending {
    pub outcome: Outcome,
    pub usage: Usage,
    pub answer: Option<String>,
    /// The answer's value by the task's output schema; kept of a success only.
    pub output: Option<serde_json::Value>,
    pub work: Work,
    /// The occurrence does not run after all.
    pub skipped: Option<SkipReason>,
}

impl Ending {
    /// An end before anything was spent or made.
    pub fn bare(outcome: Outcome) -> Self {
        let work = Work::default();
        Ending { outcome, usage: Usage::default(), answer: None, output: None, work, skipped: None }
    }

    /// The occurrence does not run after all, with its reason.
    pub fn skipped(reason: SkipReason) -> Self {
        let outcome = Outcome::failed(OutcomeClass::Cancelled, reason.as_str());
        Ending { skipped: Some(reason), ..Ending::bare(outcome) }
    }
}

/// Writes the terminal transaction. `task` is absent when the bundle no longer has it: then the
/// default policy decides.
pub async fn finish(
    context: &Context,
    task: Option<&Task>,
    claimed: &ClaimedRun,
    checkout: Option<&Checkout>,
    ending: Ending,
) -> Result<RunState, StoreError> {
    let now = context.clock.now();
    let policy = task.map_or_else(RetryPolicy::default, |task| task.retry.clone());
    let decision = match ending.skipped {
        Some(_) => Decision::Finish { state: RunState::Skipped, dead_letter: None },
        None => decide(ending.outcome.class, claimed.counters, &policy, chance()),
    };
    let (state, retry_at, counters, dead_letter) = match decision {
        Decision::Retry { after, counters } => (
            RunState::Scheduled,
            Some(now.saturating_add(after).unwrap_or(Timestamp::MAX)),
            counters,
            None,
        ),
        Decision::Finish { state, dead_letter } => (state, None, claimed.counters, dead_letter),
    };
    let event = EventKind::AttemptFinished {
        outcome: ending.outcome.clone(),
        usage: ending.usage,
        retry_at,
    };
    let cleanup =
        checkout.map(|checkout| Cleanup::of(checkout, task, state, &ending.work, now)).into_iter();
    let artifacts = if ending.outcome.class == OutcomeClass::Success {
        ending.work.artifacts
    } else {
        Vec::new()
    };
    let collected = ending.work.collected;
    let finish = AttemptFinish {
        at: now,
        outcome: ending.outcome.clone(),
        state,
        retry_at,
        counters,
        dead_letter,
        usage: ending.usage,
        answer: ending.answer,
        output: ending.output.filter(|_| ending.outcome.class == OutcomeClass::Success),
        artifacts,
        branch: collected.as_ref().and(checkout).and_then(|checkout| checkout.branch.clone()),
        commit: collected.as_ref().map(|collected| CommitId::new(collected.commit.clone())),
        diff_stat: collected.map(|collected| collected.diff_stat).filter(|stat| !stat.is_empty()),
        events: match ending.skipped {
            Some(_) => Vec::new(),
            None => vec![Event { at: now, attempt: claimed.attempt, kind: event }],
        },
        cleanup: cleanup.map(|job| job.to_json()).collect(),
        park_after: task.map_or(0, |task| task.park_after),
        notices: notices::of_end(task, claimed, &ending.outcome, state, now),
    };
    fault::point("before_terminal");
    context.store.finish_attempt(claimed.run_id.clone(), claimed.token, finish).await?;
    context.promised.notify_one();
    fault::point("after_terminal");
    log(claimed, &ending.outcome, state, retry_at);
    Ok(state)
}

fn log(claimed: &ClaimedRun, outcome: &Outcome, state: RunState, retry_at: Option<Timestamp>) {
    let class = outcome.class.as_str();
    match (state, retry_at) {
        (RunState::Success, _) => {
            info!(run.id = %claimed.run_id, task.id = %claimed.task, attempt = claimed.attempt, "run succeeded");
        }
        (_, Some(at)) => {
            warn!(run.id = %claimed.run_id, task.id = %claimed.task, attempt = claimed.attempt, outcome = class, retry_at = %at, reason = outcome.reason, "attempt failed and will be tried again");
        }
        (RunState::Skipped, _) => {
            warn!(run.id = %claimed.run_id, task.id = %claimed.task, occurrence.due = %claimed.due, reason = outcome.reason, "due occurrence does not run");
        }
        _ => {
            warn!(run.id = %claimed.run_id, task.id = %claimed.task, attempt = claimed.attempt, outcome = class, state = state.as_str(), reason = outcome.reason, "run failed");
        }
    }
}

/// A number in 0..=1 for the retry's jitter; without random bytes the middle serves.
pub(super) fn chance() -> f64 {
    let mut bytes = [0_u8; 4];
    match getrandom::fill(&mut bytes) {
        Ok(()) => f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX),
        Err(_) => 0.5,
    }
}
