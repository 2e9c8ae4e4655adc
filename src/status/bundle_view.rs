//! What the pages know of the bundle: plain facts that the runner publishes after each load. Refuses
//! to read the bundle itself.

use std::collections::HashMap;

use jiff::Timestamp;
use serde::{Serialize, Serializer};

use crate::bundle::{Bundle, Problem, Severity, Task};
use crate::run::{CommitId, TaskName};
use crate::schedule::Schedule;
use crate::store::HeldTask;

/// The bundle as the pages show it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct BundleView {
    /// The bundle's name; empty while none is loaded.
    pub name: String,
    /// The commit that runs now; absent while none is loaded.
    pub commit: Option<CommitId>,
    pub loaded_at: Option<Timestamp>,
    /// Every task, by name, enabled or not.
    pub tasks: Vec<TaskView>,
    /// What is wrong with `problems_commit`.
    pub problems: Vec<Problem>,
    /// The commit that was checked last: another one than `commit` when it was refused.
    pub problems_commit: Option<CommitId>,
}

/// A task as the pages show it.
#[derive(Clone, Debug, Serialize)]
pub struct TaskView {
    pub name: TaskName,
    pub description: Option<String>,
    pub enabled: bool,
    /// Absent: by hand only.
    #[serde(serialize_with = "expression")]
    pub schedule: Option<Schedule>,
    /// IANA name.
    pub timezone: String,
    /// How many runs its schedule may still start; absent: without end.
    pub left: Option<u64>,
    /// How many it starts in all.
    #[serde(skip)]
    pub count: Option<u64>,
    /// The next due instant as it was when the view was published.
    pub next_due: Option<Timestamp>,
    pub tags: Vec<String>,
    /// How the schedule is held, when it is: paused by an operator, or parked.
    pub paused: Option<String>,
}

fn expression<S: Serializer>(schedule: &Option<Schedule>, to: S) -> Result<S::Ok, S::Error> {
    schedule.as_ref().map(Schedule::expression).serialize(to)
}

impl BundleView {
    /// The view of a bundle that was loaded at `now` with these warnings.
    pub fn of(bundle: &Bundle, problems: Vec<Problem>, now: Timestamp) -> Self {
        BundleView {
            name: bundle.name.clone(),
            commit: Some(bundle.commit.clone()),
            loaded_at: Some(now),
            tasks: bundle.tasks.values().map(|task| TaskView::of(task, now)).collect(),
            problems,
            problems_commit: Some(bundle.commit.clone()),
        }
    }

    /// The same bundle, kept because `commit` was refused with these problems.
    pub fn refused(&self, commit: CommitId, problems: Vec<Problem>) -> Self {
        BundleView { problems, problems_commit: Some(commit), ..self.clone() }
    }

    /// The same bundle, with the tasks that are held at `now` marked so, and those whose schedules have
    /// started all their runs as ended. `used` says how many each has started.
    pub fn holding(
        &self,
        held: &HashMap<TaskName, HeldTask>,
        used: &HashMap<TaskName, u64>,
        now: Timestamp,
    ) -> Self {
        let mut view = self.clone();
        for task in &mut view.tasks {
            let used = used.get(&task.name).copied().unwrap_or(0);
            task.left = task.count.map(|count| count.saturating_sub(used));
            if task.left == Some(0) {
                task.next_due = None;
            }
            let held = held.get(&task.name).filter(|held| held.holds(now));
            task.paused = held.map(HeldTask::words);
        }
        view
    }

    /// The task of that name, if the bundle has it.
    pub fn task(&self, name: &TaskName) -> Option<&TaskView> {
        self.tasks.iter().find(|task| task.name == *name)
    }

    /// The zone in which a task's times are shown: UTC when the bundle no longer has the task.
    pub fn zone(&self, name: &TaskName) -> &str {
        self.task(name).map_or("UTC", |task| task.timezone.as_str())
    }

    /// How many problems are of that severity.
    pub fn count(&self, severity: Severity) -> usize {
        self.problems.iter().filter(|problem| problem.severity == severity).count()
    }
}

impl TaskView {
    /// The view of a task at `now`.
    pub fn of(task: &Task, now: Timestamp) -> Self {
        let schedule = task.schedule.as_ref().map(|schedule| schedule.schedule.clone());
        TaskView {
            name: task.name.clone(),
            description: task.description.clone(),
            enabled: task.enabled,
            next_due: schedule.as_ref().and_then(|schedule| schedule.next_after(now)),
            schedule,
            left: task.schedule.as_ref().and_then(|schedule| schedule.count),
            count: task.schedule.as_ref().and_then(|schedule| schedule.count),
            timezone: task.timezone.clone(),
            tags: task.tags.clone(),
            paused: None,
        }
    }

    /// The next due instant as of `now`; `None` for tasks that are off, held or by hand only.
    pub fn due_after(&self, now: Timestamp) -> Option<Timestamp> {
        if !self.enabled || self.paused.is_some() || self.left == Some(0) {
            return None;
        }
        match self.next_due {
            Some(due) if due > now => Some(due),
            _ => self.schedule.as_ref().and_then(|schedule| schedule.next_after(now)),
        }
    }
}
