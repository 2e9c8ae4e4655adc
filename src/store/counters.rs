//! Numbers kept at write time, so that no page counts rows.

use rusqlite::{Connection, params};

use super::columns::{get_unsigned, signed};
use super::{Store, StoreError, Totals};
use crate::run::NanoUsd;

/// Ended and skipped runs by outcome class or skip reason.
pub(super) const OUTCOME: &str = "outcome";
/// Dead letters ever queued, by class.
pub(super) const DEAD_LETTER: &str = "dead_letter";
/// Spent in all; the label is empty.
pub(super) const COST: &str = "cost";
/// Notices by what became of them.
pub(super) const NOTICE: &str = "notice";
/// Counted tokens in all; the label is empty.
pub(super) const TOKENS: &str = "tokens";

/// Adds to a counter.
pub(super) fn bump(
    connection: &Connection,
    name: &str,
    label: &str,
    by: u64,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO counters (name, label, value) VALUES (?1, ?2, ?3)
             ON CONFLICT (name, label) DO UPDATE SET value = min(value, 1 << 61) + excluded.value",
        )?
        .execute(params![name, label, signed(by)])
        .map(drop)
}

impl Store {
    /// Counters.
    pub async fn totals(&self) -> Result<Totals, StoreError> {
        let doing = "reads its counters";
        self.readers
            .read(doing, move |connection| {
                totals(connection).map_err(|source| StoreError::sql(doing, source))
            })
            .await
    }
}

fn totals(connection: &Connection) -> rusqlite::Result<Totals> {
    let mut totals = Totals::default();
    let mut query = connection
        .prepare_cached("SELECT name, label, value FROM counters ORDER BY name, label")?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let (name, label): (String, String) = (row.get("name")?, row.get("label")?);
        let value = get_unsigned(row, "value")?;
        match name.as_str() {
            OUTCOME => totals.runs_by_outcome.push((label, value)),
            DEAD_LETTER => totals.dead_letters_queued.push((label, value)),
            COST => totals.cost_usd = NanoUsd(value).as_usd(),
            TOKENS => totals.tokens = value,
            NOTICE => totals.notices.push((label, value)),
            _ => {}
        }
    }
    totals.pending = open(connection, "pending")? + open(connection, "scheduled")?;
    totals.running = open(connection, "running")?;
    totals.dead_letters_open = connection.query_row(
        "SELECT count(*) AS open FROM runs WHERE state = 'dead_lettered'",
        [],
        |row| get_unsigned(row, "open"),
    )?;
    let (waiting, given_up) = notices(connection)?;
    (totals.notices_waiting, totals.notices_given_up) = (waiting, given_up);
    Ok(totals)
}

/// Notices that wait and that were given up; the outbox is short.
fn notices(connection: &Connection) -> rusqlite::Result<(u64, u64)> {
    connection.query_row(
        "SELECT count(*) FILTER (WHERE given_up_at IS NULL) AS waiting,
            count(*) FILTER (WHERE given_up_at IS NOT NULL) AS given_up
         FROM outbox WHERE kind = 'notice'",
        [],
        |row| Ok((get_unsigned(row, "waiting")?, get_unsigned(row, "given_up")?)),
    )
}

/// Counts open runs, which are few: a partial index holds them and nothing else.
fn open(connection: &Connection, state: &str) -> rusqlite::Result<u64> {
    connection.query_row(
        "SELECT count(*) AS open FROM runs WHERE state = ?1
            AND state IN ('pending', 'running', 'scheduled', 'paused_awaiting_approval', 'interrupted')",
        [state],
        |row| get_unsigned(row, "open"),
    )
}
