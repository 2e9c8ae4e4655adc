//! What the pages are made from: the store, the bundle's view, the clock and facts about this process.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;
use serde::Serialize;
use tokio::sync::watch;

use super::BundleView;
use crate::clock::Clock;
use crate::store::Store;

/// Everything that the status page needs.
#[derive(Clone, Debug)]
pub struct StatusContext {
    pub store: Store,
    /// Published by whoever loads the bundle.
    pub bundle: watch::Receiver<Arc<BundleView>>,
    pub clock: Clock,
    pub instance: Instance,
    /// Beaten by the scheduler at each tick.
    pub heartbeat: Heartbeat,
    /// Where copies of published files are: `<run>/<attempt>/<n>`.
    pub artifacts: PathBuf,
}

/// Facts about the process that serves the page.
#[derive(Clone, Debug, Serialize)]
pub struct Instance {
    pub pid: u32,
    pub started_at: Timestamp,
    /// `enforced` or `best_effort`.
    pub limits: String,
    /// The seal report of this host, as preflight made it.
    pub seal: Option<serde_json::Value>,
}

impl Instance {
    /// This process, started at `started_at`.
    pub fn new(started_at: Timestamp, limits: String, seal: Option<serde_json::Value>) -> Self {
        Instance { pid: std::process::id(), started_at, limits, seal }
    }
}

/// The instant of the scheduler's last tick. Clones share it.
#[derive(Clone, Debug)]
pub struct Heartbeat {
    /// Milliseconds since 1970; `i64::MIN` before the first tick.
    last: Arc<AtomicI64>,
}

impl Default for Heartbeat {
    fn default() -> Self {
        Heartbeat { last: Arc::new(AtomicI64::new(i64::MIN)) }
    }
}

impl Heartbeat {
    /// The scheduler ticked at `at`.
    pub fn beat(&self, at: Timestamp) {
        self.last.store(at.as_millisecond(), Ordering::Relaxed);
    }

    /// The last tick, if there was one.
    pub fn last(&self) -> Option<Timestamp> {
        match self.last.load(Ordering::Relaxed) {
            i64::MIN => None,
            millis => Timestamp::from_millisecond(millis).ok(),
        }
    }
}
