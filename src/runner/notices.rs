//! Which notices an attempt's end and a long run are worth. Pure: the store sends none that the end
//! does not cause.

use jiff::Timestamp;

use crate::bundle::Task;
use crate::run::{Notice, NoticeEvent, Outcome, OutcomeClass, PreparedNotice, RunState};
use crate::store::ClaimedRun;

/// What the end of a run causes, as far as its outcome can.
const OF_AN_END: [NoticeEvent; 4] = [
    NoticeEvent::Failure,
    NoticeEvent::RepeatedFailure,
    NoticeEvent::Recovery,
    NoticeEvent::Parked,
];

/// A notice for each of the task's channels and each event that it is told of, to be sent if the end
/// causes it. An attempt that will be tried again causes none.
pub(super) fn of_end(
    task: Option<&Task>,
    claimed: &ClaimedRun,
    outcome: &Outcome,
    state: RunState,
    now: Timestamp,
) -> Vec<PreparedNotice> {
    let Some(task) = task.filter(|_| state.is_terminal()) else { return Vec::new() };
    let mut prepared = Vec::new();
    for channel in &task.notify {
        for event in channel.on.iter().filter(|event| OF_AN_END.contains(event)) {
            let occasion = Occasion {
                event: *event,
                state,
                outcome: Some(outcome.class),
                reason: &outcome.reason,
                at: now,
            };
            let notice = occasion.notice(&channel.name, claimed);
            prepared.push(PreparedNotice { nth: channel.after_failures, notice });
        }
    }
    prepared
}

/// A notice for each of the task's channels that is told of long runs.
pub(super) fn of_long_run(
    task: &Task,
    claimed: &ClaimedRun,
    event: NoticeEvent,
    reason: &str,
    now: Timestamp,
) -> Vec<Notice> {
    let occasion = Occasion { event, state: RunState::Running, outcome: None, reason, at: now };
    let told = task.notify.iter().filter(|channel| channel.on.contains(&event));
    told.map(|channel| occasion.notice(&channel.name, claimed)).collect()
}

/// What happened to a run.
struct Occasion<'o> {
    event: NoticeEvent,
    state: RunState,
    outcome: Option<OutcomeClass>,
    reason: &'o str,
    at: Timestamp,
}

impl Occasion<'_> {
    fn notice(&self, channel: &str, claimed: &ClaimedRun) -> Notice {
        Notice {
            idempotency_key: Notice::key(&claimed.run_id, claimed.attempt, self.event, channel),
            channel: channel.to_owned(),
            event: self.event,
            task: claimed.task.clone(),
            run_id: claimed.run_id.clone(),
            due: claimed.due,
            at: self.at,
            state: self.state,
            outcome: self.outcome.map(|class| class.as_str().to_owned()),
            reason: self.reason.to_owned(),
            attempts: claimed.attempt,
            // The store counts them.
            failures_in_a_row: 0,
        }
    }
}
