//! What is due: the next due instant of each scheduled task in a heap, so that a tick costs what is
//! due and not what exists. Pure.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use jiff::Timestamp;

use crate::bundle::{Bundle, TaskSchedule};
use crate::run::TaskName;
use crate::schedule::Schedule;

/// A due instant of a task.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Due {
    pub at: Timestamp,
    pub task: TaskName,
}

/// One task's schedule, and how often it may still let the task run.
#[derive(Debug)]
struct Entry {
    schedule: Schedule,
    /// `None`: without end.
    left: Option<u64>,
}

/// The tasks that have a schedule, each with its next due instant.
#[derive(Debug, Default)]
pub struct Agenda {
    next: BinaryHeap<Reverse<Due>>,
    entries: HashMap<TaskName, Entry>,
}

impl Agenda {
    /// The agenda of a bundle's enabled tasks, from the first instants later than `after`. `used` says
    /// how often schedules have let their tasks run, which `schedule_count` limits.
    pub fn new(bundle: &Bundle, after: Timestamp, used: &HashMap<TaskName, u64>) -> Self {
        let mut agenda = Agenda::default();
        for task in bundle.tasks.values().filter(|task| task.enabled) {
            let Some(schedule) = &task.schedule else { continue };
            let used = used.get(&task.name).copied().unwrap_or(0);
            agenda.enter(&task.name, schedule, used, after);
        }
        agenda
    }

    fn enter(&mut self, task: &TaskName, schedule: &TaskSchedule, used: u64, after: Timestamp) {
        let left = schedule.left(used);
        if left == Some(0) {
            return;
        }
        if let Some(at) = schedule.schedule.next_after(after) {
            self.next.push(Reverse(Due { at, task: task.clone() }));
            let entry = Entry { schedule: schedule.schedule.clone(), left };
            self.entries.insert(task.clone(), entry);
        }
    }

    /// Counts anew how often the tasks whose schedules end by a count may still run: what was let run
    /// may have been skipped since. A task that may run again is due after `now`.
    pub fn recount(&mut self, bundle: &Bundle, now: Timestamp, used: &HashMap<TaskName, u64>) {
        for task in bundle.tasks.values().filter(|task| task.enabled) {
            let Some(schedule @ TaskSchedule { count: Some(_), .. }) = &task.schedule else {
                continue;
            };
            let used = used.get(&task.name).copied().unwrap_or(0);
            match self.entries.get_mut(&task.name) {
                Some(entry) => entry.left = schedule.left(used),
                None => self.enter(&task.name, schedule, used, now),
            }
        }
    }

    /// When something is due next.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.next.peek().map(|Reverse(due)| due.at)
    }

    /// Takes what is due until `now`, in order of time, at most `limit` instants: what is missed after
    /// a long sleep is taken in parts.
    pub fn take_due(&mut self, now: Timestamp, limit: usize) -> Vec<Due> {
        let mut taken = Vec::new();
        while taken.len() < limit && self.next_due().is_some_and(|next| next <= now) {
            let Some(Reverse(due)) = self.next.pop() else { break };
            let Some(entry) = self.entries.get(&due.task) else { continue };
            if entry.left == Some(0) {
                self.entries.remove(&due.task);
                continue;
            }
            if let Some(at) = entry.schedule.next_after(due.at) {
                self.next.push(Reverse(Due { at, task: due.task.clone() }));
            }
            taken.push(due);
        }
        taken
    }

    /// The due instants of a task after `after` and until `now`.
    pub fn later(
        &self,
        task: &TaskName,
        after: Timestamp,
        now: Timestamp,
    ) -> impl Iterator<Item = Timestamp> {
        let schedule = self.entries.get(task).map(|entry| &entry.schedule);
        let next = move |at: Timestamp| {
            schedule.and_then(|schedule| schedule.next_after(at)).filter(|at| *at <= now)
        };
        std::iter::successors(next(after), move |at| next(*at))
    }

    /// Whether the task's schedule lets it run no more.
    pub fn has_ended(&self, task: &TaskName) -> bool {
        self.entries.get(task).is_none_or(|entry| entry.left == Some(0))
    }

    /// An occurrence is let run.
    pub fn count(&mut self, task: &TaskName) {
        if let Some(Entry { left: Some(left), .. }) = self.entries.get_mut(task) {
            *left = left.saturating_sub(1);
        }
    }

    /// It was recorded before: it is not counted twice.
    pub fn take_back(&mut self, task: &TaskName) {
        if let Some(Entry { left: Some(left), .. }) = self.entries.get_mut(task) {
            *left = left.saturating_add(1);
        }
    }
}
