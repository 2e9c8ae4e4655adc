//! What is kept of a task apart from its runs: pauses, parking, failures in a row, and how often its
//! schedule has let it run.

use std::collections::HashMap;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::columns::{get_instant, get_instant_opt, get_small, get_unsigned, instant};
use super::writer::Durability;
use super::{AttemptFinish, HeldTask, Store, StoreError, notices};
use crate::run::{FollowUp, Notice, RunId, RunState, TaskName};
use crate::secrets::Redactor;

const READING: &str = "reads what is kept of tasks";

impl Store {
    /// Pauses a task's schedule, perhaps until an instant. What is due from now on is recorded as
    /// `skipped_paused`; what is recorded already goes on. A second pause replaces the first.
    pub async fn pause_task(
        &self,
        task: TaskName,
        now: Timestamp,
        until: Option<Timestamp>,
        reason: String,
    ) -> Result<(), StoreError> {
        let doing = "pauses a task";
        let reason = self.redactor.redact(&reason).into_owned();
        self.writer
            .write(doing, Durability::Power, move |connection| {
                connection
                    .execute(
                        "INSERT INTO task_state (task, paused_at, paused_until, pause_reason)
                         VALUES (?1, ?2, ?3, ?4)
                         ON CONFLICT (task) DO UPDATE SET paused_at = excluded.paused_at,
                            paused_until = excluded.paused_until, pause_reason = excluded.pause_reason",
                        params![task.as_str(), instant(now), until.map(instant), reason],
                    )
                    .map(drop)
                    .map_err(|source| StoreError::sql(doing, source))
            })
            .await
    }

    /// Ends a task's pause and its parking, and forgets its failures. Returns how it was held; `None`
    /// when it was not.
    pub async fn resume_task(&self, task: TaskName) -> Result<Option<HeldTask>, StoreError> {
        let doing = "resumes a task";
        self.writer
            .write(doing, Durability::Power, move |connection| {
                resume(connection, &task).map_err(|source| StoreError::sql(doing, source))
            })
            .await
    }

    /// The tasks that are paused (or were, until an instant) or parked.
    pub async fn held_tasks(&self) -> Result<HashMap<TaskName, HeldTask>, StoreError> {
        self.readers
            .read(READING, move |connection| {
                let failed = |source| StoreError::sql(READING, source);
                let mut query = connection
                    .prepare_cached(
                        "SELECT * FROM task_state WHERE paused_at IS NOT NULL OR parked_at IS NOT NULL",
                    )
                    .map_err(failed)?;
                let rows = query.query_map([], |row| {
                    Ok((TaskName::new(row.get::<_, String>("task")?), held(row)?))
                });
                rows.map_err(failed)?.collect::<Result<_, _>>().map_err(failed)
            })
            .await
    }

    /// How many occurrences of each task its schedule has let run.
    pub async fn scheduled_runs(&self) -> Result<HashMap<TaskName, u64>, StoreError> {
        self.readers
            .read(READING, move |connection| {
                let failed = |source| StoreError::sql(READING, source);
                let mut query = connection
                    .prepare_cached(
                        "SELECT task, scheduled_runs FROM task_state WHERE scheduled_runs > 0",
                    )
                    .map_err(failed)?;
                let rows = query.query_map([], |row| {
                    let task = TaskName::new(row.get::<_, String>("task")?);
                    Ok((task, get_unsigned(row, "scheduled_runs")?))
                });
                rows.map_err(failed)?.collect::<Result<_, _>>().map_err(failed)
            })
            .await
    }
}

fn held(row: &Row<'_>) -> rusqlite::Result<HeldTask> {
    Ok(HeldTask {
        paused_at: get_instant_opt(row, "paused_at")?,
        paused_until: get_instant_opt(row, "paused_until")?,
        pause_reason: row.get("pause_reason")?,
        parked_at: get_instant_opt(row, "parked_at")?,
        park_reason: row.get("park_reason")?,
        failures_in_a_row: get_small(row, "failures_in_a_row")?,
    })
}

