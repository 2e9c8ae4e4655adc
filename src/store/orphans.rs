//! Runs that say they are running.

use rusqlite::{Connection, Row};

use super::columns::{get_instant, get_small};
use super::{Holder, OpenRun, Store, StoreError};
use crate::run::{
    AttemptNo, BootId, CommitId, Counters, Event, EventKind, FencingToken, NanoUsd, RunId,
    TaskName, Usage,
};

impl Store {
    /// Runs that say they are running.
    pub async fn open_runs(&self) -> Result<Vec<OpenRun>, StoreError> {
        let doing = "reads open runs";
        self.readers
            .read(doing, move |connection| {
                open_runs(connection).map_err(|source| StoreError::sql(doing, source))
            })
            .await
    }

    /// Spent by an attempt as far as its events tell; an unanswered paid call counts as its estimate.
    /// The log may be long: asked of orphans alone.
    pub async fn spent(&self, run: RunId, attempt: AttemptNo) -> Result<Usage, StoreError> {
        let doing = "reads what an attempt spent";
        self.readers
            .read(doing, move |connection| {
                spent(connection, &run, attempt).map_err(|source| StoreError::sql(doing, source))
            })
            .await
    }
}

fn open_runs(connection: &Connection) -> rusqlite::Result<Vec<OpenRun>> {
    let mut query = connection.prepare_cached(
        "SELECT runs.*, attempts.repo, attempts.worktree, attempts.branch AS attempt_branch,
            attempts.base_commit, attempts.container
         FROM runs JOIN attempts ON attempts.run_id = runs.run_id AND attempts.attempt = runs.attempts
         WHERE state = 'running'
            AND state IN ('pending', 'running', 'scheduled', 'paused_awaiting_approval', 'interrupted')
         ORDER BY runs.run_id",
    )?;
    let rows = query.query_map([], open_run)?;
    rows.collect()
}

fn open_run(row: &Row<'_>) -> rusqlite::Result<OpenRun> {
    Ok(OpenRun {
        run_id: RunId::new(row.get::<_, String>("run_id")?),
        task: TaskName::new(row.get::<_, String>("task")?),
        attempt: get_small(row, "attempts")?,
        token: FencingToken(row.get("token")?),
        holder: Holder {
            instance: row.get("holder_instance")?,
            pid: get_small(row, "holder_pid")?,
            boot: BootId::new(row.get::<_, String>("holder_boot")?),
        },
        lease_until: get_instant(row, "lease_until")?,
        counters: Counters {
            retries: get_small(row, "retries")?,
            connector_retries: get_small(row, "connector_retries")?,
            interruptions: get_small(row, "interruptions")?,
        },
        repo: row.get("repo")?,
        worktree: row.get("worktree")?,
        branch: row.get("attempt_branch")?,
        base_commit: row.get("base_commit")?,
        container: row.get("container")?,
        bundle_commit: row.get::<_, Option<String>>("bundle_commit")?.map(CommitId::new),
        cancel_requested: row.get("cancel_requested")?,
    })
}

/// What the attempt's log says that it spent. A request without an answer may have been paid for: its
/// estimate counts.
fn spent(connection: &Connection, run: &RunId, attempt: AttemptNo) -> rusqlite::Result<Usage> {
    let mut query = connection.prepare_cached(
        "SELECT body FROM events WHERE run_id = ?1 AND attempt = ?2 ORDER BY seq",
    )?;
    let mut rows = query.query(rusqlite::params![run.as_str(), attempt])?;
    let mut usage = Usage::default();
    let mut unanswered: Option<(u64, NanoUsd)> = None;
    while let Some(row) = rows.next()? {
        let event: Event = super::columns::get_json(row, "body")?;
        match event.kind {
            EventKind::ModelRequested { estimated_tokens, estimated_cost, .. }
            | EventKind::AuxRequested { estimated_tokens, estimated_cost, .. } => {
                unanswered = Some((estimated_tokens, estimated_cost));
            }
            EventKind::ModelAnswered { usage: answered, .. }
            | EventKind::AuxAnswered { usage: answered, .. } => {
                unanswered = None;
                usage += answered;
            }
            EventKind::ModelFailed { .. } => unanswered = None,
            _ => {}
        }
    }
    if let Some((input_tokens, cost_nano_usd)) = unanswered {
        usage += Usage { input_tokens, cost_nano_usd, estimated: true, ..Usage::default() };
    }
    Ok(usage)
}
