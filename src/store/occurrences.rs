//! Occurrences: a row for each due instant, before anything starts.

use std::collections::HashMap;

use jiff::Timestamp;
use rusqlite::{Connection, params};

use super::columns::{get_small, instant, signed};
use super::counters::{self, bump};
use super::writer::Durability;
use super::{NewOccurrence, OpenTask, Room, Store, StoreError, cancel, columns, task_state};
use crate::run::{RunId, TaskName, Trigger};

impl Store {
    /// Inserts occurrences and the instant of the tick in one transaction; those whose (task, due)
    /// exists are left alone. Returns the ids that were inserted.
    pub async fn insert_occurrences(
        &self,
        occurrences: Vec<NewOccurrence>,
        tick: Option<Timestamp>,
    ) -> Result<Vec<RunId>, StoreError> {
        let doing = "records what is due";
        self.writer
            .write(doing, Durability::Power, move |connection| {
                let failed = |source| StoreError::sql(doing, source);
                let mut inserted = Vec::with_capacity(occurrences.len());
                for occurrence in occurrences {
                    if insert(connection, &occurrence).map_err(failed)? {
                        inserted.push(occurrence.run_id);
                    }
                }
                if let Some(tick) = tick {
                    connection
                        .execute("UPDATE scheduler SET last_tick = ?1", [instant(tick)])
                        .map_err(failed)?;
                }
                Ok(inserted)
            })
            .await
    }

    /// The last tick that was recorded.
    pub async fn last_tick(&self) -> Result<Option<Timestamp>, StoreError> {
        let doing = "reads the last tick";
        self.readers
            .read(doing, move |connection| {
                connection
                    .query_row("SELECT last_tick FROM scheduler", [], |row| {
                        columns::get_instant_opt(row, "last_tick")
                    })
                    .map_err(|source| StoreError::sql(doing, source))
            })
            .await
    }

    /// Tasks with scheduled runs that have not ended. Runs by hand hold up no schedule.
    pub async fn open_tasks(&self) -> Result<HashMap<TaskName, OpenTask>, StoreError> {
        let doing = "reads open tasks";
        self.readers
            .read(doing, move |connection| {
                let failed = |source| StoreError::sql(doing, source);
                let mut query = connection
                    .prepare_cached(
                        "SELECT task, count(*) AS runs, max(state = 'pending' AND EXISTS (
                            SELECT 1 FROM runs AS other WHERE other.state = 'running'
                                AND other.serialization_key = runs.serialization_key
                                AND other.task <> runs.task)) AS waits_for_key
                         FROM runs WHERE cause = 'schedule' AND state IN
                            ('pending', 'running', 'scheduled', 'paused_awaiting_approval', 'interrupted')
                         GROUP BY task",
                    )
                    .map_err(failed)?;
                let tasks = query.query_map([], |row| {
                    let open = OpenTask {
                        runs: get_small(row, "runs")?,
                        waits_for_key: row.get("waits_for_key")?,
                    };
                    Ok((TaskName::new(row.get::<_, String>("task")?), open))
                });
                tasks.map_err(failed)?.collect::<Result<_, _>>().map_err(failed)
            })
            .await
    }
}

pub(super) fn insert(
    connection: &Connection,
    occurrence: &NewOccurrence,
) -> rusqlite::Result<bool> {
    let tags = serde_json::to_string(&occurrence.tags).expect("tags are plain data");
    let cause = match occurrence.trigger {
        Trigger::Schedule => "schedule",
        Trigger::Manual => "manual",
    };
    let (state, finished) = match occurrence.skip {
        None => ("pending", None),
        Some(_) => ("skipped", Some(instant(occurrence.due))),
    };
    let reason = occurrence.skip.map(|skip| skip.as_str());
    let rows = connection
        .prepare_cached(
            "INSERT INTO runs (run_id, task, due, cause, state, tags, reason, finished_at, queued_at,
                priority, exclusive, serialization_key)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
             ON CONFLICT (task, due) WHERE cause = 'schedule' DO NOTHING",
        )?
        .execute(params![
            occurrence.run_id.as_str(),
            occurrence.task.as_str(),
            instant(occurrence.due),
            cause,
            state,
            tags,
            reason,
            finished,
            instant(occurrence.queued_at),
            occurrence.priority,
            occurrence.room != Room::Shared,
            occurrence.serialization_key
        ])?;
    if rows == 1 {
        inserted(connection, occurrence)?;
    }
    Ok(rows == 1)
}

/// What a new row changes besides itself.
fn inserted(connection: &Connection, occurrence: &NewOccurrence) -> rusqlite::Result<()> {
    if let Some(reason) = occurrence.skip {
        return bump(connection, counters::OUTCOME, reason.as_str(), 1);
    }
    if occurrence.trigger == Trigger::Schedule {
        task_state::count_scheduled(connection, &occurrence.task)?;
    }
    if occurrence.room == Room::ReplacesOlder {
        let NewOccurrence { task, run_id, due, queued_at, .. } = occurrence;
        cancel::replace_older(connection, task, run_id, *due, *queued_at)?;
    }
    Ok(())
}

/// Counts tokens as ceilings do.
pub(super) fn counted(usage: &crate::run::Usage) -> i64 {
    signed(usage.counted_tokens())
}
