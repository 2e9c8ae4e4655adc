//! Notices that another process changed something in the store: it touches the state directory's
//! wake file. Without inotify the daemon still wakes for what is due.

use notify::{EventKind, RecursiveMode, Watcher};
use tokio::sync::mpsc;
use tracing::warn;

use crate::config::StateDir;

/// Yields once for any number of touches since the last time.
pub struct Wake {
    touched: mpsc::Receiver<()>,
    watcher: Option<notify::RecommendedWatcher>,
}

impl Wake {
    /// Watches the wake file, and makes it when it is missing.
    pub fn watch(state: &StateDir) -> std::io::Result<Self> {
        let path = state.wake_file();
        std::fs::OpenOptions::new().create(true).append(true).open(&path)?;
        let (touch, touched) = mpsc::channel(1);
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            let read_only =
                matches!(&event, Ok(event) if matches!(event.kind, EventKind::Access(_)));
            if !read_only {
                // A full channel holds a wake-up that was not taken yet: one is enough.
                let _ = touch.try_send(());
            }
        })
        .and_then(|mut watcher| {
            watcher.watch(&path, RecursiveMode::NonRecursive).map(|()| watcher)
        });
        let watcher = watcher
            .inspect_err(|error| warn!(error = %error, "cannot watch the wake file: triggers from other processes start late"))
            .ok();
        Ok(Wake { touched, watcher })
    }

    /// Whether touches are noticed at all.
    pub fn is_watching(&self) -> bool {
        self.watcher.is_some()
    }

    /// Waits for a touch.
    pub async fn touched(&mut self) {
        if self.touched.recv().await.is_none() {
            // No watcher: there will never be a touch.
            std::future::pending::<()>().await;
        }
    }
}
