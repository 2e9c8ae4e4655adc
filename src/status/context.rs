//! What the pages are made from: the store, the bundle's view, the clock and facts about this process.

use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;
use tokio::sync::watch;

use super::BundleView;
use crate::clock::{Clock, Heartbeat};
use crate::run::Alarms;
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
    /// Raised by the daemon.
    pub alarms: Alarms,
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
