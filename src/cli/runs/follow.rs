//! Prints a run's events as they are stored.

use std::time::Duration;

use super::super::{Exit, Failure};
use super::render::Log;
use crate::run::RunId;
use crate::store::{RunRow, Store};

/// How often the store's version is read while nothing changes.
const POLL: Duration = Duration::from_millis(200);
/// Events read at once.
const PAGE: u32 = 200;

/// How events are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Style {
    Text,
    /// One JSON object a line.
    JsonLines,
}

/// How far to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Until {
    /// What is stored now.
    LogEnds,
    RunEnds,
}

/// Prints a run's events as text until the run ends.
pub(in super::super) async fn events(store: &Store, run: &RunId) -> Result<(), Failure> {
    print_events(store, run, Style::Text, Until::RunEnds).await
}

/// One line for a person: how the run stands.
pub(in super::super) fn last_line(row: &RunRow) -> String {
    super::render::last_line(row)
}

/// Prints a run's events.
pub(in super::super) async fn print_events(
    store: &Store,
    run: &RunId,
    style: Style,
    until: Until,
) -> Result<(), Failure> {
    let mut log = Log::default();
    let mut seen = 0;
    loop {
        // Both are read before the events: what is committed later is found in the next round.
        let version = store.version().await?;
        let ended = store.run(run.clone()).await?.state.is_terminal();
        seen = print_after(store, run, seen, style, &mut log).await?;
        if ended || until == Until::LogEnds {
            return Ok(());
        }
        while store.version().await? == version {
            tokio::time::sleep(POLL).await;
        }
    }
}

async fn print_after(
    store: &Store,
    run: &RunId,
    mut seen: i64,
    style: Style,
    log: &mut Log,
) -> Result<i64, Failure> {
    loop {
        let rows = store.events_after(run.clone(), seen, PAGE).await?;
        let Some(last) = rows.last() else { return Ok(seen) };
        seen = last.seq;
        for row in &rows {
            let text = match style {
                Style::Text => log.line(&row.event),
                Style::JsonLines => serde_json::to_string(row).map_err(|error| {
                    Failure::new(Exit::Io, format!("cannot write JSON: {error}"))
                })?,
            };
            super::super::print(&text)?;
        }
    }
}
