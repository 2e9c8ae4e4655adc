//! One `fleet serve` for a state directory, and what it says of itself.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Seek, Write};
use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::config::StateDir;

/// A running daemon, as it wrote itself into its lock file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonInfo {
    pub pid: u32,
    pub since: Timestamp,
    /// The status page's URL.
    pub page: String,
    /// The bundle repository.
    pub bundle: PathBuf,
}

/// Held by the daemon for as long as it lives.
#[derive(Debug)]
pub struct ServeLock {
    _locked: File,
}

/// Why there cannot be a daemon here.
#[derive(Debug, thiserror::Error)]
pub enum ServeLockError {
    #[error("another `fleet serve` runs on the state directory {state}: {holder}")]
    Held { state: String, holder: String },
    #[error("cannot lock {path}")]
    Io { path: String, source: io::Error },
}

impl ServeLock {
    /// Takes the lock, or says who has it.
    pub fn acquire(state: &StateDir, daemon: &DaemonInfo) -> Result<Self, ServeLockError> {
        let path = state.serve_lock();
        let io_error = |source| ServeLockError::Io { path: path.display().to_string(), source };
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&path)
            .map_err(io_error)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let holder = read(state)
                    .map_or_else(|| "it just started".to_owned(), |holder| holder.to_string());
                return Err(ServeLockError::Held {
                    state: state.root().display().to_string(),
                    holder,
                });
            }
            Err(TryLockError::Error(source)) => return Err(io_error(source)),
        }
        file.set_len(0).map_err(io_error)?;
        file.rewind().map_err(io_error)?;
        let text = serde_json::to_string(daemon).expect("a daemon's facts are plain data");
        writeln!(file, "{text}").map_err(io_error)?;
        Ok(ServeLock { _locked: file })
    }

    /// The daemon that lives on that state directory.
    pub fn holder(state: &StateDir) -> Option<DaemonInfo> {
        let file = File::open(state.serve_lock()).ok()?;
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => read(state),
            Ok(()) | Err(TryLockError::Error(_)) => None,
        }
    }
}

fn read(state: &StateDir) -> Option<DaemonInfo> {
    let text = std::fs::read_to_string(state.serve_lock()).ok()?;
    serde_json::from_str(&text).ok()
}

impl std::fmt::Display for DaemonInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let since = self.since.strftime("%Y-%m-%d %H:%M:%SZ");
        write!(f, "pid {} since {since}, {}, bundle {}", self.pid, self.page, self.bundle.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_daemon_is_told_who_holds_the_lock() {
        let dir = tempfile::tempdir().expect("scratch directory");
        let state = StateDir::new(dir.path());
        let daemon = DaemonInfo {
            pid: 7,
            since: "2026-01-02T03:04:05Z".parse().expect("timestamp"),
            page: "http://127.0.0.1:8707/".to_owned(),
            bundle: PathBuf::from("/b"),
        };
        let first = ServeLock::acquire(&state, &daemon).expect("first daemon");
        assert_eq!(ServeLock::holder(&state), Some(daemon.clone()));
        let refusal = ServeLock::acquire(&state, &daemon).expect_err("second daemon").to_string();
        let told = "pid 7 since 2026-01-02 03:04:05Z, http://127.0.0.1:8707/, bundle /b";
        assert!(refusal.ends_with(told), "{refusal}");
        drop(first);
        assert_eq!(ServeLock::holder(&state), None);
    }
}
