//! One task, once, by hand, without a daemon: the same path as `fleet serve` from the claim on.

use std::sync::Arc;

use tracing::warn;

use super::attached::Attached;
use super::execute::{Execution, execute};
use super::holder::HolderError;
use super::wake::Wake;
use super::{Context, cleanup, courier, occurrence};
use crate::bundle::{Bundle, Task};
use crate::run::{Cancel, RunId, RunState};
use crate::store::{ClaimedRun, RunRow, StoreError};

/// A task that runs in the foreground.
pub struct TaskRun {
    context: Arc<Context>,
    bundle: Arc<Bundle>,
    run: RunId,
    cancel: Cancel,
    claimed: Option<ClaimedRun>,
}

/// Why it could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum TaskRunError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Holder(#[from] HolderError),
}

impl TaskRun {
    /// Records the occurrence and claims it in one transaction, so that no daemon on the same state
    /// directory takes it.
    pub async fn begin(
        context: Arc<Context>,
        bundle: Arc<Bundle>,
        task: &Task,
        cancel: Cancel,
    ) -> Result<Self, TaskRunError> {
        let run = context.new_run_id()?;
        let occurrence = occurrence::by_hand(task, run.clone(), context.clock.now());
        let mut begun = TaskRun { context, bundle, run, cancel, claimed: None };
        let claim = begun.context.claim(Some(begun.run.clone()));
        begun.claimed = Some(begun.context.store.insert_and_claim(occurrence, claim).await?);
        Ok(begun)
    }

    /// The run's id.
    pub fn run_id(&self) -> &RunId {
        &self.run
    }

    /// Carries the run out, retries included, to its terminal state.
    pub async fn carry_out(mut self) -> Result<RunRow, TaskRunError> {
        loop {
            if let Some(claimed) = self.claimed.take() {
                let execution = Execution {
                    context: self.context.clone(),
                    bundle: self.bundle.clone(),
                    claimed,
                    cancel: self.cancel.clone(),
                };
                let _wishes = Attached(tokio::spawn(pass_on_wishes(
                    self.context.clone(),
                    self.run.clone(),
                    self.cancel.clone(),
                )));
                execute(execution).await?;
            }
            let row = self.context.store.run(self.run.clone()).await?;
            if row.state.is_terminal() || self.cancel.reason().is_some() {
                cleanup::run_due(&self.context).await?;
                courier::send_or_wake(&self.context, &self.bundle).await;
                return Ok(row);
            }
            self.wait(&row).await;
            self.claimed =
                self.context.store.claim_next(self.context.claim(Some(self.run.clone()))).await?;
        }
    }

    /// Until the retry is due. A daemon may claim it first: then its end is awaited.
    async fn wait(&self, row: &RunRow) {
        let soon = self.context.clock.now() + std::time::Duration::from_secs(1);
        let until = match (row.state, row.retry_at) {
            (RunState::Scheduled, Some(at)) => at.max(self.context.clock.now()),
            _ => soon,
        };
        tokio::select! {
            () = self.context.clock.sleep_until(until) => {}
            _ = self.cancel.cancelled() => {}
        }
    }
}

/// Ends the run when somebody wants it to.
async fn pass_on_wishes(context: Arc<Context>, run: RunId, cancel: Cancel) {
    let mut wake = match Wake::watch(&context.config.state) {
        Ok(wake) => wake,
        Err(error) => {
            warn!(error = %error, "cannot watch the wake file: the run cannot be cancelled from elsewhere");
            return;
        }
    };
    loop {
        match context.store.cancel_requests().await {
            Ok(wishes) => {
                if let Some((_, wish)) = wishes.into_iter().find(|(wanted, _)| *wanted == run) {
                    return cancel.ask(wish);
                }
            }
            Err(error) => warn!(error = %error, "cannot read wishes to cancel"),
        }
        wake.touched().await;
    }
}
