//! When a loop last turned, for those who watch that it still does.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;

/// Shared between the loop and its watchers.
#[derive(Clone, Debug, Default)]
pub struct Heartbeat {
    millis: Arc<AtomicI64>,
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
}
