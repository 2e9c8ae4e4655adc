//! Removes the workspaces that nobody needs.

use std::time::Duration;

use jiff::Timestamp;

use super::layout::Record;
use super::remove::{self, Removed};
use super::{Found, Life, WorktreeEntry, WorktreeState};

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pruned {
    pub entry: WorktreeEntry,
    /// The branch that stays because it holds work.
    pub branch_kept: Option<String>,
    /// Why it is still there.
    pub error: Option<String>,
}

/// A workspace that goes, and the record that it must still have.
pub(super) struct Due {
    entry: WorktreeEntry,
    record: Record,
}

/// Those that no live run owns and that are old enough.
pub(super) fn due(found: Vec<Found>, request: &PruneRequest, life: &Life<'_>) -> Vec<Due> {
    let mut due = Vec::new();
    for found in found {
        let record = found.record.clone();
        let entry = found.entry(request.now, life);
        let old = Duration::from_secs(entry.age_secs) >= request.older_than;
        if old && entry.state != WorktreeState::Live {
            due.push(Due { entry, record });
        }
    }
    due
}

/// Removes each of them; one that cannot be removed does not stop the others.
pub(super) fn prune(due: Vec<Due>, mode: PruneMode) -> Vec<Pruned> {
    due.into_iter().map(|due| prune_one(due, mode)).collect()
}

fn prune_one(due: Due, mode: PruneMode) -> Pruned {
    let mut pruned = Pruned { entry: due.entry, branch_kept: None, error: None };
    if mode == PruneMode::DryRun {
        return pruned;
    }
    match remove::remove(&pruned.entry.path, Some(&due.record)) {
        Ok(Removed::WithoutBranch) => {}
        Ok(Removed::BranchKept(branch)) => pruned.branch_kept = Some(branch),
        Err(error) => {
            let source = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
            pruned.error = Some(format!("{error}{}", source.unwrap_or_default()));
        }
    }
    pruned
}
