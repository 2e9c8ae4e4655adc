//! `fleet sched list`: tasks with their schedule and next due time.

use jiff::Timestamp;
use serde::Serialize;

use super::local;
use crate::bundle::Task;
use crate::cli::bundle_source::BundleSource;
use crate::cli::{Exit, Failure, Global, print, print_json, table};
use crate::clock::Clock;
use crate::run::TaskName;

#[derive(Serialize)]
struct ListedTask<'a> {
    task: &'a TaskName,
    enabled: bool,
    schedule: Option<&'a str>,
    timezone: &'a str,
    next_due: Option<Timestamp>,
    next_due_local: Option<String>,
    tags: &'a [String],
    description: Option<&'a str>,
}

impl<'a> ListedTask<'a> {
    fn new(task: &'a Task, now: Timestamp) -> Self {
        let schedule = task.schedule.as_ref().map(|schedule| &schedule.schedule);
        let next = schedule.filter(|_| task.enabled).and_then(|schedule| schedule.next_after(now));
        ListedTask {
            task: &task.name,
            enabled: task.enabled,
            schedule: schedule.map(|schedule| schedule.expression()),
            timezone: &task.timezone,
            next_due: next,
            next_due_local: next.zip(schedule).map(|(due, schedule)| schedule.local(due)),
            tags: &task.tags,
            description: task.description.as_deref(),
        }
    }
}

pub(super) fn run(source: &BundleSource, json: bool, global: &Global) -> Result<Exit, Failure> {
    let bundle = source.valid(global)?;
    let now = Clock::System.now();
    let tasks: Vec<ListedTask<'_>> =
        bundle.tasks.values().map(|task| ListedTask::new(task, now)).collect();
    if json {
        print_json(&tasks)?;
        return Ok(Exit::Ok);
    }
    if tasks.is_empty() {
        print("the bundle has no tasks")?;
        return Ok(Exit::Ok);
    }
    let mut table = table(&["TASK", "SCHEDULE", "NEXT DUE", "ZONE"]);
    for task in &tasks {
        table.add_row([
            task.task.as_str(),
            task.schedule.unwrap_or("by hand"),
            &next_words(task),
            task.timezone,
        ]);
    }
    print(&table.to_string())?;
    Ok(Exit::Ok)
}

fn next_words(task: &ListedTask<'_>) -> String {
    match (task.next_due, task.enabled) {
        (Some(due), _) => local(due, task.timezone),
        (None, false) => "disabled".to_owned(),
        (None, true) => "-".to_owned(),
    }
}
