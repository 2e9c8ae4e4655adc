//! Who has the store open. Every open store holds `fleet.db-lock` shared; whoever replaces the file
//! holds it alone, so that nobody goes on writing into a file that was replaced.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::StoreError;

/// Held for as long as the store is open.
#[derive(Debug)]
pub(super) struct StoreLock {
    _locked: File,
}

impl StoreLock {
    /// Beside others that have it open.
    pub(super) fn shared(database: &Path) -> Result<Self, StoreError> {
        let file = open(database)?;
        match file.try_lock_shared() {
            Ok(()) => Ok(StoreLock { _locked: file }),
            Err(TryLockError::WouldBlock) => Err(in_use(database, &file)),
            Err(TryLockError::Error(error)) => Err(open_error(database, &error)),
        }
    }

    /// Alone, or not at all.
    pub(super) fn alone(database: &Path) -> Result<Self, StoreError> {
        let file = open(database)?;
        match file.try_lock() {
            Ok(()) => Ok(StoreLock { _locked: file }),
            Err(TryLockError::WouldBlock) => Err(in_use(database, &file)),
            Err(TryLockError::Error(error)) => Err(open_error(database, &error)),
        }
    }
}

/// A path beside the database.
pub(super) fn beside(database: &Path, suffix: &str) -> PathBuf {
    let mut name = database.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    database.with_file_name(name)
}

fn open(database: &Path) -> Result<File, StoreError> {
    let path = beside(database, "-lock");
    let made = OpenOptions::new().create(true).append(true).mode(0o600).open(&path);
    // Whoever may not write can still wait its turn: the database itself says what it refuses.
    made.or_else(|error| File::open(&path).map_err(|_| error))
        .map_err(|error| open_error(database, &error))
}

fn open_error(database: &Path, error: &io::Error) -> StoreError {
    let (path, message) = (database.display().to_string(), error.to_string());
    let refused =
        matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem);
    match error.kind() {
        io::ErrorKind::StorageFull => StoreError::Full { path, message },
        _ if refused && database.exists() => StoreError::ReadOnly { path, message },
        _ => StoreError::Open { path, message },
    }
}

fn in_use(database: &Path, file: &File) -> StoreError {
    let inode = file.metadata().map(|metadata| metadata.ino()).unwrap_or_default();
    let locks = std::fs::read_to_string("/proc/locks").unwrap_or_default();
    StoreError::InUse { path: database.display().to_string(), pids: holders(&locks, inode) }
}

/// The processes that hold a lock of that inode, from the text of `/proc/locks`.
fn holders(locks: &str, inode: u64) -> Vec<u32> {
    let wanted = format!(":{inode}");
    let pid = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        // A line with `->` waits for the lock.
        let holds = words.get(1) == Some(&"FLOCK") && words.get(5)?.ends_with(&wanted);
        holds.then(|| words.get(4)?.parse().ok()).flatten()
    };
    let mut pids: Vec<u32> = locks.lines().filter_map(pid).collect();
    pids.sort_unstable();
    pids.dedup();
    pids
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holders_of_one_file_are_read_from_the_kernel_s_list() {
        let locks = "1: FLOCK  ADVISORY  READ 812 fe:00:77 0 EOF\n\
                     1: -> FLOCK  ADVISORY  WRITE 900 fe:00:77 0 EOF\n\
                     2: POSIX  ADVISORY  READ 813 fe:00:77 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 814 fe:00:177 0 EOF\n\
                     4: FLOCK  ADVISORY  READ 811 fe:00:77 0 EOF\n";
        assert_eq!(holders(locks, 77), [811, 812]);
    }

    #[test]
    fn an_open_store_is_not_replaced_and_a_store_that_is_replaced_is_not_opened() {
        let dir = tempfile::tempdir().expect("scratch directory");
        let database = dir.path().join("fleet.db");
        let one = StoreLock::shared(&database).expect("opens");
        let two = StoreLock::shared(&database).expect("opens beside it");
        let refusal = StoreLock::alone(&database).expect_err("refused").to_string();
        assert!(refusal.ends_with(&format!("in use by pid {}", std::process::id())), "{refusal}");
        drop((one, two));
        let alone = StoreLock::alone(&database).expect("alone");
        assert!(matches!(StoreLock::shared(&database), Err(StoreError::InUse { .. })));
        drop(alone);
        StoreLock::shared(&database).expect("opens again");
    }
}
