//! `fleet status`: what runs, what is due, what failed and what is wrong, from the store and the
//! bundle.

use std::collections::{BTreeSet, HashMap};

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::bundle_source::BundleSource;
use super::sched::local;
use super::{Exit, Failure, Global};
use crate::bundle::{Loaded, Problem, Severity};
use crate::clock::Clock;
use crate::run::{RunState, TaskName};
use crate::runner::{DaemonInfo, ServeLock, shortage};
use crate::status::{BundleView, TaskView};
use crate::store::{DeadLetterRow, Gap, HeldTask, RunFilter, RunRow, Store, StoreError, Totals};

/// How far back failures are shown.
const LATELY: SignedDuration = SignedDuration::from_hours(24);
/// The most lines of one list.
const MOST: u32 = 20;

/// Shows what runs, what is due and what is wrong.
#[derive(Debug, clap::Args)]
pub struct StatusArgs {
    #[command(flatten)]
    source: BundleSource,
    /// JSON instead of text
    #[arg(long)]
    json: bool,
}

/// The whole answer; the names are documented.
#[derive(Serialize)]
struct Report {
    /// `ok` or `unhealthy`.
    status: &'static str,
    /// Why it is unhealthy, one line each.
    reasons: Vec<String>,
    /// The one that runs, or null.
    daemon: Option<DaemonInfo>,
    bundle_commit: Option<String>,
    totals: Totals,
    running: Vec<RunRow>,
    due_next: Vec<DueNext>,
    failed_lately: Vec<RunRow>,
    dead_letters: Vec<DeadLetterRow>,
    problems: Vec<Problem>,
    /// The time of which a restored store knows nothing, or null.
    gap: Option<Gap>,
    /// Tasks that are paused or parked: nothing of them is due.
    held: Vec<HeldLine>,
}

#[derive(Serialize)]
struct HeldLine {
    task: TaskName,
    #[serde(flatten)]
    held: HeldTask,
}

#[derive(Serialize)]
struct DueNext {
    task: TaskName,
    due: Timestamp,
    local: String,
}

/// Carries out the verb. Exit code 6 when something needs a person.
pub fn run(args: StatusArgs, global: &Global) -> Result<Exit, Failure> {
    let loaded = args.source.read(global)?;
    let now = Clock::System.now();
    let kept = match global.named_store()? {
        Some(store) => global.block_on(Kept::read(&store, now))??,
        None => Kept::default(),
    };
    let daemon = ServeLock::holder(&global.config.state);
    let stopped = daemon
        .as_ref()
        .and_then(|_| shortage(global.config.state.root(), global.config.disk_min_free));
    let report = report(kept, loaded, daemon, stopped, now);
    if args.json {
        super::print_json(&report)?;
    } else {
        super::print(text(&report).trim_end())?;
    }
    Ok(if report.reasons.is_empty() { Exit::Ok } else { Exit::Unhealthy })
}

/// What the store tells.
#[derive(Default)]
struct Kept {
    totals: Totals,
    running: Vec<RunRow>,
    failed_lately: Vec<RunRow>,
    dead_letters: Vec<DeadLetterRow>,
    gap: Option<Gap>,
    held: HashMap<TaskName, HeldTask>,
    used: HashMap<TaskName, u64>,
}

impl Kept {
    async fn read(store: &Store, now: Timestamp) -> Result<Self, StoreError> {
        let of = |state| RunFilter { state: Some(state), limit: MOST, ..RunFilter::default() };
        let mut failed_lately = Vec::new();
        for state in [RunState::DeadLettered, RunState::Error] {
            let filter = RunFilter { since: Some(now - LATELY), ..of(state) };
            failed_lately.extend(store.runs(filter).await?);
        }
        failed_lately.sort_by_key(|run| std::cmp::Reverse(run.due));
        Ok(Kept {
            totals: store.totals().await?,
            running: store.runs(of(RunState::Running)).await?,
            failed_lately,
            gap: store.gap().await?,
            held: store.held_tasks().await?,
            used: store.scheduled_runs().await?,
            dead_letters: store.dead_letters(None, MOST, 0).await?,
        })
    }
}

