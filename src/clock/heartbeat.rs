//! When a loop last turned and what it waits for, for those who watch that it still does.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;
use tokio::sync::watch;

/// Shared between the loop and its watchers.
#[derive(Clone, Debug, Default)]
pub struct Heartbeat {
    millis: Arc<AtomicI64>,
    rest: Arc<watch::Sender<Option<Rest>>>,
}

/// What a loop waits for that has done everything it could.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rest {
    /// When it turns by itself.
    pub until: Timestamp,
    /// When there is something to do, as far as it knows.
    pub next: Option<Timestamp>,
    /// Of how many pieces of work it awaits the end.
    pub running: usize,
}

impl Heartbeat {
    /// The loop turned.
    pub fn beat(&self, now: Timestamp) {
        self.millis.store(now.as_millisecond(), Ordering::Relaxed);
    }

    /// When it last turned; `None` before the first time.
    pub fn last(&self) -> Option<Timestamp> {
        match self.millis.load(Ordering::Relaxed) {
            0 => None,
            millis => Timestamp::from_millisecond(millis).ok(),
        }
    }

    /// The loop begins to wait, or (`None`) has something to do.
    pub fn rest(&self, rest: Option<Rest>) {
        self.rest.send_replace(rest);
    }

    /// Follows what the loop waits for; `None` while it is at work.
    pub fn resting(&self) -> watch::Receiver<Option<Rest>> {
        self.rest.subscribe()
    }
}
