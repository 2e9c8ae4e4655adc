//! Whether an attempt is followed by another (design §6). Pure: an exhaustive match over classes.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{DeadLetterClass, OutcomeClass, RunState};

/// How the wait between attempts grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backoff {
    Exponential,
    Fixed,
}

/// A task's retry policy, with defaults filled in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryPolicy {
    /// Further attempts after the first, for retryable failures. Default 0.
    pub max_retries: u32,
    pub backoff: Backoff,
    /// Default 30 s.
    pub initial_delay: Duration,
    /// Default 600 s.
    pub max_delay: Duration,
    /// Classes that are retried besides those that always are.
    pub retry_on: Vec<OutcomeClass>,
    /// Further attempts after interruptions, counted apart. Default 3.
    pub max_interruptions: u32,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        RetryPolicy {
            max_retries: 0,
            backoff: Backoff::Exponential,
            initial_delay: Duration::from_secs(30),
            max_delay: Duration::from_secs(600),
            retry_on: Vec::new(),
            max_interruptions: 3,
        }
    }
}

/// How often a run has failed so far, by counter, this failure not included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    pub retries: u32,
    pub connector_retries: u32,
    pub interruptions: u32,
}

/// What follows an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Another attempt, after this wait.
    Retry { after: Duration, counters: Counters },
    /// The run's end.
    Finish { state: RunState, dead_letter: Option<DeadLetterClass> },
}

/// Waits before the attempts that follow a connector's outage (design §6).
const CONNECTOR_DELAYS: [Duration; 2] = [Duration::from_secs(300), Duration::from_secs(600)];
/// How far a wait may stray to either side.
const JITTER: f64 = 0.1;

/// Decides what follows an attempt that ended in `class`. `counters` are the failures so far, this one
/// not included. `chance` in 0..=1 picks the ±10 % jitter of the wait, so that the decision is pure.
pub fn decide(
    class: OutcomeClass,
    counters: Counters,
    policy: &RetryPolicy,
    chance: f64,
) -> Decision {
    match class {
        OutcomeClass::Success => end(RunState::Success),
        OutcomeClass::Panic => end(RunState::Error),
        OutcomeClass::Cancelled => end(RunState::Cancelled),
        OutcomeClass::Transient => {
            again(counters, policy, chance).unwrap_or(dead(DeadLetterClass::RetryExhausted))
        }
        OutcomeClass::ConnectorUnavailable => connector(counters, chance),
        OutcomeClass::Interrupted => interrupted(counters, policy),
        // Another attempt would meet the same wall, or needs a person first.
        OutcomeClass::WallTimeout | OutcomeClass::Config => dead(DeadLetterClass::NonRetryable),
        OutcomeClass::CostCeiling
        | OutcomeClass::TokenCeiling
        | OutcomeClass::IterationCeiling
        | OutcomeClass::ContextBudget
        | OutcomeClass::EnforcementRounds
        | OutcomeClass::AuditAbort
        | OutcomeClass::Unverified
        | OutcomeClass::CompletionFailed
        | OutcomeClass::DeniedTool
        | OutcomeClass::StructuredOutput
        | OutcomeClass::LoopExhausted => {
            let asked = policy.retry_on.contains(&class);
            asked
                .then(|| again(counters, policy, chance))
                .flatten()
                .unwrap_or(dead(DeadLetterClass::NonRetryable))
        }
    }
}

/// Whether any policy can have the class tried again: what `retry_on` may name.
pub fn may_retry(class: OutcomeClass) -> bool {
    let asked = RetryPolicy { max_retries: 1, retry_on: vec![class], ..RetryPolicy::default() };
    matches!(decide(class, Counters::default(), &asked, 0.5), Decision::Retry { .. })
}

fn end(state: RunState) -> Decision {
    Decision::Finish { state, dead_letter: None }
}

fn dead(class: DeadLetterClass) -> Decision {
    Decision::Finish { state: RunState::DeadLettered, dead_letter: Some(class) }
}

/// A retry on the policy's budget, while there is any left.
fn again(counters: Counters, policy: &RetryPolicy, chance: f64) -> Option<Decision> {
    if counters.retries >= policy.max_retries {
        return None;
    }
    let delay = match policy.backoff {
        Backoff::Fixed => policy.initial_delay,
        Backoff::Exponential => policy
            .initial_delay
            .saturating_mul(1_u32.checked_shl(counters.retries).unwrap_or(u32::MAX)),
    };
    let counters = Counters { retries: counters.retries + 1, ..counters };
    Some(Decision::Retry { after: jittered(delay.min(policy.max_delay), chance), counters })
}

