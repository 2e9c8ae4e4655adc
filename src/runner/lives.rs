//! Which runs live, as the keeper of workspaces asks it.

use std::collections::{HashMap, HashSet};

use super::holder;
use crate::config::StateDir;
use crate::store::{Store, StoreError};
use crate::worktree::RunLife;

/// The open runs of living holders, and the runs that are known at all.
pub struct Lives {
    open: HashMap<String, bool>,
    ended: HashSet<String>,
}

impl Lives {
    /// Asks about these runs now.
    pub async fn ask(store: &Store, state: &StateDir, runs: &[String]) -> Result<Self, StoreError> {
        let boot = holder::boot_id().ok();
        let mut open = HashMap::new();
        for run in store.open_runs().await? {
            let same_boot = boot.as_ref() == Some(&run.holder.boot);
            let alive = same_boot && holder::is_alive(state, &run.holder.instance);
            open.insert(run.run_id.as_str().to_owned(), alive);
        }
        let mut ended = HashSet::new();
        for run in runs {
            match store.find_run(run.clone()).await {
                Ok(found) => {
                    if store.run(found).await?.state.is_terminal() {
                        ended.insert(run.clone());
                    }
                }
                Err(StoreError::RunNotFound(_) | StoreError::AmbiguousRun(..)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Lives { open, ended })
    }

    /// The life of one run.
    pub fn of(&self, run: &str) -> RunLife {
        match self.open.get(run) {
            Some(true) => RunLife::Live,
            Some(false) => RunLife::Lost,
            None if self.ended.contains(run) => RunLife::Ended,
            None => RunLife::Lost,
        }
    }
}
