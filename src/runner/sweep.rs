//! Removes the workspaces that no run owns any more: of processes that died before their clean-up
//! was promised.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use tracing::{info, warn};

use super::{Context, Lives, cleanup};
use crate::bundle::Bundle;
use crate::run::RunId;
use crate::worktree::{self, WorktreeState};

/// How old an orphan must be before the daemon removes it by itself: long enough to look at it.
const ORPHAN_AGE: Duration = Duration::from_secs(24 * 3600);

/// Removes orphaned workspaces of every repository that the bundle's tasks use.
pub async fn sweep_worktrees(context: &Context, bundle: &Bundle) {
    match sweep(context, bundle).await {
        Ok(0) => {}
        Ok(removed) => info!(removed, "removed orphaned worktrees"),
        Err(message) => warn!(error = message, "cannot sweep worktrees: tried again in an hour"),
    }
}

/// The workspace of a run of this state directory whose process died before it could record where.
pub async fn workspace_of(context: &Context, bundle: &Bundle, run: &RunId) -> Option<PathBuf> {
    let found = worktree::scan(repositories(context, bundle)).await;
    let found = found
        .inspect_err(|error| warn!(run.id = %run, error = %error, "cannot look for the worktree of a dead attempt"))
        .ok()?;
    let runs = context.config.state.runs();
    let own = found
        .into_iter()
        .find(|found| found.run_id() == run.as_str() && found.belongs_below(&runs))?;
    Some(own.path().to_owned())
}

async fn sweep(context: &Context, bundle: &Bundle) -> Result<usize, String> {
    let found = worktree::scan(repositories(context, bundle))
        .await
        .map_err(|error| super::with_causes(&error))?;
    // Another state directory's runs are its own daemon's business.
    let runs = context.config.state.runs();
    let found: Vec<_> = found.into_iter().filter(|found| found.belongs_below(&runs)).collect();
    if found.is_empty() {
        return Ok(0);
    }
    let now = context.clock.now();
    // Who lives is asked after the scan, so that no newborn run is taken for an orphan.
    let runs = found.iter().map(|found| found.run_id().to_owned()).collect();
    let lives = Lives::ask(&context.store, &context.config.state, runs)
        .await
        .map_err(|error| super::with_causes(&error))?;
    let entries = worktree::list(found, now, &|run| lives.of(run));
    let mut removed = 0;
    for entry in entries {
        let old = Duration::from_secs(entry.age_secs) >= ORPHAN_AGE;
        if entry.state != WorktreeState::Orphan || !old {
            continue;
        }
        match cleanup::remove_workspace(&context.podman, &entry.path).await {
            Ok(_) => removed += 1,
            Err(error) => {
                warn!(path = %entry.path.display(), error = %super::with_causes(&error), "cannot remove an orphaned worktree")
            }
        }
    }
    Ok(removed)
}

/// The repositories that runs used, and those that tasks name.
fn repositories(context: &Context, bundle: &Bundle) -> Vec<PathBuf> {
    let state = &context.config.state;
    let private = worktree::known_repositories(&state.repositories(), &state.runs());
    let named = bundle.tasks.values().filter_map(|task| task.repo.clone());
    let all: BTreeSet<PathBuf> = private.into_iter().chain(named).collect();
    all.into_iter().collect()
}