fn connector(counters: Counters, chance: f64) -> Decision {
    match CONNECTOR_DELAYS.get(counters.connector_retries as usize) {
        Some(delay) => Decision::Retry {
            after: jittered(*delay, chance),
            counters: Counters { connector_retries: counters.connector_retries + 1, ..counters },
        },
        None => dead(DeadLetterClass::RetryExhausted),
    }
}

fn interrupted(counters: Counters, policy: &RetryPolicy) -> Decision {
    if counters.interruptions >= policy.max_interruptions {
        return dead(DeadLetterClass::RetryExhausted);
    }
    Decision::Retry {
        after: Duration::ZERO,
        counters: Counters { interruptions: counters.interruptions + 1, ..counters },
    }
}

fn jittered(delay: Duration, chance: f64) -> Duration {
    delay.mul_f64(1.0 - JITTER + 2.0 * JITTER * chance.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generous() -> RetryPolicy {
        RetryPolicy {
            max_retries: 2,
            retry_on: OutcomeClass::ALL.to_vec(),
            ..RetryPolicy::default()
        }
    }

    fn retries(class: OutcomeClass, policy: &RetryPolicy) -> bool {
        matches!(decide(class, Counters::default(), policy, 0.5), Decision::Retry { .. })
    }

    #[test]
    fn only_three_classes_are_retried_without_being_asked() {
        let policy = RetryPolicy { max_retries: 2, ..RetryPolicy::default() };
        let retried: Vec<_> =
            OutcomeClass::ALL.into_iter().filter(|class| retries(*class, &policy)).collect();
        assert_eq!(
            retried,
            [
                OutcomeClass::Transient,
                OutcomeClass::ConnectorUnavailable,
                OutcomeClass::Interrupted
            ]
        );
    }

    #[test]
    fn five_classes_are_never_retried_whoever_asks() {
        let never: Vec<_> =
            OutcomeClass::ALL.into_iter().filter(|class| !retries(*class, &generous())).collect();
        assert_eq!(
            never,
            [
                OutcomeClass::Success,
                OutcomeClass::WallTimeout,
                OutcomeClass::Config,
                OutcomeClass::Panic,
                OutcomeClass::Cancelled
            ]
        );
    }

    #[test]
    fn exhausted_budget_is_a_dead_letter_of_its_class() {
        let counters = Counters { retries: 2, connector_retries: 2, interruptions: 3 };
        let end = |class| decide(class, counters, &generous(), 0.5);
        assert_eq!(end(OutcomeClass::Transient), dead(DeadLetterClass::RetryExhausted));
        assert_eq!(end(OutcomeClass::ConnectorUnavailable), dead(DeadLetterClass::RetryExhausted));
        assert_eq!(end(OutcomeClass::Interrupted), dead(DeadLetterClass::RetryExhausted));
        assert_eq!(end(OutcomeClass::CostCeiling), dead(DeadLetterClass::NonRetryable));
    }

    #[test]
    fn panic_ends_as_error_and_cancellation_as_cancelled() {
        let end = |class| decide(class, Counters::default(), &generous(), 0.5);
        assert_eq!(end(OutcomeClass::Panic), super::end(RunState::Error));
        assert_eq!(end(OutcomeClass::Cancelled), super::end(RunState::Cancelled));
    }

    #[test]
    fn waits_double_up_to_the_longest_and_stray_a_tenth() {
        let policy = RetryPolicy { max_retries: 40, ..RetryPolicy::default() };
        let wait = |retries, chance| {
            let counters = Counters { retries, ..Counters::default() };
            match decide(OutcomeClass::Transient, counters, &policy, chance) {
                Decision::Retry { after, .. } => after.as_secs_f64().round(),
                Decision::Finish { .. } => panic!("retries are left"),
            }
        };
        assert_eq!([wait(0, 0.5), wait(1, 0.5), wait(4, 0.5)], [30.0, 60.0, 480.0]);
        assert_eq!([wait(5, 0.5), wait(39, 0.5)], [600.0, 600.0]);
        assert_eq!([wait(0, 0.0), wait(0, 1.0)], [27.0, 33.0]);
    }
}
