//! Follows a run's session log as it grows, whichever process writes it.

use std::time::Duration;

use tokio::time::Instant;

use super::timeline::{Timeline, short};
use super::visible::{dollars, duration, visible};
use super::{Exit, Failure, output, print};
use crate::run::RunId;
use crate::store::{EventRow, RunRow, Store, StoreError};

/// How often the store is asked whether anything changed.
const LOOK: Duration = Duration::from_millis(100);
/// How long a run may take to appear.
const APPEARS: Duration = Duration::from_secs(10);
/// Events that are read at once.
const BATCH: u32 = 500;

/// How events are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Timeline,
    /// One JSON object a line.
    JsonLines,
}

/// Prints a run's events as they come until the run has ended, retries included. A run that is not
/// there yet is waited for.
pub(super) async fn events(store: &Store, run: &RunId) -> Result<(), Failure> {
    follow(store, run, Style::Timeline).await
}

/// Prints a run's events as they come, in that style.
pub(super) async fn follow(store: &Store, run: &RunId, style: Style) -> Result<(), Failure> {
    let mut printer = Printer::new(run, style);
    let patience = Instant::now() + APPEARS;
    loop {
        let version = store.version()?;
        // The state before the events: none can be added once it is terminal.
        match store.run(run.clone()).await {
            Ok(row) => {
                printer.print_new(store).await?;
                if row.state.is_terminal() || output::is_closed() {
                    return Ok(());
                }
            }
            Err(StoreError::RunNotFound(_)) if Instant::now() < patience => {}
            Err(error) => return Err(error.into()),
        }
        changed(store, version, patience).await?;
    }
}

/// Prints what the log holds now.
pub(super) async fn recorded(store: &Store, run: &RunId, style: Style) -> Result<(), Failure> {
    Printer::new(run, style).print_new(store).await
}

/// Returns when somebody committed, or when patience with an absent run ends.
async fn changed(store: &Store, version: u64, patience: Instant) -> Result<(), Failure> {
    let waits_for_run = Instant::now() < patience;
    loop {
        tokio::time::sleep(LOOK).await;
        let ran_out = waits_for_run && Instant::now() >= patience;
        if ran_out || store.version()? != version {
            return Ok(());
        }
    }
}

struct Printer {
    run: RunId,
    style: Style,
    seq: i64,
    timeline: Timeline,
}

impl Printer {
    fn new(run: &RunId, style: Style) -> Self {
        Printer { run: run.clone(), style, seq: 0, timeline: Timeline::default() }
    }

    async fn print_new(&mut self, store: &Store) -> Result<(), Failure> {
        loop {
            let rows = store.events_after(self.run.clone(), self.seq, BATCH).await?;
            for row in &rows {
                self.print_one(row)?;
                self.seq = row.seq;
            }
            if rows.len() < BATCH as usize {
                return Ok(());
            }
        }
    }

    fn print_one(&mut self, row: &EventRow) -> Result<(), Failure> {
        match self.style {
            Style::Timeline => print(&self.timeline.lines(&row.event).join("\n")),
            Style::JsonLines => {
                let line = serde_json::to_string(row).map_err(|error| {
                    Failure::new(Exit::Io, format!("cannot write JSON: {error}"))
                })?;
                print(&line)
            }
        }
    }
}

/// How a run ended, on one line.
pub(super) fn last_line(row: &RunRow) -> String {
    let mut parts = vec![format!("run {} of {}: {}", row.run_id, row.task, row.state.as_str())];
    if let Some(outcome) = row.outcome.as_deref().filter(|outcome| *outcome != row.state.as_str()) {
        parts[0].push_str(&format!(" ({outcome})"));
    }
    if let Some(reason) = &row.reason {
        parts[0].push_str(&format!(": {}", visible(reason)));
    }
    if row.attempts != 1 {
        parts.push(format!("{} attempts", row.attempts));
    }
    if let (Some(started), Some(finished)) = (row.started_at, row.finished_at) {
        let millis = finished.duration_since(started).as_millis();
        parts.push(duration(u64::try_from(millis).unwrap_or_default()));
    }
    parts.push(format!("{}, {} tokens", dollars(row.cost_usd), row.tokens));
    if let (Some(branch), Some(commit)) = (&row.branch, &row.commit) {
        parts.push(format!("branch {} at {}", visible(branch), short(commit)));
    }
    if row.limits.as_deref() == Some("best_effort") {
        parts.push("limits best_effort".to_owned());
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{RunState, TaskName};

    #[test]
    fn the_last_line_tells_how_it_ended_and_where_the_work_is() {
        let at = |text: &str| text.parse().expect("an instant");
        let row = RunRow {
            run_id: RunId::new("01j0000000000000"),
            task: TaskName::new("report"),
            due: at("2026-03-01T09:00:00Z"),
            state: RunState::DeadLettered,
            outcome: Some("cost_ceiling".into()),
            reason: Some("$0.50 of $0.50 is spent".into()),
            attempts: 2,
            cost_usd: 0.5,
            tokens: 900,
            started_at: Some(at("2026-03-01T09:00:00Z")),
            finished_at: Some(at("2026-03-01T09:00:12.5Z")),
            branch: Some("fleet/report-01j".into()),
            commit: Some("0123456789abcdef0123".into()),
            bundle_commit: None,
            trigger: "manual".into(),
            limits: Some("best_effort".into()),
            retry_at: None,
        };
        assert_eq!(
            last_line(&row),
            "run 01j0000000000000 of report: dead_lettered (cost_ceiling): $0.50 of $0.50 is spent, \
             2 attempts, 12.5s, $0.5000, 900 tokens, branch fleet/report-01j at 0123456789ab, \
             limits best_effort"
        );
    }
}
