//! Claims: who carries out a run, for how long, and which run is next.

use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, named_params, params};

use super::columns::{get_small, get_usage, instant};
use super::occurrences::insert;
use super::writer::Durability;
use super::{ClaimRequest, ClaimedRun, Holder, NewOccurrence, Store, StoreError, columns, effects};
use crate::run::{CommitId, Counters, FencingToken, RunId, TaskName, Trigger};

impl Store {
    /// Claims the next claimable run (pending, or scheduled and its time has come) in one
    /// transaction with a fresh token, and opens its next attempt.
    pub async fn claim_next(
        &self,
        request: ClaimRequest,
    ) -> Result<Option<ClaimedRun>, StoreError> {
        Ok(self.claim_some(request, 1).await?.pop())
    }

    /// Claims what [`Store::claim_next`] would claim, one after another, at most `limit` runs, in one
    /// transaction.
    pub async fn claim_some(
        &self,
        request: ClaimRequest,
        limit: usize,
    ) -> Result<Vec<ClaimedRun>, StoreError> {
        let doing = "claims runs";
        self.writer
            .write(doing, Durability::Power, move |connection| {
                let next = || claim(connection, &request).transpose();
                let claimed = std::iter::from_fn(next).take(limit).collect::<Result<_, _>>();
                claimed.map_err(|source| StoreError::sql(doing, source))
            })
            .await
    }

    /// Inserts an occurrence and claims it in one transaction, so that nobody else can.
    pub async fn insert_and_claim(
        &self,
        occurrence: NewOccurrence,
        request: ClaimRequest,
    ) -> Result<ClaimedRun, StoreError> {
        let doing = "records and claims a run";
        self.writer
            .write(doing, Durability::Power, move |connection| {
                let failed = |source| StoreError::sql(doing, source);
                insert(connection, &occurrence).map_err(failed)?;
                let only = Some(occurrence.run_id.clone());
                let claimed = claim(connection, &ClaimRequest { only, ..request });
                match claimed.map_err(failed)? {
                    Some(claimed) => Ok(claimed),
                    None => Err(held_key(connection, &occurrence).map_err(failed)?),
                }
            })
            .await
    }

    /// Extends the lease.
    pub async fn renew_lease(
        &self,
        run: RunId,
        token: FencingToken,
        until: Timestamp,
    ) -> Result<(), StoreError> {
        let doing = "renews a lease";
        self.writer
            .write(doing, Durability::Process, move |connection| {
                let renewed = connection.execute(
                    "UPDATE runs SET lease_until = ?3 WHERE run_id = ?1 AND token = ?2 AND state = 'running'",
                    params![run.as_str(), token.0, instant(until)],
                );
                held(renewed.map_err(|source| StoreError::sql(doing, source))?, &run)
            })
            .await
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
        let doing = "takes over an orphan";
        self.writer
            .write(doing, Durability::Power, move |connection| {
                let taken = connection.execute(
                    "UPDATE runs SET token = token + 1, holder_instance = ?3, holder_pid = ?4,
                        holder_boot = ?5, lease_until = ?6
                     WHERE run_id = ?1 AND token = ?2 AND state = 'running'",
                    params![
                        run.as_str(),
                        seen.0,
                        holder.instance,
                        holder.pid,
                        holder.boot.as_str(),
                        instant(lease_until)
                    ],
                );
                held(taken.map_err(|source| StoreError::sql(doing, source))?, &run)?;
                Ok(FencingToken(seen.0 + 1))
            })
            .await
    }

    /// The earliest instant at which a scheduled retry becomes claimable.
    pub async fn next_retry(&self) -> Result<Option<Timestamp>, StoreError> {
        let doing = "reads the next retry";
        self.readers
            .read(doing, move |connection| {
                connection
                    .query_row(
                        "SELECT min(retry_at) AS retry_at FROM runs WHERE state = 'scheduled'",
                        [],
                        |row| columns::get_instant_opt(row, "retry_at"),
                    )
                    .map_err(|source| StoreError::sql(doing, source))
            })
            .await
    }
}

/// Whether a fenced write met its row.
pub(super) fn held(rows: usize, run: &RunId) -> Result<(), StoreError> {
    if rows == 1 { Ok(()) } else { Err(StoreError::LeaseLost(run.clone())) }
}

/// A run that has waited that long goes before every priority, so that none starves.
const STARVING: Duration = Duration::from_secs(30 * 60);

/// Nothing that may not run beside it runs.
const HAS_ROOM: &str = "(serialization_key IS NULL OR NOT EXISTS (
        SELECT 1 FROM runs AS other
        WHERE other.serialization_key = runs.serialization_key AND other.state = 'running'))
    AND (exclusive = 0 OR NOT EXISTS (
        SELECT 1 FROM runs AS other
        WHERE other.task = runs.task AND other.cause = 'schedule' AND other.run_id <> runs.run_id
            AND other.state IN ('pending', 'running', 'scheduled', 'paused_awaiting_approval', 'interrupted')
            AND (other.state <> 'pending' OR other.due < runs.due)))";

