//! The mark of a state: a shape, a tone and a word, so that no state is told by colour alone. Pure.

use serde::Serialize;

use crate::run::RunState;
use crate::store::RunRow;

/// Which shape and tone stand for a state; the page has a symbol and a style for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    Ok,
    Bad,
    Running,
    Waiting,
    Skipped,
    Stopped,
    Warning,
}

/// How a state is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Mark {
    pub kind: Kind,
    pub word: &'static str,
    /// The outcome's class or the reason for not running, in words; empty where `word` says it all.
    pub detail: String,
}

impl Mark {
    /// The mark of a run.
    pub(crate) fn of(run: &RunRow) -> Self {
        let (kind, word) = state(run.state);
        let detail = match (run.state, run.outcome.as_deref()) {
            (RunState::Skipped, _) => {
                let reason = run.reason.as_deref().unwrap_or("");
                reason.strip_prefix("skipped_").unwrap_or(reason)
            }
            (RunState::Success | RunState::Running | RunState::Pending, _) | (_, None) => "",
            (RunState::Cancelled, Some("cancelled")) => "",
            (_, Some(outcome)) => outcome,
        };
        Mark { kind, word, detail: detail.replace('_', " ") }
    }

    /// The mark of an attempt by its outcome class; `None` = it has not ended.
    pub(crate) fn of_attempt(outcome: Option<&str>) -> Self {
        match outcome {
            None => Mark { kind: Kind::Running, word: "running", detail: String::new() },
            Some("success") => Mark { kind: Kind::Ok, word: "success", detail: String::new() },
            Some("cancelled") => Mark { kind: Kind::Stopped, word: "cancelled", detail: "".into() },
            Some("interrupted") => {
                Mark { kind: Kind::Warning, word: "interrupted", detail: String::new() }
            }
            Some(other) => {
                Mark { kind: Kind::Bad, word: "failed", detail: other.replace('_', " ") }
            }
        }
    }
}

/// The shape and the word of a state.
pub(crate) fn state(state: RunState) -> (Kind, &'static str) {
    match state {
        RunState::Pending => (Kind::Waiting, "waiting"),
        RunState::Running => (Kind::Running, "running"),
        RunState::Scheduled => (Kind::Waiting, "will retry"),
        RunState::PausedAwaitingApproval => (Kind::Waiting, "awaits approval"),
        RunState::Success => (Kind::Ok, "success"),
        RunState::Error => (Kind::Bad, "error"),
        RunState::DeadLettered => (Kind::Bad, "dead letter"),
        RunState::Cancelled => (Kind::Stopped, "cancelled"),
        RunState::Interrupted => (Kind::Warning, "interrupted"),
        RunState::Skipped => (Kind::Skipped, "skipped"),
    }
}
