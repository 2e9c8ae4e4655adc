//! The session log.

use rusqlite::{Connection, params};

use super::claims::held;
use super::columns::{get_json, signed};
use super::writer::Durability;
use super::{EventRow, Store, StoreError, memories};
use crate::run::{Event, EventKind, FencingToken, RunId};
use crate::secrets::Redactor;

impl Store {
    /// Appends to the session log; returns once committed.
    pub async fn append_events(
        &self,
        run: RunId,
        token: FencingToken,
        events: Vec<Event>,
    ) -> Result<(), StoreError> {
        let doing = "appends to a session log";
        let redactor = self.redactor.clone();
        self.writer
            .write(doing, durability(&events), move |connection| {
                append(connection, &redactor, &run, token, &events, doing)
            })
            .await
    }

    /// Events after `seq`, at most `limit`, in order.
    pub async fn events_after(
        &self,
        run: RunId,
        seq: i64,
        limit: u32,
    ) -> Result<Vec<EventRow>, StoreError> {
        let doing = "reads a session log";
        self.readers
            .read(doing, move |connection| {
                after(connection, &run, seq, limit).map_err(|source| StoreError::sql(doing, source))
            })
            .await
    }
}

/// What is about to happen outside must be known after a power cut too.
fn durability(events: &[Event]) -> Durability {
    let intent = |event: &Event| matches!(event.kind, EventKind::ToolStarted { effects: true, .. });
    if events.iter().any(intent) { Durability::Power } else { Durability::Process }
}

/// Appends while the token holds, redacted.
pub(super) fn append(
    connection: &Connection,
    redactor: &Redactor,
    run: &RunId,
    token: FencingToken,
    events: &[Event],
    doing: &'static str,
) -> Result<(), StoreError> {
    let failed = |source| StoreError::sql(doing, source);
    let count = signed(events.len() as u64);
    let reserved = connection
        .prepare_cached(
            "UPDATE runs SET last_seq = last_seq + ?3 WHERE run_id = ?1 AND token = ?2 AND state = 'running'",
        )
        .and_then(|mut update| update.execute(params![run.as_str(), token.0, count]))
        .map_err(failed)?;
    held(reserved, run)?;
    let last: i64 = connection
        .prepare_cached("SELECT last_seq FROM runs WHERE run_id = ?1")
        .and_then(|mut query| query.query_row([run.as_str()], |row| row.get(0)))
        .map_err(failed)?;
    let mut insert = connection
        .prepare_cached("INSERT INTO events (run_id, seq, attempt, body) VALUES (?1, ?2, ?3, ?4)")
        .map_err(failed)?;
    for (seq, event) in (last - count + 1..).zip(events) {
        let body = serde_json::to_string(event).expect("an event is plain data");
        insert
            .execute(params![run.as_str(), seq, event.attempt, redactor.redact(&body)])
            .map_err(failed)?;
    }
    memories::keep(connection, redactor, run, events).map_err(failed)
}

/// Reads in order.
pub(super) fn after(
    connection: &Connection,
    run: &RunId,
    seq: i64,
    limit: u32,
) -> rusqlite::Result<Vec<EventRow>> {
    let mut query = connection.prepare_cached(
        "SELECT seq, body FROM events WHERE run_id = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3",
    )?;
    let rows = query.query_map(params![run.as_str(), seq, limit], |row| {
        Ok(EventRow { seq: row.get("seq")?, event: get_json(row, "body")? })
    })?;
    rows.collect()
}
