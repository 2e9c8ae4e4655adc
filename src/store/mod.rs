//! All SQL. One writer thread with group commit, readers apart. Refuses to decide: what to write is
//! decided by `run` and `runner`. Texts are redacted before they are stored.

mod attempts;
mod backup;
mod cancel;
mod checkpoint;
mod claims;
mod columns;
mod connection;
mod counters;
mod daemon_lease;
mod dead_letters;
mod effects;
mod events;
mod fault;
mod lock;
mod memories;
mod notices;
mod occurrences;
mod orphans;
mod outbox;
mod reader;
mod records;
mod restore;
mod retention;
mod runs;
mod schema;
mod task_state;
mod version;
mod views;
mod writer;

use std::path::Path;
use std::sync::Arc;

use crate::secrets::Redactor;
use lock::StoreLock;
use reader::Readers;
use version::Versions;
use writer::Writer;

pub use backup::{Backup, backup, sweep_parts};
pub use checkpoint::WalState;
pub use daemon_lease::{DaemonLease, TakeLease};
pub use records::{
    AfterFailure, AttemptFacts, AttemptFinish, Cancelled, ClaimRequest, ClaimedNotice, ClaimedRun,
    DueNotices, HeldTask, Holder, NewOccurrence, OpenRun, OpenTask, OutsideEffect, Room,
    StoreError,
};
pub use restore::{Gap, Restored, SinceBackup, restore};
pub use retention::{Expired, RetentionCursor, RetentionRule};
pub use views::{
    ArtifactRow, AttemptRow, DeadLetterRow, EventRow, NoticeRow, ReplayTarget, RunDetail,
    RunFilter, RunRow, TaskStats, Totals,
};

/// The store. Cheap to clone; the writer thread ends when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct Store {
    writer: Writer,
    readers: Readers,
    versions: Versions,
    redactor: Redactor,
}

impl Store {
    /// Opens or makes the database and brings its schema up to date. Everything that is written is
    /// redacted with `redactor`'s literals and shapes.
    ///
    /// # Errors
    /// The file cannot be opened, is damaged, or has a schema newer than this program's.
    pub fn open(path: &Path, redactor: Redactor) -> Result<Self, StoreError> {
        connection::make_directory(path)?;
        let lock = Arc::new(StoreLock::shared(path)?);
        let (writer, versions) = Writer::start(path, lock.clone())?;
        let readers = Readers::new(path, lock);
        Ok(Store { writer, readers, versions, redactor })
    }

    /// A number that changes whenever any process commits, a daemon's sign of life apart: live pages
    /// wait for it to change. Memory that the processes share is looked at, and no file is read.
    pub fn version(&self) -> Result<u64, StoreError> {
        self.versions.now()
    }
}
