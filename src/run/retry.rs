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

/// Decides what follows an attempt that ended in `class`. `chance` in 0..=1 picks the ±10 % jitter
/// of the wait, so that the decision itself is pure.
pub fn decide(
    class: OutcomeClass,
    counters: Counters,
    policy: &RetryPolicy,
    chance: f64,
) -> Decision {
    let _ = (class, counters, policy, chance);
    todo!("written with the store")
}
