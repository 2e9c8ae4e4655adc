//! An occurrence of a task as it is recorded.

use jiff::Timestamp;

use crate::bundle::{Overlap, Task};
use crate::run::{RunId, SkipReason, Trigger};
use crate::store::{NewOccurrence, Room};

/// A scheduled occurrence, perhaps one that does not run, with its reason.
pub fn scheduled(
    task: &Task,
    run_id: RunId,
    due: Timestamp,
    now: Timestamp,
    skip: Option<SkipReason>,
) -> NewOccurrence {
    NewOccurrence {
        run_id,
        task: task.name.clone(),
        due,
        trigger: Trigger::Schedule,
        skip,
        tags: task.tags.clone(),
        queued_at: now,
        priority: task.priority,
        room: match task.overlap {
            Overlap::Skip | Overlap::Queue => Room::Exclusive,
            Overlap::Allow => Room::Shared,
            Overlap::CancelRunning => Room::ReplacesOlder,
        },
        serialization_key: task.serialization_key.clone(),
    }
}

/// An occurrence that somebody asked for: due now, beside whatever the schedule does.
pub fn by_hand(task: &Task, run_id: RunId, now: Timestamp) -> NewOccurrence {
    NewOccurrence {
        trigger: Trigger::Manual,
        room: Room::Shared,
        ..scheduled(task, run_id, now, now, None)
    }
}
