//! What the daemon tidies beside its work: promised clean-up, and hourly the orphans. One round at a
//! time, in a task of its own, so that nothing due waits for it.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::task::JoinHandle;
use tracing::warn;

use super::{Context, cleanup, recover, sweep};
use crate::bundle::Bundle;

/// How often orphans are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(3600);

/// The rounds of tidying.
pub(super) struct Housekeeping {
    round: Option<JoinHandle<Option<Timestamp>>>,
    next_cleanup: Option<Timestamp>,
    next_sweep: Timestamp,
    /// Something ended while a round was under way: another one follows.
    again: bool,
}

impl Housekeeping {
    /// Nothing is under way; the first round sweeps.
    pub(super) fn new(now: Timestamp) -> Self {
        Housekeeping { round: None, next_cleanup: None, next_sweep: now, again: false }
    }

    /// Begins a round, or asks for another one after the one that is under way.
    pub(super) fn start(&mut self, context: &Arc<Context>, bundle: &Arc<Bundle>) {
        if self.round.is_some() {
            self.again = true;
            return;
        }
        let now = context.clock.now();
        let sweeps = now >= self.next_sweep;
        if sweeps {
            self.next_sweep = now + SWEEP_EVERY;
        }
        let (context, bundle) = (context.clone(), bundle.clone());
        self.round = Some(tokio::spawn(async move {
            if sweeps {
                recover::sweep_containers(&context).await;
                sweep::sweep_worktrees(&context, &bundle).await;
            }
            tidy(&context).await
        }));
    }

    /// Returns when the round under way ends and another one was asked for; else never.
    pub(super) async fn done(&mut self) {
        if let Some(round) = &mut self.round {
            let next = round.await;
            self.round = None;
            self.next_cleanup = next.unwrap_or(None);
        }
        if !std::mem::take(&mut self.again) {
            std::future::pending::<()>().await;
        }
    }

    /// When the next round has something to do.
    pub(super) fn next(&self) -> Option<Timestamp> {
        [self.next_cleanup, Some(self.next_sweep)].into_iter().flatten().min()
    }

    /// Waits for the round under way and tidies what is left.
    pub(super) async fn finish(&mut self, context: &Context) {
        if let Some(round) = self.round.take() {
            // Its failures were told; a round that panicked is made up for now.
            let _ = round.await;
        }
        tidy(context).await;
    }
}

async fn tidy(context: &Context) -> Option<Timestamp> {
    match cleanup::run_due(context).await {
        Ok(next) => next,
        Err(failure) => {
            warn!(error = %failure, "the store failed during clean-up: tried again");
            None
        }
    }
}
