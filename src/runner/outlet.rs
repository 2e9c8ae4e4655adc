//! The way out of one attempt: open while its agent works, closed before its work is collected. What
//! passes is written to the attempt's log.

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::Context;
use crate::agent::EventSink;
use crate::bundle::Task;
use crate::egress::{Caps, Gate};

/// Verdicts that may wait for the log before connections do.
const WAITING: usize = 64;

/// An open way out. When it is dropped, connections end at once.
pub struct Outlet {
    gate: Gate,
    /// Ends by itself when the gate no longer writes.
    writing: Option<JoinHandle<()>>,
}

impl Outlet {
    /// The task's way out, if its policy allows anything.
    pub fn open(context: &Context, task: &Task, events: EventSink) -> Option<Self> {
        if !task.network.is_open() {
            return None;
        }
        let (sender, mut verdicts) = mpsc::channel(WAITING);
        let writing = tokio::spawn(async move {
            while let Some(verdict) = verdicts.recv().await {
                if events.record(verdict).await.is_err() {
                    // Nothing is allowed that cannot be recorded.
                    return;
                }
            }
        });
        let policy = task.network.clone();
        let gate = Gate::new(policy, context.dialer.clone(), Caps::default(), sender);
        Some(Outlet { gate, writing: Some(writing) })
    }

    /// What containers and tools go out by.
    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Ends every connection; returns when the last verdict is in the log.
    pub async fn close(mut self) {
        self.gate.close().await;
        if let Some(writing) = self.writing.take() {
            // A panic there loses lines of the log, and the run ends by itself.
            let _ = writing.await;
        }
    }
}

impl Drop for Outlet {
    fn drop(&mut self) {
        self.gate.abandon();
    }
}
