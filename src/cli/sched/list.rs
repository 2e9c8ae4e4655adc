//! `fleet sched list`: tasks with their schedule and next due time.

use jiff::Timestamp;
use serde::Serialize;

use super::{local, standing};
use crate::bundle::Task;
use crate::cli::bundle_source::BundleSource;
use crate::cli::{Exit, Failure, Global, print, print_json, table};
use crate::clock::Clock;
use crate::run::TaskName;
use crate::schedule::Schedule;
use crate::store::HeldTask;

/// One task of `sched list --json`; the names are documented.
#[derive(Serialize)]
struct ListedTask<'a> {
    task: &'a TaskName,
    enabled: bool,
    schedule: Option<&'a str>,
    timezone: &'a str,
    /// By how much each due time is later than the schedule names it.
    jitter_seconds: u64,
    until: Option<Timestamp>,
    /// How many runs the schedule may still start; absent: without end.
    left: Option<u64>,
    /// The schedule is over: nothing is due any more.
    ended: bool,
    next_due: Option<Timestamp>,
    next_due_local: Option<String>,
    /// What is to say about the next due time.
    note: Option<String>,
    /// How the schedule is held: paused by an operator, or parked.
    held: Option<String>,
    tags: &'a [String],
    description: Option<&'a str>,
}

impl<'a> ListedTask<'a> {
    fn new(task: &'a Task, held: Option<&HeldTask>, used: u64, now: Timestamp) -> Self {
        let held = held.filter(|held| held.holds(now));
        let schedule = task.schedule.as_ref().map(|schedule| &schedule.schedule);
        let left = task.schedule.as_ref().and_then(|schedule| schedule.left(used));
        let following = schedule.and_then(|schedule| schedule.next_after(now));
        let following = following.filter(|_| left != Some(0));
        let next = following.filter(|_| task.enabled && held.is_none()).zip(schedule);
        ListedTask {
            task: &task.name,
            enabled: task.enabled,
            schedule: schedule.map(Schedule::expression),
            timezone: &task.timezone,
            jitter_seconds: schedule.map_or(0, |schedule| schedule.jitter().as_secs()),
            until: schedule.and_then(Schedule::end),
            left,
            ended: schedule.is_some() && following.is_none(),
            next_due: next.map(|(due, _)| due),
            next_due_local: next.map(|(due, schedule)| schedule.local(due)),
            note: next.and_then(|(due, schedule)| schedule.note(due)),
            held: held.map(HeldTask::words),
            tags: &task.tags,
            description: task.description.as_deref(),
        }
    }

    fn schedule_words(&self) -> String {
        let expression = self.schedule.unwrap_or("by hand");
        match self.until {
            Some(end) => format!("{expression} until {}", local(end, self.timezone)),
            None => expression.to_owned(),
        }
    }

    /// How it is held, or what is to say about the next due time.
    fn remark(&self) -> Option<&str> {
        self.held.as_deref().or(self.note.as_deref())
    }

    fn next_words(&self) -> String {
        match self.next_due {
            Some(due) => local(due, self.timezone),
            None if !self.enabled => "disabled".to_owned(),
            None if self.held.is_some() => "held".to_owned(),
            None if self.ended => "ended".to_owned(),
            None => "-".to_owned(),
        }
    }
}

pub(super) fn run(source: &BundleSource, json: bool, global: &Global) -> Result<Exit, Failure> {
    let bundle = source.valid(global)?;
    let now = Clock::System.now();
    let (held, used) = standing(global)?;
    let tasks: Vec<ListedTask<'_>> = bundle
        .tasks
        .values()
        .map(|task| {
            let used = used.get(&task.name).copied().unwrap_or(0);
            ListedTask::new(task, held.get(&task.name), used, now)
        })
        .collect();
    if json {
        print_json(&tasks)?;
        return Ok(Exit::Ok);
    }
    if tasks.is_empty() {
        print("the bundle has no tasks")?;
        return Ok(Exit::Ok);
    }
    print(&rows(&tasks))?;
    Ok(Exit::Ok)
}

/// A line per task; remarks have a column only where there are any.
fn rows(tasks: &[ListedTask<'_>]) -> String {
    let noted = tasks.iter().any(|task| task.remark().is_some());
    let mut titles = vec!["TASK", "SCHEDULE", "NEXT DUE", "ZONE"];
    titles.extend(noted.then_some("NOTE"));
    let mut table = table(&titles);
    for task in tasks {
        let mut row = vec![
            task.task.to_string(),
            task.schedule_words(),
            task.next_words(),
            task.timezone.to_owned(),
        ];
        row.extend(noted.then(|| task.remark().unwrap_or_default().to_owned()));
        table.add_row(row);
    }
    table.to_string()
}
