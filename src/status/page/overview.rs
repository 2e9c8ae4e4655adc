//! The overview: each task with its next due time, its last outcome and its recent runs.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::Serialize;

use super::frame::Frame;
use crate::run::TaskName;
use crate::status::cron_words::cron_words;
use crate::status::mark::Mark;
use crate::status::words::{self, Moment, Words};
use crate::status::{BundleView, TaskView};
use crate::store::{RunRow, TaskStats, Totals};

/// How many runs a success strip shows.
const STRIP: usize = 30;

#[derive(Clone, Debug, Serialize)]
pub(crate) struct OverviewPage {
    pub frame: Frame,
    pub loaded: bool,
    pub totals: TotalsView,
    pub running: Vec<RunningRun>,
    pub tasks: Vec<TaskLine>,
    /// Tasks with runs that the bundle no longer has.
    pub gone: Vec<TaskLine>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct TotalsView {
    pub running: u64,
    pub waiting: u64,
    pub succeeded: u64,
    pub failed: u64,
    pub dead_letters: u64,
    pub cost: String,
    pub tokens: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct RunningRun {
    pub task: String,
    pub run_id: String,
    pub since: Option<Moment>,
    pub attempt: u32,
    pub cost: String,
    pub tokens: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct TaskLine {
    pub name: String,
    pub description: Option<String>,
    pub tags: Vec<String>,
    /// In words, or as it is written.
    pub schedule: Option<String>,
    /// As it is written, where `schedule` has words.
    pub expression: Option<String>,
    pub timezone: String,
    pub next: Option<Moment>,
    /// Why there is no next due time: `by hand`, `disabled`, `paused since …`, `parked since …`, `ended`.
    pub no_next: Option<String>,
    pub last: Option<LastRun>,
    /// The oldest first.
    pub strip: Vec<StripRun>,
    pub cost: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct LastRun {
    pub run_id: String,
    pub mark: Mark,
    pub reason: Option<String>,
    pub when: Moment,
    pub best_effort: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct StripRun {
    pub run_id: String,
    pub mark: Mark,
    pub title: String,
}

/// Makes the overview.
pub(crate) fn page(
    frame: Frame,
    bundle: &BundleView,
    stats: &[TaskStats],
    running: &[RunRow],
    totals: &Totals,
    now: Timestamp,
) -> OverviewPage {
    let known: BTreeSet<&TaskName> = bundle.tasks.iter().map(|task| &task.name).collect();
    let by_task: BTreeMap<&TaskName, &TaskStats> =
        stats.iter().map(|stats| (&stats.task, stats)).collect();
    let line = |task: &TaskView| task_line(task, by_task.get(&task.name).copied(), now);
    OverviewPage {
        frame,
        loaded: bundle.commit.is_some(),
        totals: totals_view(totals),
        running: running.iter().map(|run| running_run(run, bundle, now)).collect(),
        tasks: bundle.tasks.iter().map(line).collect(),
        gone: stats
            .iter()
            .filter(|stats| !known.contains(&stats.task))
            .map(|stats| gone_line(stats, now))
            .collect(),
    }
}

fn totals_view(totals: &Totals) -> TotalsView {
    let succeeded = totals
        .runs_by_outcome
        .iter()
        .find_map(|(outcome, number)| (outcome == "success").then_some(*number))
        .unwrap_or(0);
    let failed = totals
        .runs_by_outcome
        .iter()
        .filter(|(name, _)| !matches!(name.as_str(), "success" | "cancelled"))
        .filter(|(name, _)| !name.starts_with("skipped"))
        .map(|(_, number)| number)
        .sum();
    TotalsView {
        running: totals.running,
        waiting: totals.pending,
        succeeded,
        failed,
        dead_letters: totals.dead_letters_open,
        cost: words::usd(totals.cost_usd),
        tokens: words::tokens(totals.tokens),
    }
}

fn running_run(run: &RunRow, bundle: &BundleView, now: Timestamp) -> RunningRun {
    let words = Words::new(bundle.zone(&run.task), now);
    RunningRun {
        task: run.task.to_string(),
        run_id: run.run_id.to_string(),
        since: run.started_at.map(|at| words.moment(at)),
        attempt: run.attempts,
        cost: words::usd(run.cost_usd),
        tokens: words::tokens(run.tokens),
    }
}

fn task_line(task: &TaskView, stats: Option<&TaskStats>, now: Timestamp) -> TaskLine {
    let words = Words::new(&task.timezone, now);
    let expression = task.schedule.as_ref().map(|schedule| schedule.expression().to_owned());
    let in_words = expression.as_deref().and_then(cron_words);
    TaskLine {
        name: task.name.to_string(),
        description: task.description.clone(),
        tags: task.tags.clone(),
        schedule: in_words.clone().or_else(|| expression.clone()),
        expression: expression.filter(|_| in_words.is_some()),
        timezone: task.timezone.clone(),
        next: task.due_after(now).map(|due| words.moment(due)),
        no_next: no_next(task, now),
        last: stats.and_then(|stats| last_run(stats, &words)),
        strip: stats.map_or_else(Vec::new, |stats| strip(stats, &words)),
        cost: words::usd(stats.map_or(0.0, |stats| stats.cost_usd)),
    }
}

fn gone_line(stats: &TaskStats, now: Timestamp) -> TaskLine {
    let words = Words::new("UTC", now);
    TaskLine {
        name: stats.task.to_string(),
        description: None,
        tags: Vec::new(),
        schedule: None,
        expression: None,
        timezone: "UTC".to_owned(),
        next: None,
        no_next: Some("not in the bundle".to_owned()),
        last: last_run(stats, &words),
        strip: strip(stats, &words),
        cost: words::usd(stats.cost_usd),
    }
}

/// Why a task has no next due time, where there is a reason to tell.
pub(crate) fn no_next(task: &TaskView, now: Timestamp) -> Option<String> {
    match (&task.paused, task.enabled, &task.schedule) {
        (Some(reason), _, _) => Some(reason.clone()),
        (None, false, _) => Some("disabled".to_owned()),
        (None, true, None) => Some("by hand".to_owned()),
        (None, true, Some(_)) => task.due_after(now).is_none().then(|| "ended".to_owned()),
    }
}

fn last_run(stats: &TaskStats, words: &Words) -> Option<LastRun> {
    let run = stats.last.first()?;
    let mark = Mark::of(run);
    let reason = run.reason.clone().filter(|reason| !reason.is_empty());
    Some(LastRun {
        run_id: run.run_id.to_string(),
        reason: reason.filter(|reason| !reason.starts_with("skipped_")),
        when: words.moment(run.finished_at.or(run.started_at).unwrap_or(run.due)),
        best_effort: run.limits.as_deref() == Some("best_effort"),
        mark,
    })
}

fn strip(stats: &TaskStats, words: &Words) -> Vec<StripRun> {
    stats
        .last
        .iter()
        .take(STRIP)
        .rev()
        .map(|run| {
            let mark = Mark::of(run);
            let detail = if mark.detail.is_empty() { "" } else { ": " };
            let due = words.moment(run.due).local;
            let title = format!("{due} — {}{detail}{}", mark.word, mark.detail);
            StripRun { run_id: run.run_id.to_string(), mark, title }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::page::samples;

    #[test]
    fn a_task_shows_its_next_due_time_last_outcome_and_strip() {
        let (bundle, now) = (samples::bundle(), samples::now());
        let failed = samples::failed_run("b");
        let stats = TaskStats {
            task: TaskName::new("report"),
            last: vec![failed.clone(), samples::finished_run("a")],
            cost_usd: 0.5,
            tokens: 10,
            last_success: None,
        };
        let page = page(samples::frame(), &bundle, &[stats], &[], &Totals::default(), now);
        let line = &page.tasks[0];
        let strip: Vec<&str> = line.strip.iter().map(|run| run.title.as_str()).collect();
        assert_eq!(line.next.as_ref().map(|next| next.relative.as_str()), Some("in 4 h 00 min"));
        assert_eq!(
            line.last.as_ref().and_then(|last| last.reason.as_deref()),
            failed.reason.as_deref()
        );
        assert_eq!(
            strip,
            ["Mon 30 Nov 07:00 — success", "Tue 1 Dec 07:00 — dead letter: wall timeout"]
        );
        assert_eq!(line.cost, "$0.50");
        assert_eq!(page.tasks[1].no_next.as_deref(), Some("disabled"));
    }

    #[test]
    fn a_task_whose_schedule_is_over_says_so() {
        let (mut bundle, now) = (samples::bundle(), samples::now());
        let task = &mut bundle.tasks[0];
        let daily = crate::schedule::Schedule::parse("@daily", "UTC").expect("a schedule");
        task.schedule = Some(daily.until(now));
        task.next_due = None;
        let page = page(samples::frame(), &bundle, &[], &[], &Totals::default(), now);
        assert_eq!((&page.tasks[0].next, page.tasks[0].no_next.as_deref()), (&None, Some("ended")));
    }

    #[test]
    fn skipped_and_cancelled_runs_are_not_failures() {
        let totals = Totals {
            runs_by_outcome: vec![
                ("success".into(), 5),
                ("wall_timeout".into(), 2),
                ("panic".into(), 1),
                ("skipped_overlap".into(), 7),
                ("cancelled".into(), 3),
            ],
            ..Totals::default()
        };
        let seen = totals_view(&totals);
        assert_eq!((seen.succeeded, seen.failed), (5, 3));
    }

    #[test]
    fn a_task_that_left_the_bundle_is_still_listed() {
        let stats = TaskStats {
            task: TaskName::new("old"),
            last: vec![samples::finished_run("a")],
            cost_usd: 0.0,
            tokens: 0,
            last_success: None,
        };
        let page = page(
            samples::frame(),
            &samples::bundle(),
            &[stats],
            &[],
            &Totals::default(),
            samples::now(),
        );
        assert_eq!(page.gone.len(), 1);
        assert_eq!(page.gone[0].no_next.as_deref(), Some("not in the bundle"));
    }
}
