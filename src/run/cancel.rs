//! Ends a run early, and says why.

use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

/// Why a run was ended from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelReason {
    /// Somebody asked for it.
    Operator,
    /// The daemon stops and the grace is over.
    Shutdown,
    /// Another holder may have claimed the run: nothing more may be written.
    LeaseLost,
    /// The log could not be written: the run must not go on unrecorded.
    StoreFailed,
    /// The attempt's wall time is over.
    WallTimeout,
}

/// A cancellation token that carries its reason. The first reason wins.
#[derive(Clone, Debug, Default)]
pub struct Cancel {
    token: CancellationToken,
    reason: Arc<OnceLock<CancelReason>>,
    /// What whoever asked for it said.
    wish: Arc<OnceLock<String>>,
}

impl Cancel {
    /// Cancels, unless it is cancelled already.
    pub fn cancel(&self, reason: CancelReason) {
        // A second reason is dropped: the first one ended the run.
        let _ = self.reason.set(reason);
        self.token.cancel();
    }

    /// Cancels because somebody asked for it, and keeps what they said.
    pub fn ask(&self, wish: String) {
        // A second wish is dropped, as a second reason is.
        let _ = self.wish.set(wish);
        self.cancel(CancelReason::Operator);
    }

    /// What whoever asked for the cancellation said.
    pub fn wish(&self) -> Option<&str> {
        self.wish.get().map(String::as_str)
    }

    /// The reason, once cancelled.
    pub fn reason(&self) -> Option<CancelReason> {
        self.token.is_cancelled().then(|| self.reason.get().copied()).flatten()
    }

    /// The token to wait for or to hand on.
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// Waits for the cancellation and returns its reason.
    pub async fn cancelled(&self) -> CancelReason {
        self.token.cancelled().await;
        self.reason.get().copied().unwrap_or(CancelReason::Operator)
    }
}