/// Why a fresh run could not be claimed: of all that must have room, a run by hand waits for its key
/// alone.
fn held_key(connection: &Connection, occurrence: &NewOccurrence) -> rusqlite::Result<StoreError> {
    let key = occurrence.serialization_key.clone().unwrap_or_default();
    let holder = connection
        .query_row(
            "SELECT run_id, task FROM runs WHERE serialization_key = ?1 AND state = 'running'",
            [&key],
            |row| {
                Ok((RunId::new(row.get::<_, String>(0)?), TaskName::new(row.get::<_, String>(1)?)))
            },
        )
        .optional()?;
    Ok(match holder {
        Some((holder, task)) => StoreError::KeyHeld { key, holder, task },
        None => StoreError::RunNotFound(occurrence.run_id.to_string()),
    })
}

/// The pending run that is next: one that starves, else by priority and age.
fn next_pending(
    connection: &Connection,
    request: &ClaimRequest,
) -> rusqlite::Result<Option<String>> {
    let only = request.only.as_ref().map(RunId::as_str);
    let starving = request.now.saturating_sub(STARVING).unwrap_or(Timestamp::MIN);
    let starved = connection
        .prepare_cached(&format!(
            "SELECT run_id FROM runs
             WHERE state = 'pending' AND queued_at <= :starving AND (:only IS NULL OR run_id = :only)
                AND {HAS_ROOM}
             ORDER BY queued_at, run_id LIMIT 1"
        ))?
        .query_row(named_params! { ":starving": instant(starving), ":only": only }, |row| row.get(0))
        .optional()?;
    if starved.is_some() {
        return Ok(starved);
    }
    connection
        .prepare_cached(&format!(
            "SELECT run_id FROM runs
             WHERE state = 'pending' AND (:only IS NULL OR run_id = :only) AND {HAS_ROOM}
             ORDER BY priority DESC, due, run_id LIMIT 1"
        ))?
        .query_row(named_params! { ":only": only }, |row| row.get(0))
        .optional()
}

fn claim(connection: &Connection, request: &ClaimRequest) -> rusqlite::Result<Option<ClaimedRun>> {
    // A retry whose time has come waits with the others.
    connection
        .prepare_cached(
            "UPDATE runs SET state = 'pending', queued_at = retry_at, retry_at = NULL
             WHERE state = 'scheduled' AND retry_at <= ?1",
        )?
        .execute([instant(request.now)])?;
    let Some(run_id) = next_pending(connection, request)? else { return Ok(None) };
    connection
        .prepare_cached(
            "UPDATE runs SET state = 'running', token = token + 1, attempts = attempts + 1,
            holder_instance = ?2, holder_pid = ?3, holder_boot = ?4, lease_until = ?5,
            started_at = coalesce(started_at, ?6), finished_at = NULL
         WHERE run_id = ?1",
        )?
        .execute(params![
            run_id,
            request.holder.instance,
            request.holder.pid,
            request.holder.boot.as_str(),
            instant(request.lease_until),
            instant(request.now)
        ])?;
    let claimed = claimed(connection, RunId::new(run_id))?;
    connection
        .prepare_cached("INSERT INTO attempts (run_id, attempt, started_at) VALUES (?1, ?2, ?3)")?
        .execute(params![claimed.run_id.as_str(), claimed.attempt, instant(request.now)])?;
    Ok(Some(claimed))
}

fn claimed(connection: &Connection, run_id: RunId) -> rusqlite::Result<ClaimedRun> {
    let mut claimed = connection
        .prepare_cached("SELECT * FROM runs WHERE run_id = ?1")?
        .query_row([run_id.as_str()], |row| {
            let cause: String = row.get("cause")?;
            Ok(ClaimedRun {
                run_id: run_id.clone(),
                task: TaskName::new(row.get::<_, String>("task")?),
                due: columns::get_instant(row, "due")?,
                trigger: if cause == "manual" { Trigger::Manual } else { Trigger::Schedule },
                token: FencingToken(row.get("token")?),
                attempt: get_small(row, "attempts")?,
                counters: Counters {
                    retries: get_small(row, "retries")?,
                    connector_retries: get_small(row, "connector_retries")?,
                    interruptions: get_small(row, "interruptions")?,
                },
                spent: get_usage(row)?,
                bundle_commit: row.get::<_, Option<String>>("bundle_commit")?.map(CommitId::new),
                effects: Vec::new(),
                previous_answer: None,
                previous_outcome: None,
                previous_branch: None,
                previous_commit: None,
            })
        })?;
    if claimed.attempt > 1 {
        claimed.effects = effects::of_run(connection, &claimed.run_id)?;
    }
    previous(connection, &mut claimed)?;
    Ok(claimed)
}

/// What the task's earlier runs left.
fn previous(connection: &Connection, claimed: &mut ClaimedRun) -> rusqlite::Result<()> {
    let key = params![claimed.task.as_str(), claimed.run_id.as_str()];
    let last = connection
        .prepare_cached(
            "SELECT answer, outcome FROM runs WHERE task = ?1 AND run_id <> ?2
                AND finished_at IS NOT NULL AND state <> 'skipped'
             ORDER BY due DESC LIMIT 1",
        )?
        .query_row(key, |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    if let Some((answer, outcome)) = last {
        claimed.previous_answer = answer;
        claimed.previous_outcome = outcome;
    }
    let left = connection
        .prepare_cached(
            "SELECT branch, commit_id FROM runs WHERE task = ?1 AND run_id <> ?2
                AND state = 'success' AND branch IS NOT NULL
             ORDER BY due DESC LIMIT 1",
        )?
        .query_row(key, |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    if let Some((branch, commit)) = left {
        claimed.previous_branch = branch;
        claimed.previous_commit = commit;
    }
    Ok(())
}
