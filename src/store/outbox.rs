//! What must happen after a terminal transaction.

use rusqlite::{Connection, params};

use super::columns::get_json;
use super::writer::Durability;
use super::{Store, StoreError};
use crate::run::Notice;

impl Store {
    /// Clean-up jobs that were promised and not yet done: (id, job).
    pub async fn pending_cleanup(&self) -> Result<Vec<(i64, serde_json::Value)>, StoreError> {
        let doing = "reads its outbox";
        self.readers
            .read(doing, move |connection| {
                let failed = |source| StoreError::sql(doing, source);
                let mut query = connection
                    .prepare_cached("SELECT id, job FROM outbox WHERE kind = 'cleanup' ORDER BY id")
                    .map_err(failed)?;
                let jobs = query.query_map([], |row| Ok((row.get("id")?, get_json(row, "job")?)));
                jobs.map_err(failed)?.collect::<Result<_, _>>().map_err(failed)
            })
            .await
    }

    /// A clean-up job is done.
    pub async fn cleanup_done(&self, id: i64) -> Result<(), StoreError> {
        let doing = "clears its outbox";
        self.writer
            .write(doing, Durability::Process, move |connection| {
                connection
                    .execute("DELETE FROM outbox WHERE id = ?1", [id])
                    .map(drop)
                    .map_err(|source| StoreError::sql(doing, source))
            })
            .await
    }
}

/// Promises a notice. One with the same key is promised already.
pub(super) fn promise_notice(connection: &Connection, notice: &Notice) -> rusqlite::Result<()> {
    let job = serde_json::to_string(notice).expect("a notice is plain data");
    connection
        .execute(
            "INSERT INTO outbox (job, kind, idempotency_key) VALUES (?1, 'notice', ?2)
             ON CONFLICT (idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING",
            params![job, notice.idempotency_key],
        )
        .map(drop)
}
