//! What must happen after a terminal transaction: clean-up jobs, and notices (see `notices`).

use super::columns::get_json;
use super::writer::Durability;
use super::{Store, StoreError};

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
