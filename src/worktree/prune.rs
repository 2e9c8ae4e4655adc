//! Removes the workspaces that nobody needs.

use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use super::remove::{self, Removed};
use super::{WorktreeEntry, WorktreeState};

/// Whether anything is really removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PruneMode {
    Remove,
    /// Only tells what would be removed.
    DryRun,
}

/// Which workspaces go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PruneRequest {
    pub older_than: Duration,
    pub now: Timestamp,
    pub mode: PruneMode,
}

/// What became of one workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Pruned {
    #[serde(flatten)]
    pub entry: WorktreeEntry,
    /// The branch that stays because it holds work.
    pub branch_kept: Option<String>,
    /// Why it is still there.
    pub error: Option<String>,
}

/// Those that no live run owns and that are old enough.
pub(super) fn due(entries: Vec<WorktreeEntry>, older_than: Duration) -> Vec<WorktreeEntry> {
    let old = |entry: &WorktreeEntry| Duration::from_secs(entry.age_secs) >= older_than;
    let free = |entry: &WorktreeEntry| entry.state != WorktreeState::Live;
    entries.into_iter().filter(|entry| free(entry) && old(entry)).collect()
}

/// Removes each of them; one that cannot be removed does not stop the others.
pub(super) fn prune(due: Vec<WorktreeEntry>, mode: PruneMode) -> Vec<Pruned> {
    due.into_iter().map(|entry| prune_one(entry, mode)).collect()
}

fn prune_one(entry: WorktreeEntry, mode: PruneMode) -> Pruned {
    let mut pruned = Pruned { entry, branch_kept: None, error: None };
    if mode == PruneMode::DryRun {
        return pruned;
    }
    match remove::remove(&pruned.entry.path) {
        Ok(Removed::WithoutBranch) => {}
        Ok(Removed::BranchKept(branch)) => pruned.branch_kept = Some(branch),
        Err(error) => {
            let source = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
            pruned.error = Some(format!("{error}{}", source.unwrap_or_default()));
        }
    }
    pruned
}
