//! One run: its facts, its result, its timeline and the seal that it ran in.

use jiff::Timestamp;
use serde::Serialize;

use super::frame::Frame;
use super::seal::{self, Limits, SealView};
use super::timeline::{AttemptLog, timeline};
use crate::run::Usage;
use crate::status::BundleView;
use crate::status::mark::Mark;
use crate::status::words::{self, Cut, Moment, Words};
use crate::store::{ArtifactRow, AttemptRow, RunDetail};

/// The most bytes shown of an answer or a diff stat.
const MOST_SHOWN: usize = 32 * 1024;

/// How many rounds of each attempt a page shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounds {
    /// The last 50.
    Last,
    All,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct RunPage {
    pub frame: Frame,
    pub run_id: String,
    pub task: String,
    pub mark: Mark,
    pub reason: Option<String>,
    pub best_effort: bool,
    pub timezone: String,
    pub due: Moment,
    pub trigger: String,
    pub started: Option<Moment>,
    pub finished: Option<Moment>,
    pub took: Option<String>,
    pub retry: Option<Moment>,
    pub attempts: u32,
    pub usage: UsageView,
    pub model: Option<String>,
    pub bundle_commit: Option<String>,
    pub branch: Option<String>,
    pub commit: Option<String>,
    pub worktree: Option<String>,
    pub diff_stat: Option<Cut>,
    pub answer: Option<Cut>,
    pub output: Option<String>,
    pub artifacts: Vec<ArtifactLine>,
    pub attempt_list: Vec<AttemptView>,
    pub seal: Option<SealView>,
    /// The command that tries it again, when there is one.
    pub replay: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct UsageView {
    pub cost: String,
    pub tokens_in: String,
    pub tokens_cached: String,
    pub tokens_out: String,
    pub estimated: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ArtifactLine {
    pub number: u32,
    pub name: String,
    pub path: String,
    pub description: Option<String>,
    pub size: String,
    pub sha256: Option<String>,
}

/// An attempt's row and its part of the timeline.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct AttemptView {
    pub number: u32,
    pub mark: Mark,
    pub reason: Option<String>,
    pub started: Moment,
    pub took: Option<String>,
    pub usage: UsageView,
    pub log: AttemptLog,
}

/// Makes the page of one run.
pub(crate) fn page(
    frame: Frame,
    bundle: &BundleView,
    detail: RunDetail,
    rounds: Rounds,
    now: Timestamp,
) -> RunPage {
    let run = &detail.run;
    let timezone = bundle.zone(&run.task).to_owned();
    let words = Words::new(&timezone, now);
    let most = match rounds {
        Rounds::Last => 50,
        Rounds::All => usize::MAX,
    };
    let logs = timeline(&detail.events, &words, most);
    let mark = Mark::of(run);
    let last = detail.attempt_list.last();
    RunPage {
        frame,
        run_id: run.run_id.to_string(),
        task: run.task.to_string(),
        reason: run.reason.clone().filter(|reason| !reason.starts_with("skipped_")),
        best_effort: run.limits.as_deref() == Some("best_effort"),
        due: words.moment(run.due),
        trigger: run.trigger.clone(),
        started: run.started_at.map(|at| words.moment(at)),
        finished: run.finished_at.map(|at| words.moment(at)),
        took: run.started_at.map(|from| took(from, run.finished_at.unwrap_or(now))),
        retry: run.retry_at.map(|at| words.moment(at)),
        attempts: run.attempts,
        usage: usage_view(&detail.usage),
        model: last.and_then(|attempt| attempt.model.clone()),
        bundle_commit: run.bundle_commit.clone(),
        branch: run.branch.clone(),
        commit: run.commit.clone(),
        worktree: last.and_then(|attempt| attempt.worktree.clone()),
        diff_stat: detail.diff_stat.as_deref().map(|stat| words::cut(stat.trim_end(), MOST_SHOWN)),
        answer: detail.answer.as_deref().map(|answer| words::cut(answer, MOST_SHOWN)),
        output: detail.output.as_ref().map(|output| format!("{output:#}")),
        artifacts: detail.artifacts.iter().map(artifact).collect(),
        attempt_list: attempts(&detail.attempt_list, logs, &words),
        seal: detail
            .seal
            .as_ref()
            .and_then(|report| seal::view(report, Limits::parse(run.limits.as_deref()))),
        replay: (mark.kind == crate::status::mark::Kind::Bad)
            .then(|| format!("fleet sched dlq replay {}", run.run_id)),
        mark,
        timezone,
    }
}

fn took(from: Timestamp, to: Timestamp) -> String {
    words::duration(words::millis_between(from, to))
}

fn usage_view(usage: &Usage) -> UsageView {
    UsageView {
        cost: words::usd(usage.cost_nano_usd.as_usd()),
        tokens_in: words::tokens(usage.input_tokens),
        tokens_cached: words::tokens(usage.cached_tokens),
        tokens_out: words::tokens(usage.output_tokens),
        estimated: usage.estimated,
    }
}

fn artifact(row: &ArtifactRow) -> ArtifactLine {
    ArtifactLine {
        number: row.number,
        name: row.name.clone(),
        path: row.path.clone(),
        description: row.description.clone(),
        size: words::bytes(row.size),
        sha256: row.sha256.clone(),
    }
}

/// The newest attempt first; an attempt without events has an empty log.
fn attempts(rows: &[AttemptRow], mut logs: Vec<AttemptLog>, words: &Words) -> Vec<AttemptView> {
    let view = |row: &AttemptRow| {
        let place = logs.iter().position(|log| log.number == row.attempt);
        AttemptView {
            number: row.attempt,
            mark: Mark::of_attempt(row.outcome.as_deref()),
            reason: row.reason.clone().filter(|reason| !reason.is_empty()),
            started: words.moment(row.started_at),
            took: row.finished_at.map(|to| took(row.started_at, to)),
            usage: usage_view(&row.usage),
            log: place.map_or_else(AttemptLog::default, |place| logs.swap_remove(place)),
        }
    };
    rows.iter().rev().map(view).collect()
}
