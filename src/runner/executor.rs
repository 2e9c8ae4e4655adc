//! Who carries out claimed runs: the sandbox, or a double of it where the scheduler itself is measured
//! and tested over simulated months.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::execute::{Execution, execute, is_disabled};
use super::finish::{Ending, finish};
use crate::run::{Outcome, RunState, SkipReason};
use crate::store::StoreError;

/// Says how a run ends, without any container, worktree or model.
pub type Double = Arc<dyn Fn(&Execution) -> BoxFuture<'static, Outcome> + Send + Sync>;

/// Who carries out claimed runs.
#[derive(Clone)]
pub enum Executor {
    /// Model-written code runs in the sandbox, and nowhere else.
    Sandbox,
    /// Nothing is run.
    Double(Double),
}

impl Executor {
    /// Carries out a run's next attempt to its terminal transaction. Returns the state in which it
    /// left the run.
    pub async fn carry_out(self, execution: Execution) -> Result<RunState, StoreError> {
        let Executor::Double(double) = self else { return execute(execution).await };
        let task = execution.bundle.tasks.get(&execution.claimed.task).cloned();
        let ending = if is_disabled(task.as_deref(), &execution.claimed) {
            Ending::skipped(SkipReason::SkippedDisabledByReload)
        } else {
            Ending::bare(double(&execution).await)
        };
        finish(&execution.context, task.as_deref(), &execution.claimed, None, ending).await
    }

    /// Whether there may be containers and worktrees to tidy.
    pub(super) fn leaves_something(&self) -> bool {
        matches!(self, Executor::Sandbox)
    }
}