fn resume(connection: &Connection, task: &TaskName) -> rusqlite::Result<Option<HeldTask>> {
    let found = connection
        .query_row(
            "SELECT * FROM task_state WHERE task = ?1
                AND (paused_at IS NOT NULL OR parked_at IS NOT NULL)",
            [task.as_str()],
            held,
        )
        .optional()?;
    if found.is_some() {
        connection.execute(
            "UPDATE task_state SET paused_at = NULL, paused_until = NULL, pause_reason = NULL,
                parked_at = NULL, park_reason = NULL, failures_in_a_row = 0
             WHERE task = ?1",
            [task.as_str()],
        )?;
    }
    Ok(found)
}

/// Counts an occurrence that the schedule let run.
pub(super) fn count_scheduled(connection: &Connection, task: &TaskName) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO task_state (task, scheduled_runs) VALUES (?1, 1)
             ON CONFLICT (task) DO UPDATE SET scheduled_runs = scheduled_runs + 1",
        )?
        .execute([task.as_str()])
        .map(drop)
}

/// A run that the schedule let run, and that did not run after all, is not counted.
pub(super) fn uncount_scheduled(connection: &Connection, run: &RunId) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "UPDATE task_state SET scheduled_runs = scheduled_runs - 1
             WHERE scheduled_runs > 0
                AND task = (SELECT task FROM runs WHERE run_id = ?1 AND cause = 'schedule')",
        )?
        .execute([run.as_str()])
        .map(drop)
}

/// What a run's end means for its task, in the terminal transaction: failures in a row, parking, and
/// the notices that it causes.
pub(super) fn follow_up(
    connection: &Connection,
    redactor: &Redactor,
    run: &RunId,
    finish: &AttemptFinish,
) -> rusqlite::Result<()> {
    let (task, due, before, parked) = connection
        .prepare_cached(
            "SELECT task, due, coalesce(failures_in_a_row, 0) AS failures_in_a_row,
                parked_at IS NOT NULL AS parked
             FROM runs LEFT JOIN task_state USING (task) WHERE run_id = ?1",
        )?
        .query_row([run.as_str()], |row| {
            let due = get_instant(row, "due")?;
            let before = get_small(row, "failures_in_a_row")?;
            Ok((row.get::<_, String>("task")?, due, before, row.get::<_, bool>("parked")?))
        })?;
    if finish.state == RunState::Skipped {
        uncount_scheduled(connection, run)?;
    }
    let mut follow_up = FollowUp::after(before, finish.state, finish.park_after);
    // A replay by hand may fail while the task is parked already: that is told once.
    follow_up.parks &= !parked;
    if follow_up.failures_in_a_row != before {
        connection
            .prepare_cached(
                "INSERT INTO task_state (task, failures_in_a_row) VALUES (?1, ?2)
             ON CONFLICT (task) DO UPDATE SET failures_in_a_row = excluded.failures_in_a_row",
            )?
            .execute(params![task, follow_up.failures_in_a_row])?;
    }
    if follow_up.parks {
        park(connection, &task, follow_up, finish.at)?;
    }
    for prepared in &finish.notices {
        if follow_up.causes(prepared.notice.event, prepared.nth) {
            let notice = Notice {
                reason: notices::told(redactor, &prepared.notice.reason),
                failures_in_a_row: follow_up.failures_in_a_row.max(follow_up.before),
                due,
                ..prepared.notice.clone()
            };
            notices::promise(connection, &notice)?;
        }
    }
    Ok(())
}

/// The first reason stays: a task that is parked already is parked since then.
fn park(
    connection: &Connection,
    task: &str,
    follow_up: FollowUp,
    at: Timestamp,
) -> rusqlite::Result<()> {
    let reason = match follow_up.failures_in_a_row {
        1 => "a run failed for good".to_owned(),
        number => format!("{number} runs in a row failed for good"),
    };
    connection
        .execute(
            "UPDATE task_state SET parked_at = coalesce(parked_at, ?2),
                park_reason = coalesce(park_reason, ?3)
             WHERE task = ?1",
            params![task, instant(at), reason],
        )
        .map(drop)
}
