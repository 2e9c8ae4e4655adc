//! Persists a run's events: in order, in batches, before they are acknowledged. A failed write ends
//! the run, because a run that cannot be recorded must not go on.

use tokio::sync::mpsc;
use tracing::error;

use crate::agent::LogRequest;
use crate::clock::Clock;
use crate::run::{AttemptNo, Cancel, CancelReason, Event, FencingToken, RunId};
use crate::store::{Store, StoreError};

/// Events that are written in one transaction at most.
const BATCH: usize = 64;

/// Writes the events of one attempt until the channel closes.
pub struct SessionLog {
    pub store: Store,
    pub clock: Clock,
    pub run: RunId,
    pub token: FencingToken,
    pub attempt: AttemptNo,
    pub cancel: Cancel,
}

impl SessionLog {
    /// Takes requests until every sender is gone. After a failed write everything is refused, so
    /// that nobody waits for an acknowledgement that cannot come.
    pub async fn persist(self, mut requests: mpsc::Receiver<LogRequest>) {
        let mut batch = Vec::with_capacity(BATCH);
        while requests.recv_many(&mut batch, BATCH).await > 0 {
            if let Err(failure) = self.write(&mut batch).await {
                let reason = match failure {
                    StoreError::LeaseLost(_) => CancelReason::LeaseLost,
                    _ => CancelReason::StoreFailed,
                };
                error!(run.id = %self.run, attempt = self.attempt, error = %failure, "cannot write the session log: the run ends");
                self.cancel.cancel(reason);
                return;
            }
        }
    }

    async fn write(&self, batch: &mut Vec<LogRequest>) -> Result<(), StoreError> {
        let mut events = Vec::with_capacity(batch.len());
        let mut waiting = Vec::new();
        for request in batch.drain(..) {
            match request {
                LogRequest::Event(kind) => {
                    events.push(Event { at: self.clock.now(), attempt: self.attempt, kind: *kind })
                }
                LogRequest::Flush(answer) => waiting.push(answer),
            }
        }
        if !events.is_empty() {
            self.store.append_events(self.run.clone(), self.token, events).await?;
        }
        for answer in waiting {
            // Whoever asked may be gone: its run was cancelled.
            let _ = answer.send(());
        }
        Ok(())
    }
}
