//! What is due: the next due instant of each scheduled task in a heap, so that a tick costs what is
//! due and not what exists. Pure.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::bundle::Bundle;
use crate::run::{SkipReason, TaskName};
use crate::schedule::Schedule;

/// How late a due instant may still be run; older ones are recorded as missed.
pub const MISFIRE_MAX_DELAY: Duration = Duration::from_secs(24 * 3600);

/// A due instant of a task.
pub type Due = (Timestamp, TaskName);

/// The tasks that have a schedule, each with its next due instant.
#[derive(Debug, Default)]
pub struct Agenda {
    next: BinaryHeap<Reverse<Due>>,
    schedules: HashMap<TaskName, Schedule>,
}

impl Agenda {
    /// The agenda of a bundle's enabled tasks, from the first instants later than `after`.
    pub fn new(bundle: &Bundle, after: Timestamp) -> Self {
        let mut agenda = Agenda::default();
        for task in bundle.tasks.values().filter(|task| task.enabled) {
            let Some(schedule) = &task.schedule else { continue };
            if let Some(due) = schedule.schedule.next_after(after) {
                agenda.next.push(Reverse((due, task.name.clone())));
                agenda.schedules.insert(task.name.clone(), schedule.schedule.clone());
            }
        }
        agenda
    }

    /// When something is due next.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.next.peek().map(|Reverse((due, _))| *due)
    }

    /// Takes everything due until `now`, in order of time.
    pub fn take_due(&mut self, now: Timestamp) -> Vec<Due> {
        let mut due = Vec::new();
        while let Some(Reverse((instant, _))) = self.next.peek() {
            if *instant > now {
                break;
            }
            let Some(Reverse((instant, task))) = self.next.pop() else { break };
            let later = self.schedules.get(&task).and_then(|known| known.next_after(instant));
            if let Some(later) = later {
                self.next.push(Reverse((later, task.clone())));
            }
            due.push((instant, task));
        }
        due
    }
}

/// Decides for each due instant whether it runs: of several instants of one task the latest, unless
/// it is older than [`MISFIRE_MAX_DELAY`] or the task still has an open run.
pub fn plan(
    due: Vec<Due>,
    now: Timestamp,
    open: &HashSet<TaskName>,
) -> Vec<(Due, Option<SkipReason>)> {
    let latest: BTreeMap<TaskName, Timestamp> =
        due.iter().map(|(instant, task)| (task.clone(), *instant)).collect();
    let max_delay = SignedDuration::try_from(MISFIRE_MAX_DELAY).expect("24 h fits");
    let skip = |(instant, task): &Due| {
        let is_latest = latest.get(task) == Some(instant);
        if !is_latest || now.duration_since(*instant) > max_delay {
            Some(SkipReason::SkippedMisfire)
        } else if open.contains(task) {
            Some(SkipReason::SkippedOverlap)
        } else {
            None
        }
    };
    due.into_iter()
        .map(|due| {
            let skipped = skip(&due);
            (due, skipped)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("timestamp")
    }

    fn due(text: &str, task: &str) -> Due {
        (at(text), TaskName::new(task))
    }

    #[test]
    fn of_several_missed_instants_only_the_latest_runs() {
        let planned = plan(
            vec![
                due("2026-01-01T00:00:00Z", "a"),
                due("2026-01-01T01:00:00Z", "b"),
                due("2026-01-01T02:00:00Z", "a"),
            ],
            at("2026-01-01T02:00:01Z"),
            &HashSet::new(),
        );
        let skips: Vec<_> = planned.into_iter().map(|(_, skip)| skip).collect();
        assert_eq!(skips, [Some(SkipReason::SkippedMisfire), None, None]);
    }

    #[test]
    fn instant_that_is_too_old_is_recorded_as_missed() {
        let planned = plan(
            vec![due("2026-01-01T00:00:00Z", "a")],
            at("2026-01-02T00:00:01Z"),
            &HashSet::new(),
        );
        assert_eq!(planned[0].1, Some(SkipReason::SkippedMisfire));
    }

    #[test]
    fn due_task_with_an_open_run_is_recorded_as_overlap() {
        let open = HashSet::from([TaskName::new("a")]);
        let planned =
            plan(vec![due("2026-01-01T00:00:00Z", "a")], at("2026-01-01T00:00:00Z"), &open);
        assert_eq!(planned[0].1, Some(SkipReason::SkippedOverlap));
    }
}
