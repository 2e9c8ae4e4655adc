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
    /// Never used for anything but `PRAGMA data_version`, which compares within one connection.
    witness: Arc<Mutex<Connection>>,
    /// Let go of after the connections.
    _lock: Arc<StoreLock>,
}

impl Readers {
    /// Readers of the database at `path`, which exists.
    pub(super) fn new(path: &Path, lock: Arc<StoreLock>) -> Result<Self, StoreError> {
        let witness = connection::reader(path)?;
        Ok(Readers {
            path: Arc::new(path.to_owned()),
            idle: Arc::default(),
            witness: Arc::new(Mutex::new(witness)),
            _lock: lock,
        })
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

    /// A number that changes with every commit of any process.
    pub(super) async fn version(&self) -> Result<u64, StoreError> {
        let readers = self.clone();
        let read = move || readers.version_at_once();
        tokio::task::spawn_blocking(read).await.unwrap_or(Err(StoreError::Closed))
    }

    /// The same on the caller's thread: shared memory is looked at, and no file read.
    pub(super) fn version_at_once(&self) -> Result<u64, StoreError> {
        let connection = self.witness.lock().unwrap_or_else(PoisonError::into_inner);
        connection
            .prepare_cached("PRAGMA data_version")
            .and_then(|mut version| version.query_row([], |row| row.get::<_, u32>(0)))
            .map(u64::from)
            .map_err(|source| StoreError::sql("reads its version", source))
    }
}
