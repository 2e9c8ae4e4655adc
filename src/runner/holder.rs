//! Which processes may hold runs, and whether they live. A holder is alive exactly as long as its
//! lock file in `holders/` is locked: the kernel lets go of it however the process ends
//! (`docs/decisions/0009-holder-lock-files.md`).

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::config::StateDir;
use crate::run::BootId;
use crate::store::Holder;

/// This process as a holder. Dropping it removes the lock file.
#[derive(Debug)]
pub struct HolderLock {
    holder: Holder,
    path: PathBuf,
    _locked: File,
}

/// Why this process cannot hold runs.
#[derive(Debug, thiserror::Error)]
pub enum HolderError {
    #[error("cannot read the boot id from {path}")]
    BootId { path: &'static str, source: io::Error },
    #[error("cannot lock {path}")]
    Lock { path: String, source: io::Error },
    #[error("cannot get random bytes: {0}")]
    Random(String),
}

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The kernel's id of this boot.
pub fn boot_id() -> Result<BootId, HolderError> {
    let text = std::fs::read_to_string(BOOT_ID)
        .map_err(|source| HolderError::BootId { path: BOOT_ID, source })?;
    Ok(BootId::new(text.trim()))
}

/// `n` random bytes in hexadecimal.
fn random_hex(n: usize) -> Result<String, HolderError> {
    let mut bytes = vec![0_u8; n];
    getrandom::fill(&mut bytes).map_err(|error| HolderError::Random(error.to_string()))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The lock file of an instance.
fn lock_path(state: &StateDir, instance: &str) -> PathBuf {
    state.holders().join(format!("{instance}.lock"))
}

impl HolderLock {
    /// Makes this process a holder of that state directory.
    pub fn acquire(state: &StateDir) -> Result<Self, HolderError> {
        let holder = Holder { instance: random_hex(8)?, pid: std::process::id(), boot: boot_id()? };
        let path = lock_path(state, &holder.instance);
        let locked = make_locked(&path, &holder)
            .map_err(|source| HolderError::Lock { path: path.display().to_string(), source })?;
        Ok(HolderLock { holder, path, _locked: locked })
    }

    /// The identity under which this process claims.
    pub fn holder(&self) -> &Holder {
        &self.holder
    }
}

impl Drop for HolderLock {
    fn drop(&mut self) {
        // A leftover file is harmless: it is not locked, so its holder counts as dead.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Creates and locks the file under a temporary name and moves it into place, so that nobody sees
/// it unlocked.
fn make_locked(path: &Path, holder: &Holder) -> io::Result<File> {
    let parent = path.parent().expect("a lock file has a parent");
    std::fs::create_dir_all(parent)?;
    let unnamed = path.with_extension("new");
    let mut file = OpenOptions::new().create_new(true).write(true).open(&unnamed)?;
    file.try_lock().map_err(io::Error::from)?;
    writeln!(file, "{}", holder.pid)?;
    std::fs::rename(&unnamed, path)?;
    Ok(file)
}

/// Whether the holder of that instance lives. A lock that cannot be examined counts as alive: to
/// take a run from a living process would run it twice.
pub fn is_alive(state: &StateDir, instance: &str) -> bool {
    let file = match File::open(lock_path(state, instance)) {
        Ok(file) => file,
        Err(error) => return error.kind() != io::ErrorKind::NotFound,
    };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock | TryLockError::Error(_)))
}

/// The processes that live as holders of that state directory.
pub fn holders(state: &StateDir) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir(state.holders()) else { return Vec::new() };
    let pid = |entry: std::fs::DirEntry| {
        let name = entry.file_name();
        let instance = name.to_str()?.strip_suffix(".lock")?;
        if !is_alive(state, instance) {
            return None;
        }
        std::fs::read_to_string(entry.path()).ok()?.trim().parse().ok()
    };
    entries.flatten().filter_map(pid).collect()
}

/// Makes a holder count as dead although its process still is there: it hangs, and everything that it
/// writes is refused.
pub(super) fn declare_dead(state: &StateDir, instance: &str) {
    // A file that is gone says the same.
    let _ = std::fs::remove_file(lock_path(state, instance));
}

/// Removes the lock files of dead holders.
pub fn sweep_dead(state: &StateDir) {
    let Ok(entries) = std::fs::read_dir(state.holders()) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(instance) = name.to_str().and_then(|name| name.strip_suffix(".lock")) else {
            continue;
        };
        if !is_alive(state, instance) {
            // Another process may have removed it first.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holder_is_alive_until_its_lock_is_dropped() {
        let dir = tempfile::tempdir().expect("scratch directory");
        let state = StateDir::new(dir.path());
        let lock = HolderLock::acquire(&state).expect("lock");
        let instance = lock.holder().instance.clone();
        assert!(is_alive(&state, &instance));
        drop(lock);
        assert!(!is_alive(&state, &instance));
    }

    #[test]
    fn lock_file_left_by_a_dead_process_counts_as_dead_and_is_swept() {
        let dir = tempfile::tempdir().expect("scratch directory");
        let state = StateDir::new(dir.path());
        std::fs::create_dir_all(state.holders()).expect("directory");
        std::fs::write(state.holders().join("dead.lock"), "1\n").expect("file");
        assert!(!is_alive(&state, "dead"));
        sweep_dead(&state);
        assert!(!state.holders().join("dead.lock").exists());
    }
}
