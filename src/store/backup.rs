//! Copies of the store, taken while it is written to. A copy gets its name only when it was opened
//! and found whole; whatever fails before leaves no file behind. Refuses to overwrite.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rusqlite::backup::{Backup as Copying, StepResult};
use rusqlite::{Connection, OpenFlags};

use super::lock::{StoreLock, beside};
use super::{StoreError, columns, connection, fault, schema};

/// A copy of the store that was opened and found whole.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Backup {
    pub path: PathBuf,
    pub bytes: u64,
    pub runs: u64,
    /// What was due until then is in it.
    pub last_tick: Option<Timestamp>,
}

/// Copies the store at `database` to `to`, for its owner alone.
///
/// # Errors
/// There is a file at `to`, the disk is full, or the store is damaged. Nothing is left behind then.
pub fn backup(database: &Path, to: &Path) -> Result<Backup, StoreError> {
    if to.symlink_metadata().is_ok() {
        return Err(exists(to));
    }
    let _open = StoreLock::shared(database)?;
    let part = Part::begin(to).map_err(|error| not_written(to, error))?;
    let copy = part.copy_of(database)?;
    let (runs, last_tick) = check(&copy, &part.path)?;
    drop(copy);
    let bytes = part.finish(to).map_err(|error| not_written(to, error))?;
    Ok(Backup { path: to.to_owned(), bytes, runs, last_tick })
}

/// Removes what killed backups left in a directory. What is being written stays.
pub fn sweep_parts(dir: &Path) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_part = name.to_str().is_some_and(|name| name.ends_with(".db.part"));
        let abandoned = || File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok());
        if is_part && abandoned() {
            // Tried again by the next backup.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

fn exists(to: &Path) -> StoreError {
    StoreError::Exists { path: to.display().to_string() }
}

/// A failure of the file system is about the copy, not about the store.
fn not_written(to: &Path, error: StoreError) -> StoreError {
    match error {
        StoreError::Open { message, .. } => {
            StoreError::NotWritten { path: to.display().to_string(), message }
        }
        other => other,
    }
}

/// A copy that is not whole yet. Removed when it is dropped before its end.
pub(super) struct Part {
    pub path: PathBuf,
    /// Locked as long as somebody writes it: what a killed process left is written anew.
    locked: File,
}

impl Part {
    /// Begins a copy beside the place where it will be.
    pub(super) fn begin(to: &Path) -> Result<Self, StoreError> {
        let path = beside(to, ".part");
        let failed = |error: io::Error| connection::io_error(&path, &error);
        let locked = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        locked.try_lock().map_err(|error| failed(error.into()))?;
        // From here on it is ours to remove.
        let part = Part { path, locked };
        part.locked.set_len(0).map_err(|error| connection::io_error(&part.path, &error))?;
        Ok(part)
    }

    /// Copies a database into it, and opens the copy. The copy is one file: it has no log beside it.
    pub(super) fn copy_of(&self, database: &Path) -> Result<Connection, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let from = Connection::open_with_flags(database, flags)
            .or_else(|_| Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY))
            .map_err(|error| connection::open_error(database, error))?;
        let of_copy = |error| connection::open_error(&self.path, error);
        let mut copy = Connection::open_with_flags(&self.path, flags).map_err(of_copy)?;
        copy_pages(&from, &mut copy).map_err(|error| match fault::of_file(&self.path, &error) {
            // Reading fails for damage, writing for want of space.
            Some(full @ StoreError::Full { .. }) => full,
            _ => connection::open_error(database, error),
        })?;
        copy.pragma_update(None, "journal_mode", "DELETE").map_err(of_copy)?;
        copy.pragma_update(None, "synchronous", "FULL").map_err(of_copy)?;
        Ok(copy)
    }

    /// Makes the copy survive a power cut.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.locked.sync_all()
    }

    /// Gives the whole copy its name, unless there is a file of that name. Returns its size.
    pub(super) fn finish(self, to: &Path) -> Result<u64, StoreError> {
        let failed = |error: io::Error| connection::io_error(to, &error);
        self.sync().map_err(failed)?;
        let bytes = self.locked.metadata().map_err(failed)?.len();
        std::fs::hard_link(&self.path, to).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => exists(to),
            _ => failed(error),
        })?;
        drop(self);
        sync_directory(to).map_err(failed)?;
        Ok(bytes)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // A leftover is written anew by the next copy to the same place.
        let _ = std::fs::remove_file(&self.path);
        let _ = std::fs::remove_file(beside(&self.path, "-journal"));
    }
}

/// All pages in one step: a snapshot that writers in other connections do not have to wait for.
fn copy_pages(from: &Connection, to: &mut Connection) -> rusqlite::Result<()> {
    /// How often a lock of another process is waited out.
    const PATIENCE: u32 = 100;
    let copying = Copying::new(from, to)?;
    for _ in 0..PATIENCE {
        match copying.step(-1)? {
            StepResult::Done => return Ok(()),
            _ => std::thread::sleep(std::time::Duration::from_millis(100)),
        }
    }
    let busy = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY);
    Err(rusqlite::Error::SqliteFailure(busy, None))
}

/// Makes a new name in a directory survive a power cut.
pub(super) fn sync_directory(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all())
}

/// Whether a database is whole and fleet's. Returns the number of its runs and its last tick.
pub(super) fn check(
    connection: &Connection,
    path: &Path,
) -> Result<(u64, Option<Timestamp>), StoreError> {
    let failed = |error| connection::open_error(path, error);
    let named = || path.display().to_string();
    let found: i64 =
        connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(failed)?;
    if found < 1 {
        return Err(StoreError::NotAStore {
            path: named(),
            message: "it has no schema".to_owned(),
        });
    }
    if found > schema::newest() {
        return Err(StoreError::TooNew { path: named(), found, known: schema::newest() });
    }
    let sound: String =
        connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0)).map_err(failed)?;
    if sound != "ok" {
        return Err(StoreError::Corrupt { path: named(), message: sound });
    }
    let mut dangling = connection.prepare("PRAGMA foreign_key_check").map_err(failed)?;
    if dangling.exists([]).map_err(failed)? {
        let message = "a row belongs to a run that is not there".to_owned();
        return Err(StoreError::Corrupt { path: named(), message });
    }
    let count = |row: &rusqlite::Row<'_>| columns::get_unsigned(row, "runs");
    let runs = connection.query_row("SELECT count(*) AS runs FROM runs", [], count);
    let tick = connection.query_row("SELECT last_tick FROM scheduler", [], |row| {
        columns::get_instant_opt(row, "last_tick")
    });
    Ok((runs.map_err(failed)?, tick.map_err(failed)?))
}
