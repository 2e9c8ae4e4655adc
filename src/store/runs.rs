//! Queries about runs.

use rusqlite::{Connection, OptionalExtension, Row, named_params, params};

use super::columns::{
    get_instant, get_instant_opt, get_json_opt, get_small, get_state, get_unsigned, get_usage,
    instant,
};
use super::{
    ArtifactRow, AttemptRow, RunDetail, RunFilter, RunRow, Store, StoreError, TaskStats, events,
};
use crate::run::{NanoUsd, RunId, RunState, TaskName};

const DOING: &str = "reads runs";
/// Rows in a list when nobody says.
const PAGE: u32 = 50;
/// Runs in a task's history.
const STRIP: u32 = 30;

impl Store {
    /// Resolves an id or an unambiguous beginning of one.
    pub async fn find_run(&self, id: String) -> Result<RunId, StoreError> {
        self.readers.read(DOING, move |connection| resolve(connection, &id)).await
    }

    /// Lists runs, the newest due first.
    pub async fn runs(&self, filter: RunFilter) -> Result<Vec<RunRow>, StoreError> {
        self.readers.read(DOING, move |connection| list(connection, &filter).map_err(failed)).await
    }

    /// One run without its events.
    pub async fn run(&self, run: RunId) -> Result<RunRow, StoreError> {
        self.readers.read(DOING, move |connection| one(connection, &run)).await
    }

    /// One run whole.
    pub async fn run_detail(&self, run: RunId) -> Result<RunDetail, StoreError> {
        self.readers
            .read(DOING, move |connection| {
                let row = one(connection, &run)?;
                detail(connection, row).map_err(failed)
            })
            .await
    }

    /// History of each task that has any, by name.
    pub async fn task_stats(&self) -> Result<Vec<TaskStats>, StoreError> {
        self.readers.read(DOING, move |connection| stats(connection).map_err(failed)).await
    }
}

fn failed(source: rusqlite::Error) -> StoreError {
    StoreError::sql(DOING, source)
}

/// The run that an id, or the beginning of one, names.
pub(super) fn resolve(connection: &Connection, id: &str) -> Result<RunId, StoreError> {
    let plain = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !plain {
        return Err(StoreError::RunNotFound(id.to_owned()));
    }
    let last = format!("{id}\u{10ffff}");
    let mut query = connection
        .prepare_cached(
            "SELECT run_id FROM runs WHERE run_id >= ?1 AND run_id < ?2 ORDER BY run_id LIMIT 100",
        )
        .map_err(failed)?;
    let found = query.query_map([id, &last], |row| row.get::<_, String>(0)).map_err(failed)?;
    let found: Vec<String> = found.collect::<Result<_, _>>().map_err(failed)?;
    match found.as_slice() {
        [] => Err(StoreError::RunNotFound(id.to_owned())),
        [one] => Ok(RunId::new(one)),
        many if many[0] == id => Ok(RunId::new(id)),
        many => Err(StoreError::AmbiguousRun(id.to_owned(), many.len() as u64)),
    }
}

fn list(connection: &Connection, filter: &RunFilter) -> rusqlite::Result<Vec<RunRow>> {
    let mut query = connection.prepare_cached(
        "SELECT * FROM runs
         WHERE (:task IS NULL OR task = :task) AND (:state IS NULL OR state = :state)
            AND (:since IS NULL OR due >= :since)
         ORDER BY due DESC, run_id DESC LIMIT :limit OFFSET :offset",
    )?;
    let rows = query.query_map(
        named_params! {
            ":task": filter.task.as_ref().map(TaskName::as_str),
            ":state": filter.state.map(RunState::as_str),
            ":since": filter.since.map(instant),
            ":limit": if filter.limit == 0 { PAGE } else { filter.limit },
            ":offset": filter.offset,
        },
        run_row,
    )?;
    rows.collect()
}

fn one(connection: &Connection, run: &RunId) -> Result<RunRow, StoreError> {
    connection
        .prepare_cached("SELECT * FROM runs WHERE run_id = ?1")
        .and_then(|mut query| query.query_row([run.as_str()], run_row).optional())
        .map_err(failed)?
        .ok_or_else(|| StoreError::RunNotFound(run.to_string()))
}

