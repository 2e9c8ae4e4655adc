//! Keeps the write-ahead log small. A commit copies it into the database by itself; a reader that
//! never ends hinders that, and the log grows with every write until the reader is gone.

use std::path::Path;

use super::lock::beside;
use super::{Store, StoreError, connection};

/// The write-ahead log after an attempt to shrink it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalState {
    /// It is as small as it should be.
    Small,
    /// A reader, perhaps in another process, holds it at this size.
    Held { bytes: u64 },
}

impl Store {
    /// Shrinks a write-ahead log that is larger than `limit` bytes. Waits for nobody: writers go on.
    pub async fn shrink_wal(&self, limit: u64) -> Result<WalState, StoreError> {
        let path = self.readers.path();
        let work = move || shrink(&path, limit).map_err(|failure| failure.at(&path));
        tokio::task::spawn_blocking(work).await.unwrap_or(Err(StoreError::Closed))
    }
}

fn shrink(path: &Path, limit: u64) -> Result<WalState, StoreError> {
    if wal_bytes(path) <= limit {
        return Ok(WalState::Small);
    }
    let connection = connection::checkpointer(path)?;
    // As much as readers allow first, then the file itself; the answer of either is the file's size.
    for mode in ["PASSIVE", "TRUNCATE"] {
        connection
            .query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |_| Ok(()))
            .or_else(|error| match error.sqlite_error_code() {
                Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked) => {
                    Ok(())
                }
                _ => Err(error),
            })
            .map_err(|source| StoreError::sql("shrinks its log", source))?;
    }
    Ok(match wal_bytes(path) {
        bytes if bytes > limit => WalState::Held { bytes },
        _ => WalState::Small,
    })
}

fn wal_bytes(path: &Path) -> u64 {
    std::fs::metadata(beside(path, "-wal")).map_or(0, |metadata| metadata.len())
}
