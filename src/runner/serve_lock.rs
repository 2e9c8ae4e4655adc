//! One `fleet serve` for a state directory, and what it says of itself.

use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::config::StateDir;

/// A running daemon, as it wrote itself into its lock file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonInfo {
    pub pid: u32,
    /// The host's name.
    #[serde(default)]
    pub host: String,
    pub since: Timestamp,
    /// The status page's URL; empty until it listens.
    pub page: String,
    /// The bundle repository.
    pub bundle: PathBuf,
}

/// Held by the daemon for as long as it lives.
#[derive(Debug)]
pub struct ServeLock {
    locked: File,
    path: PathBuf,
}

/// A program that a killed daemon was just starting has the lock until it runs.
const DEAD_WAIT: Duration = Duration::from_millis(50);
/// How often a lock is looked at whose daemon is dead.
const DEAD_LOOKS: u32 = 40;

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
        let mut looks = 0;
        loop {
            let file = OpenOptions::new()
                .create(true)
                .truncate(false)
                .read(true)
                .write(true)
                .open(&path)
                .map_err(io_error)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock)
                    if looks < DEAD_LOOKS && read(state).as_ref().is_some_and(is_dead) =>
                {
                    looks += 1;
                    std::thread::sleep(DEAD_WAIT);
                    continue;
                }
                Err(TryLockError::WouldBlock) => return Err(held(state)),
                Err(TryLockError::Error(source)) => return Err(io_error(source)),
            }
            // A standby may have put another file in its place meanwhile.
            if is_at(&file, &path) {
                let mut lock = ServeLock { locked: file, path };
                lock.describe(daemon)?;
                return Ok(lock);
            }
        }
    }

    /// Puts a new lock file in the place of one that a hanging daemon holds.
    pub fn replace(state: &StateDir, daemon: &DaemonInfo) -> Result<Self, ServeLockError> {
        let path = state.serve_lock();
        let io_error = |source| ServeLockError::Io { path: path.display().to_string(), source };
        let unnamed = path.with_extension("new");
        let locked = File::create(&unnamed).map_err(io_error)?;
        locked.try_lock().map_err(io::Error::from).map_err(io_error)?;
        std::fs::rename(&unnamed, &path).map_err(io_error)?;
        let mut lock = ServeLock { locked, path };
        lock.describe(daemon)?;
        Ok(lock)
    }

    /// Writes what the daemon says of itself.
    pub fn describe(&mut self, daemon: &DaemonInfo) -> Result<(), ServeLockError> {
        let text = serde_json::to_string(daemon).expect("a daemon's facts are plain data");
        let written = self
            .locked
            .set_len(0)
            .and_then(|()| self.locked.rewind())
            .and_then(|()| writeln!(self.locked, "{text}"));
        written
            .map_err(|source| ServeLockError::Io { path: self.path.display().to_string(), source })
    }

    /// The daemon that lives on that state directory, or that lived there last.
    pub fn last_holder(state: &StateDir) -> Option<DaemonInfo> {
        read(state)
    }

    /// The daemon that lives on that state directory.
    pub fn holder(state: &StateDir) -> Option<DaemonInfo> {
        let file = File::open(state.serve_lock()).ok()?;
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => read(state).filter(|daemon| !is_dead(daemon)),
            Ok(()) | Err(TryLockError::Error(_)) => None,
        }
    }
}

/// Whether the daemon that the lock names is gone from this host.
fn is_dead(daemon: &DaemonInfo) -> bool {
    daemon.host == host_name() && !Path::new(&format!("/proc/{}", daemon.pid)).exists()
}

/// This host's name.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

fn held(state: &StateDir) -> ServeLockError {
    let holder =
        read(state).map_or_else(|| "it just started".to_owned(), |holder| holder.to_string());
    ServeLockError::Held { state: state.root().display().to_string(), holder }
}

/// Whether the path still names that open file.
fn is_at(file: &File, path: &Path) -> bool {
    let same =
        |file: Metadata, named: Metadata| (file.dev(), file.ino()) == (named.dev(), named.ino());
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(file), Ok(named)) => same(file, named),
        _ => false,
    }
}

fn read(state: &StateDir) -> Option<DaemonInfo> {
    let text = std::fs::read_to_string(state.serve_lock()).ok()?;
    serde_json::from_str(&text).ok()
}

impl std::fmt::Display for DaemonInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let since = self.since.strftime("%Y-%m-%d %H:%M:%SZ");
        write!(f, "pid {} on host {} since {since}", self.pid, self.host)?;
        if !self.page.is_empty() {
            write!(f, ", {}", self.page)?;
        }
        write!(f, ", bundle {}", self.bundle.display())
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
            host: "h".to_owned(),
            since: "2026-01-02T03:04:05Z".parse().expect("timestamp"),
            page: "http://127.0.0.1:8707/".to_owned(),
            bundle: PathBuf::from("/b"),
        };
        let first = ServeLock::acquire(&state, &daemon).expect("first daemon");
        assert_eq!(ServeLock::holder(&state), Some(daemon.clone()));
        let refusal = ServeLock::acquire(&state, &daemon).expect_err("second daemon").to_string();
        let told = "pid 7 on host h since 2026-01-02 03:04:05Z, http://127.0.0.1:8707/, bundle /b";
        assert!(refusal.ends_with(told), "{refusal}");
        drop(first);
        assert_eq!(ServeLock::holder(&state), None);
    }
}
