//! The run's log of connections: a line when one is judged, before anything passes, one when it
//! ends. Beyond a number of them only sums are kept.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;

use super::refusal::Refusal;
use crate::run::EventKind;

/// Connections of an attempt that have lines of their own.
pub(super) const MAX_LOGGED: u32 = 200;

/// Who asks for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Via {
    Sandbox,
    WebFetch,
}

impl Via {
    fn as_str(self) -> &'static str {
        match self {
            Via::Sandbox => "sandbox",
            Via::WebFetch => "web_fetch",
        }
    }
}

/// The log.
pub(super) struct Verdicts {
    sender: Mutex<Option<mpsc::Sender<EventKind>>>,
    counts: Mutex<Counts>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    logged: u32,
    allowed: u64,
    denied: u64,
    sent_bytes: u64,
    received_bytes: u64,
}

/// A connection that was judged.
pub(super) struct Judged {
    via: Via,
    target: String,
    /// It has lines of its own.
    is_logged: bool,
}

impl Verdicts {
    pub fn new(sender: mpsc::Sender<EventKind>) -> Self {
        Verdicts { sender: Mutex::new(Some(sender)), counts: Mutex::default() }
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sender(&self) -> MutexGuard<'_, Option<mpsc::Sender<EventKind>>> {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a verdict. What cannot be recorded is not allowed.
    pub async fn judged(
        &self,
        via: Via,
        target: String,
        verdict: Result<(), &Refusal>,
    ) -> Result<Judged, Refusal> {
        let is_logged = {
            let mut counts = self.counts();
            let fits = counts.logged < MAX_LOGGED;
            counts.logged += u32::from(fits);
            match verdict {
                _ if fits => {}
                Ok(()) => counts.allowed += 1,
                Err(_) => counts.denied += 1,
            }
            fits
        };
        if is_logged {
            self.send(EventKind::EgressJudged {
                via: via.as_str().to_owned(),
                target: target.clone(),
                allowed: verdict.is_ok(),
                reason: verdict.err().map(ToString::to_string),
            })
            .await?;
        }
        Ok(Judged { via, target, is_logged })
    }

    /// Records the end of a connection that was allowed.
    pub async fn ended(
        &self,
        judged: Judged,
        (sent_bytes, received_bytes): (u64, u64),
        duration_ms: u64,
        end: Option<&Refusal>,
    ) {
        if !judged.is_logged {
            let mut counts = self.counts();
            counts.sent_bytes += sent_bytes;
            counts.received_bytes += received_bytes;
            return;
        }
        let ended = EventKind::EgressEnded {
            via: judged.via.as_str().to_owned(),
            target: judged.target,
            sent_bytes,
            received_bytes,
            duration_ms,
            reason: end.map(ToString::to_string),
        };
        // A closed log ends the run by itself.
        let _ = self.send(ended).await;
    }

    async fn send(&self, event: EventKind) -> Result<(), Refusal> {
        let sender = self.sender().clone().ok_or(Refusal::Over)?;
        sender.send(event).await.map_err(|_| Refusal::Over)
    }

    /// Records the sums and closes the log.
    pub async fn finish(&self) {
        let Counts { allowed, denied, sent_bytes, received_bytes, .. } = *self.counts();
        if allowed + denied > 0 {
            let sum = EventKind::EgressSummed { allowed, denied, sent_bytes, received_bytes };
            let _ = self.send(sum).await;
        }
        self.close();
    }

    /// Closes the log; nothing is allowed any more.
    pub fn close(&self) {
        *self.sender() = None;
    }
}
