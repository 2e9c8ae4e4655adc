//! The one thread that writes. Jobs that wait together are committed together: each in a savepoint of
//! its own, so that one's failure leaves the others, and each answered only after the commit.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::thread;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};
use tracing::error;

use super::{StoreError, connection, daemon_lease};

/// Jobs that may wait before a caller has to.
const QUEUE: usize = 256;
/// Jobs in one transaction at most.
const GROUP: usize = 64;

/// What a commit must survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Durability {
    /// A crash of this process: log lines.
    Process,
    /// A power cut: changes of state.
    Power,
}

type Reply = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// The connection inside a transaction, or why there is none.
type Begun<'a> = Result<&'a Connection, &'a rusqlite::Error>;

struct Job {
    durability: Durability,
    /// Gets no connection when no transaction could be begun.
    work: Box<dyn FnOnce(Begun<'_>) -> Reply + Send>,
}

/// The way to the writer thread, which ends when the last clone is dropped.
#[derive(Clone, Debug)]
pub(super) struct Writer {
    jobs: mpsc::Sender<Job>,
    /// The daemon's token that every write carries, once there is one.
    carried: Arc<OnceLock<i64>>,
}

impl Writer {
    /// Opens and migrates the database and starts the thread.
    pub(super) fn start(path: &Path) -> Result<Self, StoreError> {
        let connection = connection::writer(path)?;
        let (jobs, queue) = mpsc::channel(QUEUE);
        thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(|| run(connection, queue))
            .map_err(|error| StoreError::Open {
                path: path.display().to_string(),
                message: error.to_string(),
            })?;
        Ok(Writer { jobs, carried: Arc::default() })
    }

    /// From now on every write fails once the daemon's lease has another token.
    pub(super) fn carry(&self, token: i64) {
        // A process takes the lease once in its life.
        let _ = self.carried.set(token);
    }

    /// Does one piece of work in a transaction and returns once that is committed.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        doing: &'static str,
        durability: Durability,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        let carried = self.carried.get().copied();
        let work = move |connection: &Connection| {
            carried.map_or(Ok(()), |token| daemon_lease::check(connection, token))?;
            work(connection)
        };
        let work = Box::new(move |begun: Begun<'_>| -> Reply {
            let done = match begun {
                Ok(connection) => in_savepoint(connection, doing, work),
                Err(failure) => Err(StoreError::Failed(failure.to_string())),
            };
            Box::new(move |committed| {
                // The caller may have stopped waiting; the commit stands.
                let _ = answer.send(committed.and(done));
            })
        });
        self.jobs.send(Job { durability, work }).await.map_err(|_| StoreError::Closed)?;
        answered.await.map_err(|_| StoreError::Closed)?
    }
}

fn in_savepoint<T>(
    connection: &Connection,
    doing: &'static str,
    work: impl FnOnce(&Connection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let failed = |source| StoreError::sql(doing, source);
    connection.execute_batch("SAVEPOINT job").map_err(failed)?;
    let done = work(connection);
    let end = if done.is_ok() { "RELEASE job" } else { "ROLLBACK TO job; RELEASE job" };
    connection.execute_batch(end).map_err(failed)?;
    done
}

fn run(connection: Connection, mut queue: mpsc::Receiver<Job>) {
    let mut group = Vec::with_capacity(GROUP);
    while queue.blocking_recv_many(&mut group, GROUP) > 0 {
        let power = group.iter().any(|job| job.durability == Durability::Power);
        let begun = begin(&connection, if power { Durability::Power } else { Durability::Process });
        let usable = begun.as_ref().map(|()| &connection);
        let replies: Vec<Reply> = group.drain(..).map(|job| (job.work)(usable)).collect();
        let committed = match &begun {
            Ok(()) => connection.execute_batch("COMMIT"),
            Err(_) => Ok(()),
        };
        for failure in [begun.as_ref().err(), committed.as_ref().err()].into_iter().flatten() {
            error!(error = %failure, "a transaction of the store failed");
            // Nothing of it stands; without a transaction there is nothing to roll back.
            let _ = connection.execute_batch("ROLLBACK");
        }
        for reply in replies {
            reply(match &committed {
                Ok(()) => Ok(()),
                Err(failure) => Err(StoreError::Failed(failure.to_string())),
            });
        }
    }
    // A hint for the next start; without it queries are slower, not wrong.
    let _ = connection.execute_batch("PRAGMA optimize");
}

fn begin(connection: &Connection, durability: Durability) -> rusqlite::Result<()> {
    let level = match durability {
        Durability::Process => "NORMAL",
        Durability::Power => "FULL",
    };
    connection.pragma_update(None, "synchronous", level)?;
    connection.execute_batch("BEGIN IMMEDIATE")
}