fn report(
    kept: Kept,
    loaded: Option<Loaded>,
    daemon: Option<DaemonInfo>,
    stopped: Option<String>,
    now: Timestamp,
) -> Report {
    let bundle = loaded.as_ref().and_then(|loaded| loaded.bundle.as_deref());
    let tasks: Vec<TaskView> = bundle
        .map(|bundle| {
            let view = BundleView::of(bundle, Vec::new(), now);
            view.holding(&HashMap::new(), &kept.used, now).tasks
        })
        .unwrap_or_default();
    let mut held: Vec<HeldLine> = kept
        .held
        .into_iter()
        .filter(|(_, held)| held.holds(now))
        .map(|(task, held)| HeldLine { task, held })
        .collect();
    held.sort_by(|a, b| a.task.cmp(&b.task));
    let is_held = |task: &TaskView| held.iter().any(|line| line.task == task.name);
    let due_next = due_next(tasks.iter().filter(|task| !is_held(task)));
    let problems = loaded.as_ref().map_or_else(Vec::new, |loaded| loaded.problems.clone());
    let mut reasons = reasons(&kept.totals, &problems, daemon.is_some(), !due_next.is_empty());
    reasons.extend(stopped);
    reasons.extend(held.iter().filter(|line| line.held.parked_at.is_some()).map(|line| {
        format!("task {} parked itself: fleet sched resume {} after a look", line.task, line.task)
    }));
    Report {
        status: if reasons.is_empty() { "ok" } else { "unhealthy" },
        reasons,
        daemon,
        bundle_commit: loaded.and_then(|loaded| loaded.commit).map(|commit| commit.to_string()),
        totals: kept.totals,
        running: kept.running,
        due_next,
        failed_lately: kept.failed_lately,
        gap: kept.gap,
        held,
        dead_letters: kept.dead_letters,
        problems,
    }
}

fn due_next<'t>(tasks: impl Iterator<Item = &'t TaskView>) -> Vec<DueNext> {
    let mut dues: Vec<DueNext> = tasks
        .filter(|task| task.enabled)
        .filter_map(|task| {
            let due = task.next_due?;
            Some(DueNext { task: task.name.clone(), due, local: local(due, &task.timezone) })
        })
        .collect();
    dues.sort_by(|a, b| (a.due, &a.task).cmp(&(b.due, &b.task)));
    dues.truncate(MOST as usize);
    dues
}

fn reasons(
    totals: &Totals,
    problems: &[Problem],
    daemon_runs: bool,
    something_due: bool,
) -> Vec<String> {
    let errors = problems.iter().filter(|problem| problem.severity == Severity::Error).count();
    let bundle = (errors > 0).then(|| format!("the bundle has {errors} error(s)"));
    let letters = (totals.dead_letters_open > 0)
        .then(|| format!("{} dead letter(s) wait for a replay", totals.dead_letters_open));
    let absent = (!daemon_runs && something_due)
        .then(|| "tasks are scheduled, and no daemon runs: start `fleet serve`".to_owned());
    let given_up = (totals.notices_given_up > 0).then(|| {
        let number = totals.notices_given_up;
        format!("{number} notice(s) could not be sent: fleet notify list shows them")
    });
    [absent, bundle, letters, given_up].into_iter().flatten().collect()
}

fn text(report: &Report) -> String {
    let daemon = report
        .daemon
        .as_ref()
        .map_or("no daemon runs".to_owned(), |daemon| format!("daemon {daemon}"));
    let mut lines = vec![format!("{}: {daemon}", report.status)];
    lines.extend(report.reasons.iter().map(|reason| format!("  {reason}")));
    lines.push(format!(
        "{} running, {} waiting, {} dead letters, {} spent",
        report.totals.running,
        report.totals.pending,
        report.totals.dead_letters_open,
        super::visible::dollars(report.totals.cost_usd)
    ));
    if let Some(gap) = &report.gap {
        let since = gap.from.map_or("its beginning".to_owned(), |from| from.to_string());
        lines.push(format!(
            "restored from a backup: nothing is known of the time from {since} to {}",
            gap.until
        ));
    }
    if report.bundle_commit.is_none() {
        lines.push(
            "no bundle given: schedules and problems were not looked at (--bundle DIR)".to_owned(),
        );
    }
    let held = report.held.iter().map(|line| format!("{}  {}", line.task, line.held.words()));
    section(&mut lines, "held", held);
    section(&mut lines, "running", report.running.iter().map(run_line));
    let due = report.due_next.iter().map(|due| format!("{}  {}", due.local, due.task));
    section(&mut lines, "due next", due);
    let letters: BTreeSet<&str> =
        report.dead_letters.iter().map(|letter| letter.run_id.as_str()).collect();
    let failed = report.failed_lately.iter().filter(|run| !letters.contains(run.run_id.as_str()));
    section(&mut lines, "failed in the last 24 h", failed.map(run_line));
    let letters = report.dead_letters.iter().map(|letter| {
        let reason = super::visible::one_line(&letter.dead_letter_reason, 120);
        format!("{}  {}  {reason}", letter.run_id, letter.task)
    });
    section(&mut lines, "dead letters", letters);
    let problems = report.problems.iter().map(|problem| {
        format!("{}:{}:{}: {}", problem.file, problem.line, problem.column, problem.message)
    });
    section(&mut lines, "problems", problems);
    lines.join("\n")
}

fn section(lines: &mut Vec<String>, title: &str, rows: impl Iterator<Item = String>) {
    let rows: Vec<String> = rows.map(|row| format!("  {row}")).collect();
    if !rows.is_empty() {
        lines.push(format!("\n{title}"));
        lines.extend(rows);
    }
}

fn run_line(run: &RunRow) -> String {
    let reason = super::visible::one_line(run.reason.as_deref().unwrap_or_default(), 120);
    format!("{}  {}  {}  {reason}", run.run_id, run.task, run.state.as_str()).trim_end().to_owned()
}
