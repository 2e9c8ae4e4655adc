//! The one thread that writes. Jobs that wait together are committed together: each in a savepoint of
//! its own, so that one's failure leaves the others, and each answered only after the commit.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::thread;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};
use tracing::error;

use super::lock::StoreLock;
use super::version::Versions;
use super::{StoreError, connection, daemon_lease, fault};

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
    /// A crash of this process, and nobody needs to look: a sign of life.
    Quiet,
}

type Reply = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// The connection inside a transaction, or why there is none.
type Begun<'a> = Result<&'a Connection, StoreError>;

struct Job {
    durability: Durability,
    /// Gets no connection when no transaction could be begun.
    work: Box<dyn FnOnce(Begun<'_>) -> Reply + Send>,
}

/// The way to the writer thread, which ends when the last clone is dropped.
#[derive(Clone, Debug)]
pub(super) struct Writer {
    jobs: mpsc::Sender<Job>,
    path: Arc<PathBuf>,
    /// The daemon's token that every write carries, once there is one.
    carried: Arc<OnceLock<i64>>,
}

impl Writer {
    /// Opens and migrates the database and starts the thread, which holds the lock to its end. Returns
    /// what tells of its commits too.
    pub(super) fn start(path: &Path, lock: Arc<StoreLock>) -> Result<(Self, Versions), StoreError> {
        let connection = connection::writer(path)?;
        let versions = Versions::of(path)?;
        let witness = versions.clone();
        let (jobs, queue) = mpsc::channel(QUEUE);
        let path = Arc::new(path.to_owned());
        let named = path.clone();
        thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || {
                run(&connection, queue, &named, &witness);
                drop(connection);
                drop(lock);
            })
            .map_err(|error| StoreError::Open {
                path: path.display().to_string(),
                message: error.to_string(),
            })?;
        Ok((Writer { jobs, path, carried: Arc::default() }, versions))
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
        let path = self.path.clone();
        let carried = self.carried.get().copied();
        let work = move |connection: &Connection| {
            carried.map_or(Ok(()), |token| daemon_lease::check(connection, token))?;
            work(connection)
        };
        let work = Box::new(move |begun: Begun<'_>| -> Reply {
            let done = begun.and_then(|connection| in_savepoint(connection, doing, work));
            let done = done.map_err(|failure| failure.at(&path));
            Box::new(move |committed| {
                // The caller may have stopped waiting; the commit stands.
                let _ = answer.send(done.and_then(|done| committed.map(|()| done)));
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
    let done = work(connection)
        .and_then(|done| connection.execute_batch("RELEASE job").map(|()| done).map_err(failed));
    if done.is_err() && connection.execute_batch("ROLLBACK TO job; RELEASE job").is_err() {
        // Half a job must not be committed. A full disk has rolled everything back already.
        let _ = connection.execute_batch("ROLLBACK");
    }
    done
}

fn run(connection: &Connection, mut queue: mpsc::Receiver<Job>, path: &Path, versions: &Versions) {
    let mut group = Vec::with_capacity(GROUP);
    while queue.blocking_recv_many(&mut group, GROUP) > 0 {
        let power = group.iter().any(|job| job.durability == Durability::Power);
        let begun = begin(connection, if power { Durability::Power } else { Durability::Process });
        let is_quiet = begun.is_ok() && group.iter().all(|job| job.durability == Durability::Quiet);
        // What cannot be told to be quiet counts: somebody looks for nothing.
        let quiet = is_quiet.then(|| versions.before_quiet(connection).ok()).flatten();
        let usable = || match &begun {
            Err(failure) => Err(fault::of_transaction(path, failure)),
            Ok(()) if connection.is_autocommit() => Err(rolled_back()),
            Ok(()) => Ok(connection),
        };
        let replies: Vec<Reply> = group.drain(..).map(|job| (job.work)(usable())).collect();
        // SQLite ends a transaction by itself when a disk is full: nothing of the group stands then.
        let committed = usable().and_then(|connection| {
            connection
                .execute_batch("COMMIT")
                .map_err(|failure| fault::of_transaction(path, &failure))
        });
        if let Err(failure) = &committed {
            error!(error = %failure, "a transaction of the store failed");
            // Nothing of it stands; without a transaction there is nothing to roll back.
            let _ = connection.execute_batch("ROLLBACK");
        }
        if let Some(quiet) = quiet {
            let _ = versions.after_quiet(connection, &quiet);
        }
        for reply in replies {
            reply(match &committed {
                Ok(()) => Ok(()),
                Err(failure) => Err(failure.again()),
            });
        }
    }
    // A hint for the next start; without it queries are slower, not wrong.
    let _ = connection.execute_batch("PRAGMA optimize");
}

fn rolled_back() -> StoreError {
    StoreError::Failed("another write of the same transaction failed".to_owned())
}

fn begin(connection: &Connection, durability: Durability) -> rusqlite::Result<()> {
    let level = match durability {
        Durability::Process | Durability::Quiet => "NORMAL",
        Durability::Power => "FULL",
    };
    connection.pragma_update(None, "synchronous", level)?;
    connection.execute_batch("BEGIN IMMEDIATE")
}
