//! One `fleet serve` for a state directory.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};

use crate::config::StateDir;

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
    /// Takes the lock, or says who has it. `page` is where the holder's status page is.
    pub fn acquire(
        state: &StateDir,
        started: jiff::Timestamp,
        page: &str,
    ) -> Result<Self, ServeLockError> {
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
                let mut holder = String::new();
                file.read_to_string(&mut holder).map_err(io_error)?;
                return Err(ServeLockError::Held {
                    state: state.root().display().to_string(),
                    holder: holder.trim().to_owned(),
                });
            }
            Err(TryLockError::Error(source)) => return Err(io_error(source)),
        }
        file.set_len(0).map_err(io_error)?;
        file.rewind().map_err(io_error)?;
        writeln!(file, "pid {} since {started}, {page}", std::process::id()).map_err(io_error)?;
        Ok(ServeLock { _locked: file })
    }

    /// Whether a daemon lives on that state directory.
    pub fn is_held(state: &StateDir) -> bool {
        File::open(state.serve_lock())
            .is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_daemon_is_told_who_holds_the_lock() {
        let dir = tempfile::tempdir().expect("scratch directory");
        let state = StateDir::new(dir.path());
        let since = "2026-01-02T03:04:05Z".parse().expect("timestamp");
        let first = ServeLock::acquire(&state, since, "http://127.0.0.1:1/").expect("first daemon");
        assert!(ServeLock::is_held(&state));
        let refusal = ServeLock::acquire(&state, since, "http://127.0.0.1:1/")
            .expect_err("second daemon")
            .to_string();
        assert!(
            refusal.contains(&format!(
                "pid {} since 2026-01-02T03:04:05Z, http://127.0.0.1:1/",
                std::process::id()
            )),
            "{refusal}"
        );
        drop(first);
        assert!(!ServeLock::is_held(&state));
    }
}
