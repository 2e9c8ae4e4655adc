//! What is removed after an attempt's end. Promised in the terminal transaction, done after it, and
//! kept in the outbox until it is done: a crash between the two leaves nothing behind for good.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tracing::{debug, warn};

use super::Context;
use super::collect::Work;
use crate::bundle::Task;
use crate::fault;
use crate::run::{RunId, RunState};
use crate::sandbox::Podman;
use crate::store::StoreError;
use crate::worktree::{self, Checkout, Removed, WorktreeError};

/// One clean-up job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cleanup {
    pub run: String,
    pub attempt: u32,
    /// Removed with its overlay, and its branch when that has no commits.
    pub worktree: PathBuf,
    /// Not before this instant (`worktree_config.cleanup_delay_seconds`).
    pub not_before: Timestamp,
    /// Kept for inspection or because its work was not collected: only the container goes.
    pub keep_worktree: bool,
}

impl Cleanup {
    /// The job for an attempt that ended in `state`. A workspace whose work was not collected is
    /// kept whatever the task says; one that will be tried again goes at once.
    pub fn of(
        checkout: &Checkout,
        task: Option<&Task>,
        state: RunState,
        work: &Work,
        now: Timestamp,
    ) -> Self {
        let config = task.map(|task| &task.worktree);
        let retries = state == RunState::Scheduled;
        let keep =
            work.lost.is_some() || (!retries && config.is_some_and(|config| !config.auto_cleanup));
        let delay =
            config.filter(|_| !retries).map(|config| config.cleanup_delay).unwrap_or_default();
        Cleanup {
            run: checkout.run_id.clone(),
            attempt: checkout.attempt,
            worktree: checkout.path.clone(),
            not_before: now.saturating_add(delay).unwrap_or(Timestamp::MAX),
            keep_worktree: keep,
        }
    }

    /// As it is stored.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::to_value(self).expect("a cleanup is plain data")
    }
}

/// Does every job whose time has come, of runs that have ended; returns when the next one is due.
/// The jobs of a run that will be tried again belong to whoever executes it ([`of_run`]), so that no
/// job meets the workspace of a newer attempt. A job that fails stays.
pub async fn run_due(context: &Context) -> Result<Option<Timestamp>, StoreError> {
    let now = context.clock.now();
    let mut next: Option<Timestamp> = None;
    for (id, job) in jobs(context).await? {
        let run = context.store.run(RunId::new(job.run.clone())).await?;
        if !run.state.is_terminal() {
            continue;
        }
        if job.not_before > now {
            next = Some(next.map_or(job.not_before, |next| next.min(job.not_before)));
        } else if run.attempts > job.attempt {
            context.store.cleanup_done(id).await?;
        } else {
            settle(context, id, &job).await?;
        }
    }
    Ok(next)
}

/// Does every job of one run that this process executes, whether its time has come or not.
pub async fn of_run(context: &Context, run: &RunId) -> Result<(), StoreError> {
    for (id, job) in jobs(context).await? {
        if job.run == run.as_str() {
            settle(context, id, &job).await?;
        }
    }
    Ok(())
}

async fn jobs(context: &Context) -> Result<Vec<(i64, Cleanup)>, StoreError> {
    let mut jobs = Vec::new();
    for (id, job) in context.store.pending_cleanup().await? {
        match serde_json::from_value(job) {
            Ok(job) => jobs.push((id, job)),
            Err(error) => {
                warn!(outbox.id = id, error = %error, "a clean-up job cannot be read and is dropped");
                context.store.cleanup_done(id).await?;
            }
        }
    }
    Ok(jobs)
}

async fn settle(context: &Context, id: i64, job: &Cleanup) -> Result<(), StoreError> {
    fault::point("before_cleanup_job");
    match carry_out(context, job).await {
        Ok(()) => {
            fault::point("after_cleanup_job");
            context.store.cleanup_done(id).await
        }
        Err(message) => {
            warn!(run.id = job.run, error = message, "clean-up failed and will be tried again");
            Ok(())
        }
    }
}

async fn carry_out(context: &Context, job: &Cleanup) -> Result<(), String> {
    context.podman.remove_run(&job.run).await.map_err(|error| error.to_string())?;
    fault::point("mid_cleanup");
    if job.keep_worktree {
        return Ok(());
    }
    match remove_workspace(&context.podman, &job.worktree).await {
        Ok(removed) => {
            // The run's directory goes when its last attempt's is gone; else it is not empty.
            let _ = std::fs::remove_dir(context.config.state.runs().join(&job.run));
            debug!(run.id = job.run, ?removed, "removed the worktree");
            Ok(())
        }
        Err(WorktreeError::NotOurs(_)) => {
            debug!(run.id = job.run, "the worktree is gone already");
            Ok(())
        }
        Err(error) => Err(super::with_causes(&error)),
    }
}

/// Removes a workspace with its overlay. Overlayfs leaves files of subordinate ids behind when an
/// agent removed something of the lower layer: those go through the user namespace first.
pub async fn remove_workspace(podman: &Podman, path: &Path) -> Result<Removed, WorktreeError> {
    let failure = match worktree::remove(path.to_owned()).await {
        Err(failure @ WorktreeError::Io { .. }) => failure,
        done => return done,
    };
    let Ok(checkout) = Checkout::reopen(path.to_owned()).await else { return Err(failure) };
    for part in ["work", "upper"] {
        if let Err(error) = podman.remove_tree(&checkout.run_dir.join(part)).await {
            warn!(error = %error, "cannot remove an overlay through the user namespace");
            return Err(failure);
        }
    }
    worktree::remove(path.to_owned()).await
}
