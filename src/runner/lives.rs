//! Which runs live, as the keeper of workspaces asks it.

use std::collections::HashMap;

use super::holder;
use crate::config::StateDir;
use crate::run::{RunId, RunState};
use crate::store::{Store, StoreError};
use crate::worktree::RunLife;

/// The lives of some runs. A run that is not known is lost.
#[derive(Debug, Default)]
pub struct Lives(HashMap<String, RunLife>);

impl Lives {
    /// Asks about these runs now. Ask after the workspaces were found, so that no newborn run is taken
    /// for an orphan.
    pub async fn ask(
        store: &Store,
        state: &StateDir,
        runs: Vec<String>,
    ) -> Result<Self, StoreError> {
        let boot = holder::boot_id().ok();
        let mut lives = HashMap::new();
        for run in runs {
            let life = match store.run(RunId::new(run.clone())).await {
                Ok(row) => life_of(row.state),
                Err(StoreError::RunNotFound(_)) => RunLife::Lost,
                Err(error) => return Err(error),
            };
            lives.insert(run, life);
        }
        for open in store.open_runs().await? {
            let same_boot = boot.as_ref() == Some(&open.holder.boot);
            let alive = same_boot && holder::is_alive(state, &open.holder.instance);
            let life = if alive { RunLife::Live } else { RunLife::Lost };
            lives.insert(open.run_id.to_string(), life);
        }
        Ok(Lives(lives))
    }

    /// The life of one run.
    pub fn of(&self, run: &str) -> RunLife {
        self.0.get(run).copied().unwrap_or(RunLife::Lost)
    }
}

fn life_of(state: RunState) -> RunLife {
    match state {
        // The run goes on in it once somebody has decided.
        RunState::PausedAwaitingApproval => RunLife::Live,
        // Held by nobody: what the open runs say afterwards wins.
        RunState::Running | RunState::Interrupted => RunLife::Lost,
        RunState::Pending
        | RunState::Scheduled
        | RunState::Success
        | RunState::Error
        | RunState::DeadLettered
        | RunState::Cancelled
        | RunState::Skipped => RunLife::Ended,
    }
}
