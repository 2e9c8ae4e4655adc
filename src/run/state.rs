//! The states of a run and the reasons for not running.

use serde::{Deserialize, Serialize};

/// Where a run stands. `Error` is kept for panics and for attempts that will be tried again;
/// `DeadLettered` is the terminal failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    Pending,
    Running,
    /// Waits for its next attempt.
    Scheduled,
    PausedAwaitingApproval,
    Success,
    Error,
    DeadLettered,
    Cancelled,
    Interrupted,
    Skipped,
}

impl RunState {
    /// Every state.
    pub const ALL: [RunState; 10] = [
        RunState::Pending,
        RunState::Running,
        RunState::Scheduled,
        RunState::PausedAwaitingApproval,
        RunState::Success,
        RunState::Error,
        RunState::DeadLettered,
        RunState::Cancelled,
        RunState::Interrupted,
        RunState::Skipped,
    ];

    /// The stable name: as in JSON and the store.
    pub fn as_str(self) -> &'static str {
        match self {
            RunState::Pending => "pending",
            RunState::Running => "running",
            RunState::Scheduled => "scheduled",
            RunState::PausedAwaitingApproval => "paused_awaiting_approval",
            RunState::Success => "success",
            RunState::Error => "error",
            RunState::DeadLettered => "dead_lettered",
            RunState::Cancelled => "cancelled",
            RunState::Interrupted => "interrupted",
            RunState::Skipped => "skipped",
        }
    }

    /// The state of that stable name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }

    /// Whether nothing more happens to the run by itself.
    pub fn is_terminal(self) -> bool {
        match self {
            RunState::Pending
            | RunState::Running
            | RunState::Scheduled
            | RunState::PausedAwaitingApproval
            | RunState::Interrupted => false,
            RunState::Success
            | RunState::Error
            | RunState::DeadLettered
            | RunState::Cancelled
            | RunState::Skipped => true,
        }
    }
}

/// Why a due occurrence did not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    SkippedOverlap,
    SkippedMisfire,
    SkippedPaused,
    SkippedRunIf,
    SkippedSerialization,
    SkippedDisabledByReload,
}

impl SkipReason {
    /// The stable name: as in JSON and the store.
    pub fn as_str(self) -> &'static str {
        match self {
            SkipReason::SkippedOverlap => "skipped_overlap",
            SkipReason::SkippedMisfire => "skipped_misfire",
            SkipReason::SkippedPaused => "skipped_paused",
            SkipReason::SkippedRunIf => "skipped_run_if",
            SkipReason::SkippedSerialization => "skipped_serialization",
            SkipReason::SkippedDisabledByReload => "skipped_disabled_by_reload",
        }
    }
}

/// What made an occurrence due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// Its schedule.
    Schedule,
    /// `fleet sched trigger` or `fleet task run`.
    Manual,
}
