//! All SQL. One writer thread with group commit, readers apart. Refuses to decide: what to write is
//! decided by `run` and `runner`.

mod records;
mod views;

pub use records::{
    AttemptFacts, AttemptFinish, ClaimRequest, ClaimedRun, Holder, NewOccurrence, OpenRun,
    OutsideEffect, StoreError,
};
pub use views::{
    ArtifactRow, AttemptRow, DeadLetterRow, EventRow, ReplayTarget, RunDetail, RunFilter, RunRow,
    TaskStats, Totals,
};

use std::path::Path;

use jiff::Timestamp;

use crate::run::{Event, FencingToken, RunId, TaskName};

/// The store. Cheap to clone; the writer thread ends when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct Store {
    _todo: (),
}

/// What to do to open it: a daemon migrates, a reader of an old file does as well.
impl Store {
    /// Opens or makes the database and brings its schema up to date. Writes are redacted with
    /// `redactor`'s literals and shapes.
    pub fn open(path: &Path, redactor: crate::secrets::Redactor) -> Result<Self, StoreError> {
        let _ = (path, redactor);
        todo!()
    }

    /// Inserts occurrences and the instant of the tick in one transaction; those whose (task, due)
    /// exists are left alone. Returns the ids that were inserted.
    pub async fn insert_occurrences(
        &self,
        occurrences: Vec<NewOccurrence>,
        tick: Option<Timestamp>,
    ) -> Result<Vec<RunId>, StoreError> {
        let _ = (occurrences, tick);
        todo!()
    }

    /// The last tick that was recorded.
    pub async fn last_tick(&self) -> Result<Option<Timestamp>, StoreError> {
        todo!()
    }

    /// Claims the oldest claimable run (pending, or scheduled and its time has come) in one
    /// transaction with a fresh token, and opens its next attempt.
    pub async fn claim_next(
        &self,
        request: ClaimRequest,
    ) -> Result<Option<ClaimedRun>, StoreError> {
        let _ = request;
        todo!()
    }

    /// Extends the lease.
    pub async fn renew_lease(
        &self,
        run: RunId,
        token: FencingToken,
        until: Timestamp,
    ) -> Result<(), StoreError> {
        let _ = (run, token, until);
        todo!()
    }

    /// Stores facts about the running attempt.
    pub async fn set_attempt_facts(
        &self,
        run: RunId,
        token: FencingToken,
        facts: AttemptFacts,
    ) -> Result<(), StoreError> {
        let _ = (run, token, facts);
        todo!()
    }

    /// Appends to the session log; returns once committed.
    pub async fn append_events(
        &self,
        run: RunId,
        token: FencingToken,
        events: Vec<Event>,
    ) -> Result<(), StoreError> {
        let _ = (run, token, events);
        todo!()
    }

    /// The one terminal transaction of an attempt.
    pub async fn finish_attempt(
        &self,
        run: RunId,
        token: FencingToken,
        finish: AttemptFinish,
    ) -> Result<(), StoreError> {
        let _ = (run, token, finish);
        todo!()
    }

    /// Runs that say they are running.
    pub async fn open_runs(&self) -> Result<Vec<OpenRun>, StoreError> {
        todo!()
    }

    /// Takes an orphan over from its dead holder with a fresh token, so that it can be finished.
    /// Fails with `LeaseLost` when the row changed meanwhile.
    pub async fn take_over(
        &self,
        run: RunId,
        seen: FencingToken,
        holder: Holder,
        lease_until: Timestamp,
    ) -> Result<FencingToken, StoreError> {
        let _ = (run, seen, holder, lease_until);
        todo!()
    }

    /// The earliest instant at which a scheduled retry becomes claimable.
    pub async fn next_retry(&self) -> Result<Option<Timestamp>, StoreError> {
        todo!()
    }

    /// Clean-up jobs that were promised and not yet done: (id, job).
    pub async fn pending_cleanup(&self) -> Result<Vec<(i64, serde_json::Value)>, StoreError> {
        todo!()
    }

    /// A clean-up job is done.
    pub async fn cleanup_done(&self, id: i64) -> Result<(), StoreError> {
        let _ = id;
        todo!()
    }

    /// Resolves an id or an unambiguous beginning of one.
    pub async fn find_run(&self, id: String) -> Result<RunId, StoreError> {
        let _ = id;
        todo!()
    }

    /// Lists runs, the newest due first.
    pub async fn runs(&self, filter: RunFilter) -> Result<Vec<RunRow>, StoreError> {
        let _ = filter;
        todo!()
    }

    /// One run without its events.
    pub async fn run(&self, run: RunId) -> Result<RunRow, StoreError> {
        let _ = run;
        todo!()
    }

    /// One run whole.
    pub async fn run_detail(&self, run: RunId) -> Result<RunDetail, StoreError> {
        let _ = run;
        todo!()
    }

    /// Events after `seq`, at most `limit`, in order.
    pub async fn events_after(
        &self,
        run: RunId,
        seq: i64,
        limit: u32,
    ) -> Result<Vec<EventRow>, StoreError> {
        let _ = (run, seq, limit);
        todo!()
    }

    /// History of each task that has any, by name.
    pub async fn task_stats(&self) -> Result<Vec<TaskStats>, StoreError> {
        todo!()
    }

    /// Counters.
    pub async fn totals(&self) -> Result<Totals, StoreError> {
        todo!()
    }

    /// Dead letters, the newest first; `tag` narrows.
    pub async fn dead_letters(
        &self,
        tag: Option<String>,
        limit: u32,
        offset: u32,
    ) -> Result<Vec<DeadLetterRow>, StoreError> {
        let _ = (tag, limit, offset);
        todo!()
    }

    /// Puts dead letters (and panicked runs) back to pending with a fresh count; returns their ids.
    pub async fn replay(
        &self,
        target: ReplayTarget,
        now: Timestamp,
    ) -> Result<Vec<RunId>, StoreError> {
        let _ = (target, now);
        todo!()
    }

    /// A number that changes whenever another connection commits (`PRAGMA data_version`), plus this
    /// process's own commits: live pages wait for it to change.
    pub async fn version(&self) -> Result<u64, StoreError> {
        todo!()
    }

    /// The task's newest run, if it has any.
    pub async fn latest_run(&self, task: TaskName) -> Result<Option<RunRow>, StoreError> {
        let _ = task;
        todo!()
    }
}
