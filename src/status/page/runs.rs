//! The list of runs, narrowed by task and state, a page at a time.

use jiff::Timestamp;
use serde::Serialize;

use super::frame::Frame;
use crate::run::{RunState, TaskName};
use crate::status::BundleView;
use crate::status::mark::{self, Mark};
use crate::status::words::{self, Moment, Words};
use crate::store::{RunFilter, RunRow};

/// Runs on one page.
pub(crate) const PAGE: u32 = 50;

/// Tasks offered as a filter; the overview links to the runs of every task.
const MOST_CHOICES: usize = 100;

#[derive(Clone, Debug, Serialize)]
pub(crate) struct RunsPage {
    pub frame: Frame,
    pub task: Option<String>,
    pub tasks: Vec<Choice>,
    pub states: Vec<Choice>,
    pub narrowed: bool,
    pub runs: Vec<RunLine>,
    pub newer: Option<String>,
    pub older: Option<String>,
}

/// One value of a filter, as a link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Choice {
    pub word: String,
    pub href: String,
    pub chosen: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct RunLine {
    pub run_id: String,
    pub task: String,
    pub mark: Mark,
    pub reason: Option<String>,
    pub due: Moment,
    pub trigger: String,
    pub took: Option<String>,
    pub attempts: u32,
    pub cost: String,
    pub tokens: String,
    pub branch: Option<String>,
    pub best_effort: bool,
    pub retry: Option<Moment>,
}

/// Makes the list. `rows` holds one row more than a page when there are older ones.
pub(crate) fn page(
    frame: Frame,
    bundle: &BundleView,
    filter: &RunFilter,
    mut rows: Vec<RunRow>,
    now: Timestamp,
) -> RunsPage {
    let more = rows.len() > PAGE as usize;
    rows.truncate(PAGE as usize);
    let older = more.then(|| address(filter, filter.offset.saturating_add(PAGE)));
    let newer = (filter.offset > 0).then(|| address(filter, filter.offset.saturating_sub(PAGE)));
    RunsPage {
        frame,
        task: filter.task.as_ref().map(TaskName::to_string),
        tasks: task_choices(bundle, filter),
        states: state_choices(filter),
        narrowed: filter.task.is_some() || filter.state.is_some(),
        runs: rows.iter().map(|run| line(run, bundle, now)).collect(),
        newer,
        older,
    }
}

fn line(run: &RunRow, bundle: &BundleView, now: Timestamp) -> RunLine {
    let words = Words::new(bundle.zone(&run.task), now);
    let took = run.started_at.zip(run.finished_at);
    RunLine {
        run_id: run.run_id.to_string(),
        task: run.task.to_string(),
        mark: Mark::of(run),
        reason: run.reason.clone().filter(|reason| !reason.starts_with("skipped_")),
        due: words.moment(run.due),
        trigger: run.trigger.clone(),
        took: took.map(|(from, to)| words::duration(words::millis_between(from, to))),
        attempts: run.attempts,
        cost: words::usd(run.cost_usd),
        tokens: words::tokens(run.tokens),
        branch: run.branch.clone(),
        best_effort: run.limits.as_deref() == Some("best_effort"),
        retry: run.retry_at.map(|at| words.moment(at)),
    }
}

/// The address of the list with these filters. Names and states need no escaping: both are closed
/// sets of plain characters.
fn address(filter: &RunFilter, offset: u32) -> String {
    let task = filter.task.as_ref().map(|task| format!("task={task}"));
    let state = filter.state.map(|state| format!("state={}", state.as_str()));
    let offset = (offset > 0).then(|| format!("offset={offset}"));
    let parts: Vec<String> = [task, state, offset].into_iter().flatten().collect();
    if parts.is_empty() { "/runs".to_owned() } else { format!("/runs?{}", parts.join("&")) }
}

fn task_choices(bundle: &BundleView, filter: &RunFilter) -> Vec<Choice> {
    let choice = |word: &str, task: Option<TaskName>| Choice {
        word: word.to_owned(),
        chosen: task == filter.task,
        href: address(&RunFilter { task, state: filter.state, ..RunFilter::default() }, 0),
    };
    let tasks = bundle.tasks.iter().take(MOST_CHOICES);
    let named = tasks.map(|task| choice(task.name.as_str(), Some(task.name.clone())));
    std::iter::once(choice("all tasks", None)).chain(named).collect()
}

fn state_choices(filter: &RunFilter) -> Vec<Choice> {
    let choice = |word: &str, state: Option<RunState>| Choice {
        word: word.to_owned(),
        chosen: state == filter.state,
        href: address(&RunFilter { task: filter.task.clone(), state, ..RunFilter::default() }, 0),
    };
    let named = RunState::ALL.map(|state| choice(mark::state(state).1, Some(state)));
    std::iter::once(choice("all states", None)).chain(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::page::samples;

    #[test]
    fn filters_survive_paging_and_paging_restarts_with_a_new_filter() {
        let filter = RunFilter {
            task: Some(TaskName::new("report")),
            state: Some(RunState::Success),
            offset: 50,
            ..RunFilter::default()
        };
        let rows = (0..51).map(|_| samples::finished_run("a")).collect();
        let page = page(samples::frame(), &samples::bundle(), &filter, rows, samples::now());
        assert_eq!(page.runs.len(), 50);
        assert_eq!(page.newer.as_deref(), Some("/runs?task=report&state=success"));
        assert_eq!(page.older.as_deref(), Some("/runs?task=report&state=success&offset=100"));
        let chosen: Vec<&str> = page
            .tasks
            .iter()
            .chain(&page.states)
            .filter(|choice| choice.chosen)
            .map(|choice| choice.word.as_str())
            .collect();
        assert_eq!(chosen, ["report", "success"]);
        assert_eq!(page.tasks[0].href, "/runs?state=success");
        assert_eq!(page.runs[0].took.as_deref(), Some("1 min 05 s"));
    }
}