fn run_row(row: &Row<'_>) -> rusqlite::Result<RunRow> {
    let usage = get_usage(row)?;
    Ok(RunRow {
        run_id: RunId::new(row.get::<_, String>("run_id")?),
        task: TaskName::new(row.get::<_, String>("task")?),
        due: get_instant(row, "due")?,
        state: get_state(row, "state")?,
        outcome: row.get("outcome")?,
        reason: row.get("reason")?,
        attempts: get_small(row, "attempts")?,
        cost_usd: usage.cost_nano_usd.as_usd(),
        tokens: usage.counted_tokens(),
        started_at: get_instant_opt(row, "started_at")?,
        finished_at: get_instant_opt(row, "finished_at")?,
        branch: row.get("branch")?,
        commit: row.get("commit_id")?,
        bundle_commit: row.get("bundle_commit")?,
        trigger: row.get("cause")?,
        limits: row.get("limits")?,
        retry_at: get_instant_opt(row, "retry_at")?,
    })
}

fn detail(connection: &Connection, run: RunRow) -> rusqlite::Result<RunDetail> {
    let id = run.run_id.clone();
    let attempt_list = attempts(connection, &id)?;
    let artifacts = artifacts(connection, &id)?;
    let events = events::after(connection, &id, 0, u32::MAX)?;
    connection.query_row("SELECT * FROM runs WHERE run_id = ?1", [id.as_str()], |row| {
        Ok(RunDetail {
            answer: row.get("answer")?,
            output: get_json_opt(row, "output")?,
            attempt_list,
            usage: get_usage(row)?,
            artifacts,
            diff_stat: row.get("diff_stat")?,
            seal: get_json_opt(row, "seal")?,
            events,
            run,
        })
    })
}

fn attempts(connection: &Connection, run: &RunId) -> rusqlite::Result<Vec<AttemptRow>> {
    let mut query =
        connection.prepare_cached("SELECT * FROM attempts WHERE run_id = ?1 ORDER BY attempt")?;
    let rows = query.query_map([run.as_str()], |row| {
        Ok(AttemptRow {
            attempt: get_small(row, "attempt")?,
            started_at: get_instant(row, "started_at")?,
            finished_at: get_instant_opt(row, "finished_at")?,
            outcome: row.get("outcome")?,
            reason: row.get("reason")?,
            model: row.get("model")?,
            repo: row.get("repo")?,
            worktree: row.get("worktree")?,
            branch: row.get("branch")?,
            base_commit: row.get("base_commit")?,
            container: row.get("container")?,
            usage: get_usage(row)?,
        })
    })?;
    rows.collect()
}

fn artifacts(connection: &Connection, run: &RunId) -> rusqlite::Result<Vec<ArtifactRow>> {
    let mut query =
        connection.prepare_cached("SELECT * FROM artifacts WHERE run_id = ?1 ORDER BY number")?;
    let rows = query.query_map(params![run.as_str()], |row| {
        Ok(ArtifactRow {
            number: get_small(row, "number")?,
            attempt: get_small(row, "attempt")?,
            name: row.get("name")?,
            path: row.get("path")?,
            description: row.get("description")?,
            size: get_unsigned(row, "size")?,
            sha256: row.get("sha256")?,
        })
    })?;
    rows.collect()
}

fn stats(connection: &Connection) -> rusqlite::Result<Vec<TaskStats>> {
    let mut query = connection.prepare_cached(
        // Walks the index from task to task instead of reading every run.
        "WITH RECURSIVE names (task) AS (
            SELECT min(task) FROM runs
            UNION ALL
            SELECT (SELECT min(task) FROM runs WHERE task > names.task) FROM names WHERE task IS NOT NULL
         )
         SELECT names.task AS task, coalesce(cost, 0) AS cost, coalesce(tokens, 0) AS tokens, last_success
         FROM names LEFT JOIN task_totals USING (task) WHERE names.task IS NOT NULL",
    )?;
    let rows = query.query_map([], |row| {
        let task = TaskName::new(row.get::<_, String>("task")?);
        Ok(TaskStats {
            last: list(
                connection,
                &RunFilter { task: Some(task.clone()), limit: STRIP, ..RunFilter::default() },
            )?,
            task,
            cost_usd: NanoUsd(get_unsigned(row, "cost")?).as_usd(),
            tokens: get_unsigned(row, "tokens")?,
            last_success: get_instant_opt(row, "last_success")?,
        })
    })?;
    rows.collect()
}
