//! What a run's end means for its task: failures in a row, parking, and which notices are due. Pure.

use serde::{Deserialize, Serialize};

use super::RunState;

/// Something that people may want to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeEvent {
    /// A run ended as a dead letter or in a panic.
    Failure,
    /// The channel's number of failures in a row was reached.
    RepeatedFailure,
    /// The first success after a failure.
    Recovery,
    /// The task parked itself.
    Parked,
    /// A card waits for an answer.
    Approval,
    /// The run takes longer than expected.
    SlaWarning,
    /// The run takes far longer than expected.
    SlaOverdue,
}

impl NoticeEvent {
    /// Every event, as `on` may name them.
    pub const ALL: [NoticeEvent; 7] = [
        NoticeEvent::Failure,
        NoticeEvent::RepeatedFailure,
        NoticeEvent::Recovery,
        NoticeEvent::Parked,
        NoticeEvent::Approval,
        NoticeEvent::SlaWarning,
        NoticeEvent::SlaOverdue,
    ];

    /// The stable name: as in `on`, JSON and the payload.
    pub fn as_str(self) -> &'static str {
        match self {
            NoticeEvent::Failure => "failure",
            NoticeEvent::RepeatedFailure => "repeated_failure",
            NoticeEvent::Recovery => "recovery",
            NoticeEvent::Parked => "parked",
            NoticeEvent::Approval => "approval",
            NoticeEvent::SlaWarning => "sla_warning",
            NoticeEvent::SlaOverdue => "sla_overdue",
        }
    }

    /// The event of that stable name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.as_str() == text)
    }
}

/// What the end of a run changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowUp {
    /// Failures in a row before this end.
    pub before: u32,
    /// Failures in a row with this end.
    pub failures_in_a_row: u32,
    /// The task parks itself: nothing of it is due until somebody resumes it.
    pub parks: bool,
}

impl FollowUp {
    /// What follows from a run's end in `state`. `park_after` failures in a row park the task, 0 never.
    /// Cancelled and skipped runs, and attempts that will be tried again, change nothing.
    pub fn after(before: u32, state: RunState, park_after: u32) -> Self {
        let failures_in_a_row = match state {
            RunState::DeadLettered | RunState::Error => before.saturating_add(1),
            RunState::Success => 0,
            RunState::Pending
            | RunState::Running
            | RunState::Scheduled
            | RunState::PausedAwaitingApproval
            | RunState::Cancelled
            | RunState::Interrupted
            | RunState::Skipped => before,
        };
        let parks = park_after > 0 && failures_in_a_row > before && failures_in_a_row >= park_after;
        FollowUp { before, failures_in_a_row, parks }
    }

    /// Whether that event happened. `nth` is the number of failures in a row that a channel waits for.
    pub fn causes(&self, event: NoticeEvent, nth: u32) -> bool {
        let failed = self.failures_in_a_row > self.before;
        match event {
            NoticeEvent::Failure => failed,
            NoticeEvent::RepeatedFailure => failed && self.failures_in_a_row == nth,
            NoticeEvent::Recovery => self.before > 0 && self.failures_in_a_row == 0,
            NoticeEvent::Parked => self.parks,
            NoticeEvent::Approval | NoticeEvent::SlaWarning | NoticeEvent::SlaOverdue => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caused(before: u32, state: RunState, park_after: u32) -> Vec<&'static str> {
        let follow_up = FollowUp::after(before, state, park_after);
        let events = NoticeEvent::ALL.into_iter().filter(|event| follow_up.causes(*event, 3));
        events.map(NoticeEvent::as_str).collect()
    }

    #[test]
    fn each_end_causes_its_notices() {
        assert_eq!(caused(0, RunState::DeadLettered, 5), ["failure"]);
        assert_eq!(caused(2, RunState::Error, 5), ["failure", "repeated_failure"]);
        assert_eq!(caused(4, RunState::DeadLettered, 5), ["failure", "parked"]);
        assert_eq!(caused(4, RunState::DeadLettered, 0), ["failure"]);
        assert_eq!(caused(1, RunState::Success, 5), ["recovery"]);
        assert_eq!(caused(0, RunState::Success, 5), Vec::<&str>::new());
        assert_eq!(caused(4, RunState::Cancelled, 5), Vec::<&str>::new());
        assert_eq!(caused(4, RunState::Scheduled, 5), Vec::<&str>::new());
    }

    #[test]
    fn only_a_success_ends_the_row() {
        for state in RunState::ALL {
            let after = FollowUp::after(2, state, 0).failures_in_a_row;
            let expected = match state {
                RunState::Success => 0,
                RunState::DeadLettered | RunState::Error => 3,
                _ => 2,
            };
            assert_eq!(after, expected, "{}", state.as_str());
        }
    }
}
