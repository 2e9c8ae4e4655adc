//! Removes what is too old to keep: runs, in transactions so small that no writer waits for long, and
//! then the copies of their published files. A process that dies between the two leaves copies
//! without a run; those are found by their age.

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use tracing::{info, warn};

use super::Context;
use crate::run::RunId;
use crate::store::{Expired, RetentionCursor, RetentionRule, StoreError};

/// Runs that are looked at, and directories that are asked for, at once.
const PAGE: u32 = 200;
/// Rows of logs in one transaction, unless one run alone has more.
const MOST_EVENTS: u64 = 2_000;
/// Runs in one transaction.
const MOST_RUNS: usize = 50;
/// Runs that one pass deletes; the next pass goes on.
const MOST_IN_A_PASS: usize = 20_000;

/// One pass over everything that is kept.
pub(super) async fn retain(context: &Context) -> Result<(), StoreError> {
    let Some(age) = context.config.retention else { return Ok(()) };
    let now = context.clock.now();
    let Ok(before) = now.checked_sub(age) else { return Ok(()) };
    let rule = RetentionRule { before, keep_runs: context.config.retention_keep_runs };
    let runs = delete_runs(context, rule).await?;
    let leftovers = sweep_artifacts(context, SystemTime::from(now), age).await?;
    if runs + leftovers > 0 {
        info!(runs, leftovers, "removed what was older than its retention");
    }
    Ok(())
}

async fn delete_runs(context: &Context, rule: RetentionRule) -> Result<usize, StoreError> {
    let mut deleted = 0;
    let mut cursor = RetentionCursor::default();
    while deleted < MOST_IN_A_PASS {
        let (found, next) = context.store.expired_runs(rule, cursor, PAGE).await?;
        if found.is_empty() {
            break;
        }
        cursor = next;
        for batch in batches(found.into_iter().filter(|run| !is_in_use(run))) {
            let gone = context.store.delete_expired(rule, batch).await?;
            deleted += gone.len();
            remove_all(gone.iter().map(|run| of_run(context, run)).collect()).await;
        }
    }
    Ok(deleted)
}

/// A worktree that was kept, for a person or because its work was not collected, keeps its run.
fn is_in_use(run: &Expired) -> bool {
    run.worktrees.iter().any(|path| std::fs::symlink_metadata(path).is_ok())
}

/// Runs that are deleted in one transaction each.
fn batches(runs: impl Iterator<Item = Expired>) -> Vec<Vec<RunId>> {
    let mut batches: Vec<Vec<RunId>> = Vec::new();
    let mut events = 0;
    for run in runs {
        let room = batches.last().is_some_and(|batch| batch.len() < MOST_RUNS);
        events += run.events;
        match batches.last_mut() {
            Some(batch) if room && events <= MOST_EVENTS => batch.push(run.run_id),
            _ => {
                events = run.events;
                batches.push(vec![run.run_id]);
            }
        }
    }
    batches
}

fn of_run(context: &Context, run: &RunId) -> PathBuf {
    context.config.state.artifacts().join(run.as_str())
}

/// Removes the copies of runs that no store knows and that are older than the retention: younger ones
/// may belong to a store that a backup replaced.
async fn sweep_artifacts(
    context: &Context,
    now: SystemTime,
    age: Duration,
) -> Result<usize, StoreError> {
    let dir = context.config.state.artifacts();
    let listed = tokio::task::spawn_blocking(move || old_directories(&dir, now, age)).await;
    let old = listed.unwrap_or_default();
    let mut removed = 0;
    for page in old.chunks(PAGE as usize) {
        let known = context.store.known_runs(page.to_vec()).await?;
        let known: HashSet<RunId> = known.into_iter().collect();
        let unknown: Vec<PathBuf> = page
            .iter()
            .filter(|run| !known.contains(*run))
            .map(|run| of_run(context, run))
            .collect();
        removed += unknown.len();
        remove_all(unknown).await;
    }
    Ok(removed)
}

fn old_directories(dir: &std::path::Path, now: SystemTime, age: Duration) -> Vec<RunId> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let is_old = |entry: &std::fs::DirEntry| {
        let made = entry.metadata().and_then(|metadata| metadata.modified());
        made.is_ok_and(|made| now.duration_since(made).is_ok_and(|passed| passed > age))
    };
    let name = |entry: std::fs::DirEntry| entry.file_name().to_str().map(RunId::new);
    entries.flatten().filter(is_old).filter_map(name).collect()
}

async fn remove_all(dirs: Vec<PathBuf>) {
    let remove = move || {
        for dir in dirs {
            match std::fs::remove_dir_all(&dir) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    warn!(path = %dir.display(), error = %error, "cannot remove artifacts of a run that is gone: tried again once they are old enough");
                }
                _ => {}
            }
        }
    };
    // Joined at once: it ends by itself, and a panic in it lost nothing but this try.
    let _ = tokio::task::spawn_blocking(remove).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_bounded_by_runs_and_by_rows_of_logs() {
        let run = |number: u32, events| Expired {
            run_id: RunId::new(format!("r{number}")),
            finished_at: jiff::Timestamp::UNIX_EPOCH,
            events,
            worktrees: Vec::new(),
        };
        let sizes = |runs: Vec<Expired>| -> Vec<usize> {
            batches(runs.into_iter()).iter().map(Vec::len).collect()
        };
        assert_eq!(sizes((0..120).map(|number| run(number, 3)).collect()), [50, 50, 20]);
        assert_eq!(
            sizes([1500, 400, 200, 9000, 1, 1].into_iter().map(|events| run(0, events)).collect()),
            [2, 1, 1, 2]
        );
        assert_eq!(sizes(Vec::new()), Vec::<usize>::new());
    }
}
