//! Connections that only read, apart from the writer: a long query holds up nobody.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;

use super::lock::StoreLock;
use super::{StoreError, connection};

/// Connections that are kept for the next query.
const KEPT: usize = 4;

/// A pool of readers. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Readers {
    path: Arc<PathBuf>,
    idle: Arc<Mutex<Vec<Connection>>>,
    /// Let go of after the connections.
    _lock: Arc<StoreLock>,
}

impl Readers {
    /// Readers of the database at `path`, which exists.
    pub(super) fn new(path: &Path, lock: Arc<StoreLock>) -> Self {
        Readers { path: Arc::new(path.to_owned()), idle: Arc::default(), _lock: lock }
    }

    /// Runs queries on one snapshot, on a thread for blocking work.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let readers = self.clone();
        let path = self.path.clone();
        let done = tokio::task::spawn_blocking(move || readers.read_now(doing, work)).await;
        done.unwrap_or(Err(StoreError::Closed)).map_err(|failure| failure.at(&path))
    }

    fn read_now<T>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let failed = |source| StoreError::sql(doing, source);
        let kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match kept {
            Some(connection) => connection,
            None => connection::reader(&self.path)?,
        };
        connection.execute_batch("BEGIN").map_err(failed)?;
        let done = work(&connection);
        connection.execute_batch("COMMIT").map_err(failed)?;
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < KEPT {
            idle.push(connection);
        }
        done
    }

    /// The database's file.
    pub(super) fn path(&self) -> Arc<PathBuf> {
        self.path.clone()
    }
}
