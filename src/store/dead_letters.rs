//! Dead letters: listed, replayed, or closed without a replay.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use super::columns::{get_instant, get_json, get_small, get_state, instant};
use super::runs::resolve;
use super::writer::Durability;
use super::{DeadLetterRow, ReplayTarget, Store, StoreError};
use crate::run::{RunId, RunState, TaskName};

const DOING: &str = "replays dead letters";
const CLOSING: &str = "closes a dead letter";

impl Store {
    /// Dead letters, the newest first; `tag` narrows.
    pub async fn dead_letters(
        &self,
        tag: Option<String>,
        limit: u32,
        offset: u32,
    ) -> Result<Vec<DeadLetterRow>, StoreError> {
        let doing = "reads dead letters";
        self.readers
            .read(doing, move |connection| {
                let failed = |source| StoreError::sql(doing, source);
                let mut query = connection
                    .prepare_cached(
                        "SELECT * FROM runs WHERE state = 'dead_lettered'
                            AND (?1 IS NULL OR EXISTS (SELECT 1 FROM json_each(tags) WHERE value = ?1))
                         ORDER BY dead_lettered_at DESC, run_id LIMIT ?2 OFFSET ?3",
                    )
                    .map_err(failed)?;
                let rows = query.query_map(params![tag, limit, offset], |row| {
                    Ok(DeadLetterRow {
                        run_id: RunId::new(row.get::<_, String>("run_id")?),
                        task: TaskName::new(row.get::<_, String>("task")?),
                        dead_lettered_at: get_instant(row, "dead_lettered_at")?,
                        dead_letter_reason: row.get("dead_letter_reason")?,
                        dead_letter_attempts: get_small(row, "dead_letter_attempts")?,
                        tags: get_json(row, "tags")?,
                    })
                });
                rows.map_err(failed)?.collect::<Result<_, _>>().map_err(failed)
            })
            .await
    }

    /// Puts dead letters (and panicked runs) back to pending with a fresh count and fresh spending;
    /// returns their ids.
    pub async fn replay(
        &self,
        target: ReplayTarget,
        now: Timestamp,
    ) -> Result<Vec<RunId>, StoreError> {
        self.writer
            .write(DOING, Durability::Power, move |connection| {
                let runs = targets(connection, &target)?;
                for run in &runs {
                    reset(connection, run, now).map_err(|source| StoreError::sql(DOING, source))?;
                }
                Ok(runs)
            })
            .await
    }

    /// Closes a dead letter for good: the run is `cancelled`, its dead-letter reason stays, and the
    /// reason that people read says who closed it, and `why`. What was counted stays counted.
    ///
    /// # Errors
    /// The run is in another state, or there is none.
    pub async fn drop_dead_letter(
        &self,
        run: RunId,
        why: Option<String>,
    ) -> Result<(), StoreError> {
        let why = why.map(|why| self.redactor.redact(&why).into_owned());
        self.writer
            .write(CLOSING, Durability::Power, move |connection| {
                let state = state_of(connection, &run, CLOSING)?;
                if state != RunState::DeadLettered {
                    return Err(StoreError::WrongState {
                        run_id: run,
                        state: state.as_str(),
                        needed: "dead_lettered",
                    });
                }
                close(connection, &run, why.as_deref())
                    .map_err(|source| StoreError::sql(CLOSING, source))
            })
            .await
    }
}

fn state_of(
    connection: &Connection,
    run: &RunId,
    doing: &'static str,
) -> Result<RunState, StoreError> {
    connection
        .query_row("SELECT state FROM runs WHERE run_id = ?1", [run.as_str()], |row| {
            get_state(row, "state")
        })
        .optional()
        .map_err(|source| StoreError::sql(doing, source))?
        .ok_or_else(|| StoreError::RunNotFound(run.to_string()))
}

fn close(connection: &Connection, run: &RunId, why: Option<&str>) -> rusqlite::Result<()> {
    let why = why.map_or(String::new(), |why| format!(": {why}"));
    connection
        .execute(
            "UPDATE runs SET state = 'cancelled', retry_at = NULL, token = token + 1,
                reason = 'dropped by an operator' || ?2 || ' (was: ' || dead_letter_reason || ')'
             WHERE run_id = ?1",
            params![run.as_str(), why],
        )
        .map(drop)
}

fn targets(connection: &Connection, target: &ReplayTarget) -> Result<Vec<RunId>, StoreError> {
    match target {
        ReplayTarget::Run(id) => {
            let run = resolve(connection, id)?;
            match state_of(connection, &run, DOING)? {
                RunState::DeadLettered | RunState::Error => Ok(vec![run]),
                other => Err(StoreError::WrongState {
                    run_id: run,
                    state: other.as_str(),
                    needed: "dead_lettered",
                }),
            }
        }
        ReplayTarget::Task(task) => {
            let newest = connection
                .query_row(
                    "SELECT run_id FROM runs WHERE task = ?1 AND state IN ('dead_lettered', 'error')
                     ORDER BY due DESC LIMIT 1",
                    [task.as_str()],
                    |row| row.get::<_, String>(0),
                )
                .optional()
                .map_err(|source| StoreError::sql(DOING, source))?;
            newest
                .map(|run| vec![RunId::new(run)])
                .ok_or_else(|| StoreError::RunNotFound(format!("dead letter of task {task}")))
        }
        ReplayTarget::All => list(connection, None),
        ReplayTarget::Tag(tag) => list(connection, Some(tag)),
    }
}

fn list(connection: &Connection, tag: Option<&str>) -> Result<Vec<RunId>, StoreError> {
    let failed = |source| StoreError::sql(DOING, source);
    let mut query = connection
        .prepare_cached(
            "SELECT run_id FROM runs WHERE state = 'dead_lettered'
                AND (?1 IS NULL OR EXISTS (SELECT 1 FROM json_each(tags) WHERE value = ?1))
             ORDER BY due",
        )
        .map_err(failed)?;
    let rows = query.query_map([tag], |row| row.get::<_, String>(0).map(RunId::new));
    rows.map_err(failed)?.collect::<Result<_, _>>().map_err(failed)
}

fn reset(connection: &Connection, run: &RunId, now: Timestamp) -> rusqlite::Result<()> {
    connection.execute("DELETE FROM artifacts WHERE run_id = ?1", [run.as_str()])?;
    connection
        .execute(
            "UPDATE runs SET state = 'pending', attempts_before = attempts, retries = 0,
                connector_retries = 0, interruptions = 0, retry_at = NULL, token = token + 1,
                started_at = NULL, finished_at = NULL, outcome = NULL, reason = NULL, answer = NULL,
                output = NULL, input_tokens = 0, cached_tokens = 0, output_tokens = 0, cost = 0,
                cost_is_estimated = 0, dead_lettered_at = NULL, dead_letter_reason = NULL,
                dead_letter_attempts = NULL, bundle_commit = NULL,
                replayed_at = ?2, queued_at = ?2
             WHERE run_id = ?1",
            params![run.as_str(), instant(now)],
        )
        .map(drop)
}
