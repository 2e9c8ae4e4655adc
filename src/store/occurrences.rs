//! Occurrences and claims.

use std::collections::HashSet;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, named_params, params};

use super::columns::{get_small, get_usage, instant, signed};
use super::counters::{self, bump};
use super::writer::Durability;
use super::{ClaimRequest, ClaimedRun, Holder, NewOccurrence, Store, StoreError, columns, effects};
use crate::run::{CommitId, Counters, FencingToken, RunId, TaskName, Trigger};

impl Store {
    /// Inserts occurrences and the instant of the tick in one transaction; those whose (task, due)
    /// exists are left alone. Returns the ids that were inserted.
    pub async fn insert_occurrences(
        &self,
        occurrences: Vec<NewOccurrence>,
        tick: Option<Timestamp>,
    ) -> Result<Vec<RunId>, StoreError> {
        let doing = "records what is due";
        self.writer
            .write(doing, Durability::Power, move |connection| {
                let failed = |source| StoreError::sql(doing, source);
                let mut inserted = Vec::with_capacity(occurrences.len());
                for occurrence in occurrences {
                    if insert(connection, &occurrence).map_err(failed)? {
                        inserted.push(occurrence.run_id);
                    }
                }
                if let Some(tick) = tick {
                    connection
                        .execute("UPDATE scheduler SET last_tick = ?1", [instant(tick)])
                        .map_err(failed)?;
                }
                Ok(inserted)
            })
            .await
    }

    /// The last tick that was recorded.
    pub async fn last_tick(&self) -> Result<Option<Timestamp>, StoreError> {
        let doing = "reads the last tick";
        self.readers
            .read(doing, move |connection| {
                connection
                    .query_row("SELECT last_tick FROM scheduler", [], |row| {
                        columns::get_instant_opt(row, "last_tick")
                    })
                    .map_err(|source| StoreError::sql(doing, source))
            })
            .await
    }

    /// Claims the oldest claimable run (pending, or scheduled and its time has come) in one
    /// transaction with a fresh token, and opens its next attempt.
    pub async fn claim_next(
        &self,
        request: ClaimRequest,
    ) -> Result<Option<ClaimedRun>, StoreError> {
        let doing = "claims a run";
        self.writer
            .write(doing, Durability::Power, move |connection| {
                claim(connection, &request).map_err(|source| StoreError::sql(doing, source))
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
                claim(connection, &ClaimRequest { only, ..request })
                    .map_err(failed)?
                    .ok_or(StoreError::RunNotFound(occurrence.run_id.to_string()))
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

    /// Tasks with a scheduled run that has not ended. Runs by hand hold up no schedule.
    pub async fn open_tasks(&self) -> Result<HashSet<TaskName>, StoreError> {
        let doing = "reads open tasks";
        self.readers
            .read(doing, move |connection| {
                let failed = |source| StoreError::sql(doing, source);
                let mut query = connection
                    .prepare_cached(
                        "SELECT DISTINCT task FROM runs WHERE cause = 'schedule' AND state IN
                            ('pending', 'running', 'scheduled', 'paused_awaiting_approval', 'interrupted')",
                    )
                    .map_err(failed)?;
                let tasks = query.query_map([], |row| row.get::<_, String>(0).map(TaskName::new));
                tasks.map_err(failed)?.collect::<Result<_, _>>().map_err(failed)
            })
            .await
    }
}

/// Whether a fenced write met its row.
pub(super) fn held(rows: usize, run: &RunId) -> Result<(), StoreError> {
    if rows == 1 { Ok(()) } else { Err(StoreError::LeaseLost(run.clone())) }
}

fn insert(connection: &Connection, occurrence: &NewOccurrence) -> rusqlite::Result<bool> {
    let tags = serde_json::to_string(&occurrence.tags).expect("tags are plain data");
    let cause = match occurrence.trigger {
        Trigger::Schedule => "schedule",
        Trigger::Manual => "manual",
    };
    let (state, finished) = match occurrence.skip {
        None => ("pending", None),
        Some(_) => ("skipped", Some(instant(occurrence.due))),
    };
    let reason = occurrence.skip.map(|skip| skip.as_str());
    let rows = connection
        .prepare_cached(
            "INSERT INTO runs (run_id, task, due, cause, state, tags, reason, finished_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
             ON CONFLICT (task, due) WHERE cause = 'schedule' DO NOTHING",
        )?
        .execute(params![
            occurrence.run_id.as_str(),
            occurrence.task.as_str(),
            instant(occurrence.due),
            cause,
            state,
            tags,
            reason,
            finished
        ])?;
    if let (1, Some(reason)) = (rows, reason) {
        bump(connection, counters::OUTCOME, reason, 1)?;
    }
    Ok(rows == 1)
}

const CLAIMABLE: &str = "(state = 'pending' OR (state = 'scheduled' AND retry_at <= :now))";

fn claim(connection: &Connection, request: &ClaimRequest) -> rusqlite::Result<Option<ClaimedRun>> {
    let only = request.only.as_ref().map(RunId::as_str);
    let found: Option<String> = connection
        .prepare_cached(&format!(
            "SELECT run_id FROM runs
             WHERE {CLAIMABLE} AND state IN ('pending', 'scheduled') AND (:only IS NULL OR run_id = :only)
             ORDER BY priority DESC, due, run_id LIMIT 1"
        ))?
        .query_row(named_params! { ":now": instant(request.now), ":only": only }, |row| row.get(0))
        .optional()?;
    let Some(run_id) = found else { return Ok(None) };
    connection.execute(
        "UPDATE runs SET state = 'running', token = token + 1, attempts = attempts + 1, retry_at = NULL,
            holder_instance = ?2, holder_pid = ?3, holder_boot = ?4, lease_until = ?5,
            started_at = coalesce(started_at, ?6), finished_at = NULL
         WHERE run_id = ?1",
        params![
            run_id,
            request.holder.instance,
            request.holder.pid,
            request.holder.boot.as_str(),
            instant(request.lease_until),
            instant(request.now)
        ],
    )?;
    let claimed = claimed(connection, RunId::new(run_id))?;
    connection.execute(
        "INSERT INTO attempts (run_id, attempt, started_at) VALUES (?1, ?2, ?3)",
        params![claimed.run_id.as_str(), claimed.attempt, instant(request.now)],
    )?;
    Ok(Some(claimed))
}

fn claimed(connection: &Connection, run_id: RunId) -> rusqlite::Result<ClaimedRun> {
    let mut claimed =
        connection.query_row("SELECT * FROM runs WHERE run_id = ?1", [run_id.as_str()], |row| {
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

/// Counts tokens as ceilings do.
pub(super) fn counted(usage: &crate::run::Usage) -> i64 {
    signed(usage.counted_tokens())
}
