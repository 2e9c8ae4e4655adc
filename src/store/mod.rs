//! All SQL. One writer thread with group commit, readers apart. Refuses to decide: what to write is
//! decided by `run` and `runner`. Texts are redacted before they are stored.

mod attempts;
mod cancel;
mod columns;
mod connection;
mod counters;
mod dead_letters;
mod effects;
mod events;
mod occurrences;
mod orphans;
mod outbox;
mod reader;
mod records;
mod runs;
mod schema;
mod task_state;
mod views;
mod writer;

use std::path::Path;

use crate::secrets::Redactor;
use reader::Readers;
use writer::Writer;

pub use records::{
    AttemptFacts, AttemptFinish, Cancelled, ClaimRequest, ClaimedRun, HeldTask, Holder,
    NewOccurrence, OpenRun, OpenTask, OutsideEffect, Room, StoreError,
};
pub use views::{
    ArtifactRow, AttemptRow, DeadLetterRow, EventRow, ReplayTarget, RunDetail, RunFilter, RunRow,
    TaskStats, Totals,
};

/// The store. Cheap to clone; the writer thread ends when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct Store {
    writer: Writer,
    readers: Readers,
    redactor: Redactor,
}

impl Store {
    /// Opens or makes the database and brings its schema up to date. Everything that is written is
    /// redacted with `redactor`'s literals and shapes.
    ///
    /// # Errors
    /// The file cannot be opened, is damaged, or has a schema newer than this program's.
    pub fn open(path: &Path, redactor: Redactor) -> Result<Self, StoreError> {
        let writer = Writer::start(path)?;
        let readers = Readers::new(path)?;
        Ok(Store { writer, readers, redactor })
    }

    /// A number that changes whenever any process commits: live pages wait for it to change.
    pub async fn version(&self) -> Result<u64, StoreError> {
        self.readers.version().await
    }

    /// The same at once: memory that the processes share is looked at, and no file is read.
    pub fn version_at_once(&self) -> Result<u64, StoreError> {
        self.readers.version_at_once()
    }
}
