//! Runs that somebody wants to end.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use super::columns::{get_state, instant};
use super::counters::{self, bump};
use super::task_state::uncount_scheduled;
use super::writer::Durability;
use super::{Cancelled, Store, StoreError};
use crate::run::{OutcomeClass, RunId, RunState, TaskName};

const DOING: &str = "cancels a run";

impl Store {
    /// Cancels a run that has not begun or waits for its next attempt; one that runs is told, by
    /// whoever carries it out reading [`Store::cancel_requests`].
    ///
    /// # Errors
    /// The run has ended, or there is none.
    pub async fn cancel_run(
        &self,
        run: RunId,
        now: Timestamp,
        reason: String,
    ) -> Result<Cancelled, StoreError> {
        let reason = self.redactor.redact(&reason).into_owned();
        self.writer
            .write(DOING, Durability::Power, move |connection| {
                let state = connection
                    .query_row("SELECT state FROM runs WHERE run_id = ?1", [run.as_str()], |row| {
                        get_state(row, "state")
                    })
                    .optional()
                    .map_err(failed)?
                    .ok_or_else(|| StoreError::RunNotFound(run.to_string()))?;
                if state.is_terminal() {
                    let needed = "pending, scheduled or running";
                    return Err(StoreError::WrongState {
                        run_id: run,
                        state: state.as_str(),
                        needed,
                    });
                }
                cancel(connection, &run, state, now, &reason).map_err(failed)
            })
            .await
    }

    /// The running runs that somebody wants to end: (run, reason).
    pub async fn cancel_requests(&self) -> Result<Vec<(RunId, String)>, StoreError> {
        let doing = "reads wishes to cancel";
        self.readers
            .read(doing, move |connection| {
                let failed = |source| StoreError::sql(doing, source);
                let mut query = connection
                    .prepare_cached(
                        "SELECT run_id, cancel_requested FROM runs WHERE state = 'running'
                            AND state IN ('pending', 'running', 'scheduled', 'paused_awaiting_approval', 'interrupted')
                            AND cancel_requested IS NOT NULL",
                    )
                    .map_err(failed)?;
                let rows = query.query_map([], |row| {
                    Ok((RunId::new(row.get::<_, String>("run_id")?), row.get("cancel_requested")?))
                });
                rows.map_err(failed)?.collect::<Result<_, _>>().map_err(failed)
            })
            .await
    }
}

fn failed(source: rusqlite::Error) -> StoreError {
    StoreError::sql(DOING, source)
}

fn cancel(
    connection: &Connection,
    run: &RunId,
    state: RunState,
    now: Timestamp,
    reason: &str,
) -> rusqlite::Result<Cancelled> {
    if state == RunState::Running {
        connection.execute(
            "UPDATE runs SET cancel_requested = coalesce(cancel_requested, ?2) WHERE run_id = ?1",
            params![run.as_str(), reason],
        )?;
        return Ok(Cancelled::Requested);
    }
    if state == RunState::Pending {
        uncount_scheduled(connection, run)?;
    }
    let class = OutcomeClass::Cancelled.as_str();
    connection.execute(
        "UPDATE runs SET state = 'cancelled', outcome = ?2, reason = ?3, finished_at = ?4,
            retry_at = NULL, token = token + 1
         WHERE run_id = ?1",
        params![run.as_str(), class, reason, instant(now)],
    )?;
    bump(connection, counters::OUTCOME, class, 1)?;
    Ok(Cancelled::AtOnce)
}

/// Makes room for a newer occurrence: every other open scheduled run of its task ends.
pub(super) fn replace_older(
    connection: &Connection,
    task: &TaskName,
    newer: &RunId,
    due: Timestamp,
    now: Timestamp,
) -> rusqlite::Result<()> {
    let mut query = connection.prepare_cached(
        "SELECT run_id, state FROM runs WHERE task = ?1 AND cause = 'schedule' AND run_id <> ?2
            AND state IN ('pending', 'running', 'scheduled', 'paused_awaiting_approval', 'interrupted')",
    )?;
    let rows = query.query_map([task.as_str(), newer.as_str()], |row| {
        Ok((RunId::new(row.get::<_, String>("run_id")?), get_state(row, "state")?))
    })?;
    let older: Vec<_> = rows.collect::<Result<_, _>>()?;
    for (run, state) in older {
        cancel(connection, &run, state, now, &format!("replaced by the occurrence due {due}"))?;
    }
    Ok(())
}
