//! Finds and deletes the runs that nobody needs any more. What was counted stays counted, and what is
//! kept of a task apart from its runs stays too.

use jiff::Timestamp;
use rusqlite::{Connection, named_params};

use super::columns::{get_instant, get_unsigned, instant};
use super::writer::Durability;
use super::{Store, StoreError};
use crate::run::RunId;

/// Which runs may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetentionRule {
    /// Those that ended before.
    pub before: Timestamp,
    /// But not the newest of each task.
    pub keep_runs: u32,
}

/// A run that may go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expired {
    pub run_id: RunId,
    pub finished_at: Timestamp,
    /// Rows of its log.
    pub events: u64,
    /// Where its attempts worked; one that is still there keeps the run.
    pub worktrees: Vec<String>,
}

/// How far a pass over the ended runs has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RetentionCursor(Option<(i64, String)>);

/// Ended runs that are old enough, and that none of these keeps: a dead letter waits for a person;
/// clean-up is promised; it is among the newest of its task (a skipped occurrence counts for skipped
/// ones alone); the next run goes on from its branch.
const EXPIRED: &str = "
    SELECT run_id, finished_at, last_seq FROM runs AS old
    WHERE finished_at < :before AND (finished_at, run_id) > (:at, :id)
        AND state IN ('success', 'error', 'cancelled', 'skipped')
        AND (SELECT count(*) FROM (
            SELECT 1 FROM runs AS newer
            WHERE newer.task = old.task AND (newer.due, newer.run_id) > (old.due, old.run_id)
                AND (newer.state <> 'skipped' OR old.state = 'skipped')
            LIMIT :keep)) >= :keep
        AND NOT EXISTS (SELECT 1 FROM outbox
            WHERE kind = 'cleanup' AND json_extract(job, '$.run') = old.run_id)
        AND NOT (state = 'success' AND branch IS NOT NULL AND NOT EXISTS (
            SELECT 1 FROM runs AS newer
            WHERE newer.task = old.task AND newer.state = 'success' AND newer.branch IS NOT NULL
                AND newer.due > old.due))
    ORDER BY finished_at, run_id LIMIT :limit";

impl Store {
    /// The next runs that may go, the oldest end first, after the cursor, which moves on. None: the
    /// pass is over.
    pub async fn expired_runs(
        &self,
        rule: RetentionRule,
        cursor: RetentionCursor,
        limit: u32,
    ) -> Result<(Vec<Expired>, RetentionCursor), StoreError> {
        let doing = "looks for expired runs";
        let found = self
            .readers
            .read(doing, move |connection| {
                expired(connection, rule, cursor, limit)
                    .map_err(|source| StoreError::sql(doing, source))
            })
            .await?;
        let next = found.last().map(|last| (instant(last.finished_at), last.run_id.to_string()));
        Ok((found, RetentionCursor(next)))
    }

    /// Deletes runs with their attempts, logs and artifact rows in one transaction; a run that was
    /// taken up again meanwhile stays. Returns those that are gone.
    pub async fn delete_expired(
        &self,
        rule: RetentionRule,
        runs: Vec<RunId>,
    ) -> Result<Vec<RunId>, StoreError> {
        let doing = "deletes expired runs";
        self.writer
            .write(doing, Durability::Process, move |connection| {
                let mut gone = Vec::with_capacity(runs.len());
                for run in runs {
                    let deleted = connection
                        .prepare_cached(
                            "DELETE FROM runs WHERE run_id = ?1 AND finished_at < ?2
                                AND state IN ('success', 'error', 'cancelled', 'skipped')",
                        )
                        .and_then(|mut delete| {
                            delete.execute(rusqlite::params![run.as_str(), instant(rule.before)])
                        })
                        .map_err(|source| StoreError::sql(doing, source))?;
                    if deleted > 0 {
                        gone.push(run);
                    }
                }
                Ok(gone)
            })
            .await
    }

    /// Which of these runs the store knows.
    pub async fn known_runs(&self, runs: Vec<RunId>) -> Result<Vec<RunId>, StoreError> {
        let doing = "looks for runs";
        self.readers
            .read(doing, move |connection| {
                let failed = |source| StoreError::sql(doing, source);
                let mut query = connection
                    .prepare_cached("SELECT 1 FROM runs WHERE run_id = ?1")
                    .map_err(failed)?;
                let mut known = Vec::new();
                for run in runs {
                    if query.exists([run.as_str()]).map_err(failed)? {
                        known.push(run);
                    }
                }
                Ok(known)
            })
            .await
    }
}

fn expired(
    connection: &Connection,
    rule: RetentionRule,
    cursor: RetentionCursor,
    limit: u32,
) -> rusqlite::Result<Vec<Expired>> {
    let (at, id) = cursor.0.unwrap_or((i64::MIN, String::new()));
    let mut query = connection.prepare_cached(EXPIRED)?;
    let mut worktrees = connection.prepare_cached(
        "SELECT worktree FROM attempts WHERE run_id = ?1 AND worktree IS NOT NULL ORDER BY attempt",
    )?;
    let rows = query.query_map(
        named_params! {
            ":before": instant(rule.before), ":at": at, ":id": id, ":keep": rule.keep_runs,
            ":limit": limit,
        },
        |row| {
            let run_id: String = row.get("run_id")?;
            let paths = worktrees.query_map([&run_id], |row| row.get::<_, String>(0))?;
            Ok(Expired {
                worktrees: paths.collect::<Result<_, _>>()?,
                run_id: RunId::new(run_id),
                finished_at: get_instant(row, "finished_at")?,
                events: get_unsigned(row, "last_seq")?,
            })
        },
    )?;
    rows.collect()
}
