//! A week ahead: what is due on which day. Tasks that are due very often are listed once.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::frame::Frame;
use super::overview::no_next;
use crate::status::cron_words::cron_words;
use crate::status::words::{Moment, Words};
use crate::status::{BundleView, TaskView};

/// A task that is due more often than this in a week is listed as frequent.
const MOST_A_WEEK: usize = 28;
/// The most lines of one page.
const MOST_LINES: usize = 2000;

#[derive(Clone, Debug, Serialize)]
pub(crate) struct SchedulePage {
    pub frame: Frame,
    pub days: Vec<Day>,
    pub frequent: Vec<Frequent>,
    /// Tasks that are not due by themselves: (name, why).
    pub idle: Vec<(String, String)>,
    /// Lines that were left out.
    pub omitted: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Day {
    pub title: String,
    pub dues: Vec<Due>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Due {
    pub task: String,
    pub at: Moment,
    pub timezone: String,
    /// A remark when a clock change moves it.
    pub note: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Frequent {
    pub task: String,
    pub schedule: String,
    pub timezone: String,
    pub next: Moment,
}

/// Makes the page. Days are those of UTC when tasks have different zones, else of their zone.
pub(crate) fn page(frame: Frame, bundle: &BundleView, now: Timestamp) -> SchedulePage {
    let zone = common_zone(bundle);
    let mut frequent = Vec::new();
    let mut all: Vec<(Timestamp, &TaskView)> = Vec::new();
    for task in &bundle.tasks {
        let dues = week(task, now);
        match dues.as_slice() {
            [next, ..] if dues.len() > MOST_A_WEEK => frequent.push(often(task, *next, now)),
            _ => all.extend(dues.into_iter().map(|due| (due, task))),
        }
    }
    all.sort_by(|a, b| (a.0, &a.1.name).cmp(&(b.0, &b.1.name)));
    let omitted = all.len().saturating_sub(MOST_LINES);
    all.truncate(MOST_LINES);
    let idle = |task: &TaskView| Some((task.name.to_string(), no_next(task, now)?));
    SchedulePage {
        frame,
        days: days(&all, zone, now),
        frequent,
        idle: bundle.tasks.iter().filter_map(idle).collect(),
        omitted,
    }
}

/// The zone of every task, or UTC.
fn common_zone(bundle: &BundleView) -> &str {
    let mut zones = bundle.tasks.iter().map(|task| task.timezone.as_str());
    match zones.next() {
        Some(first) if zones.all(|zone| zone == first) => first,
        _ => "UTC",
    }
}

/// The due instants of the coming week, at most one more than [`MOST_A_WEEK`].
fn week(task: &TaskView, now: Timestamp) -> Vec<Timestamp> {
    let end = now + SignedDuration::from_hours(7 * 24);
    let after = |due: &Timestamp| task.schedule.as_ref()?.next_after(*due);
    std::iter::successors(task.due_after(now), after)
        .take_while(|due| *due < end)
        .take(task.left.map_or(usize::MAX, |left| usize::try_from(left).unwrap_or(usize::MAX)))
        .take(MOST_A_WEEK + 1)
        .collect()
}

fn often(task: &TaskView, next: Timestamp, now: Timestamp) -> Frequent {
    let expression = task.schedule.as_ref().map_or("", |schedule| schedule.expression());
    Frequent {
        task: task.name.to_string(),
        schedule: cron_words(expression).unwrap_or_else(|| expression.to_owned()),
        timezone: task.timezone.clone(),
        next: Words::new(&task.timezone, now).moment(next),
    }
}

fn days(dues: &[(Timestamp, &TaskView)], zone: &str, now: Timestamp) -> Vec<Day> {
    let heading = Words::new(zone, now);
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut days: Vec<Day> = Vec::new();
    for (at, task) in dues {
        let title = heading.day(*at);
        let place = *places.entry(title.clone()).or_insert_with(|| {
            days.push(Day { title, dues: Vec::new() });
            days.len() - 1
        });
        days[place].dues.push(Due {
            task: task.name.to_string(),
            at: Words::new(&task.timezone, now).moment(*at),
            timezone: task.timezone.clone(),
            note: task.schedule.as_ref().and_then(|schedule| schedule.note(*at)),
        });
    }
    days
}
