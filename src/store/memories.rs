//! What tasks' runs remember for later ones.

use rusqlite::{Connection, params};

use super::columns::{get_instant, instant};
use super::writer::Durability;
use super::{Store, StoreError};
use crate::run::{Event, EventKind, Memory, RunId, TaskName};
use crate::secrets::Redactor;

impl Store {
    /// A task's facts, the one written longest ago first.
    pub async fn memories(&self, task: TaskName) -> Result<Vec<Memory>, StoreError> {
        let doing = "reads what a task remembers";
        self.readers
            .read(doing, move |connection| {
                let failed = |source| StoreError::sql(doing, source);
                let mut query = connection
                    .prepare_cached(
                        "SELECT key, value, updated_at FROM task_memories WHERE task = ?1
                         ORDER BY updated_at, key",
                    )
                    .map_err(failed)?;
                let rows = query.query_map([task.as_str()], |row| {
                    Ok(Memory {
                        key: row.get("key")?,
                        value: row.get("value")?,
                        updated_at: get_instant(row, "updated_at")?,
                    })
                });
                rows.map_err(failed)?.collect::<Result<_, _>>().map_err(failed)
            })
            .await
    }

    /// Forgets one fact of a task, or all. Returns how many went.
    pub async fn forget_memories(
        &self,
        task: TaskName,
        key: Option<String>,
    ) -> Result<u64, StoreError> {
        let doing = "forgets what a task remembers";
        self.writer
            .write(doing, Durability::Power, move |connection| {
                let gone = connection.execute(
                    "DELETE FROM task_memories WHERE task = ?1 AND (?2 IS NULL OR key = ?2)",
                    params![task.as_str(), key],
                );
                let gone = gone.map_err(|source| StoreError::sql(doing, source))?;
                Ok(u64::try_from(gone).expect("a count of rows"))
            })
            .await
    }
}

/// Keeps what a run's events say that it remembers: in the transaction that records them, so that a run
/// which lost its claim writes nothing.
pub(super) fn keep(
    connection: &Connection,
    redactor: &Redactor,
    run: &RunId,
    events: &[Event],
) -> rusqlite::Result<()> {
    for event in events {
        let EventKind::MemoryChanged { key, value, evicted } = &event.kind else { continue };
        if let Some(gone) = evicted {
            connection
                .prepare_cached(
                    "DELETE FROM task_memories WHERE key = ?2
                        AND task = (SELECT task FROM runs WHERE run_id = ?1)",
                )?
                .execute(params![run.as_str(), redactor.redact(gone)])?;
        }
        connection
            .prepare_cached(
                "INSERT INTO task_memories (task, key, value, updated_at)
                 SELECT task, ?2, ?3, ?4 FROM runs WHERE run_id = ?1
                 ON CONFLICT (task, key) DO UPDATE SET value = excluded.value,
                    updated_at = excluded.updated_at",
            )?
            .execute(params![
                run.as_str(),
                redactor.redact(key),
                redactor.redact(value),
                instant(event.at)
            ])?;
    }
    Ok(())
}
