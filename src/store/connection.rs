//! Opens connections: one for the writer, others that can only read.

use std::io;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, MAIN_DB, OpenFlags};

use super::{StoreError, fault, schema};

/// Statements that a connection keeps prepared: all that a run needs.
const STATEMENTS: usize = 64;

/// How long a connection waits for another process's lock.
const BUSY: Duration = Duration::from_secs(10);

/// Pages in the write-ahead log from which a commit copies them into the database.
const CHECKPOINT_PAGES: u32 = 1000;
/// Bytes that the write-ahead log keeps once all of it was copied.
const KEPT_WAL_BYTES: u32 = 16 << 20;

/// Makes the file for its owner alone, opens it for writing and migrates it.
pub(super) fn writer(path: &Path) -> Result<Connection, StoreError> {
    make_private(path).map_err(|error| io_error(path, &error))?;
    if was_emptied(path) {
        let message = "the file is empty, and this state directory has held runs".to_owned();
        return Err(StoreError::Corrupt { path: path.display().to_string(), message });
    }
    let failed = |error| open_error(path, error);
    let mut connection = Connection::open(path).map_err(failed)?;
    if connection.is_readonly(MAIN_DB).map_err(failed)? {
        let message = "the file is read-only for this user".to_owned();
        return Err(StoreError::ReadOnly { path: path.display().to_string(), message });
    }
    connection.busy_timeout(BUSY).map_err(failed)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.pragma_update(None, "journal_mode", "WAL").map_err(failed)?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES).map_err(failed)?;
    connection.pragma_update(None, "journal_size_limit", KEPT_WAL_BYTES).map_err(failed)?;
    connection.pragma_update(None, "foreign_keys", true).map_err(failed)?;
    connection.pragma_update(None, "synchronous", "FULL").map_err(failed)?;
    schema::migrate(&mut connection, &path.display().to_string()).map_err(|error| match error {
        StoreError::Sql { source, .. } => open_error(path, source),
        other => other,
    })?;
    Ok(connection)
}

/// A connection apart that copies the write-ahead log into the database. It waits for nobody.
pub(super) fn checkpointer(path: &Path) -> Result<Connection, StoreError> {
    let failed = |error| open_error(path, error);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    connection.busy_timeout(Duration::ZERO).map_err(failed)?;
    connection.pragma_update(None, "journal_size_limit", KEPT_WAL_BYTES).map_err(failed)?;
    Ok(connection)
}

/// Opens the file for reading only.
pub(super) fn reader(path: &Path) -> Result<Connection, StoreError> {
    let failed = |error| open_error(path, error);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    connection.busy_timeout(BUSY).map_err(failed)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.pragma_update(None, "query_only", true).map_err(failed)?;
    Ok(connection)
}

/// Makes the database's directory for its owner alone.
pub(super) fn make_directory(path: &Path) -> Result<(), StoreError> {
    use std::os::unix::fs::DirBuilderExt;
    let Some(parent) = path.parent() else { return Ok(()) };
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(parent);
    made.map_err(|error| io_error(path, &error))
}

/// Whether an empty file stands where a store was: SQLite would take it for a new one, and all history
/// would be gone without a word. Only with a store there are backups, directories of runs and
/// artifacts.
fn was_emptied(path: &Path) -> bool {
    let size = |path: &Path| path.metadata().map_or(0, |meta| meta.len());
    if size(path) > 0 || size(&path.with_extension("db-wal")) > 0 {
        return false;
    }
    let Some(state) = path.parent() else { return false };
    ["backups", "runs", "artifacts"]
        .iter()
        .any(|name| state.join(name).read_dir().is_ok_and(|mut all| all.next().is_some()))
}

/// An existing file is left closed: closing it would drop the locks that another connection of this
/// process has on it (<https://sqlite.org/howtocorrupt.html>, 2.2).
fn make_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let made = std::fs::OpenOptions::new().create_new(true).write(true).mode(0o600).open(path);
    match made {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// A failure of the file system about the store's file.
pub(super) fn io_error(path: &Path, error: &io::Error) -> StoreError {
    let (path, message) = (path.display().to_string(), error.to_string());
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::FileTooLarge => {
            StoreError::Full { path, message }
        }
        _ => StoreError::Open { path, message },
    }
}

/// Why the file cannot be used at all.
pub(super) fn open_error(path: &Path, error: rusqlite::Error) -> StoreError {
    fault::of_file(path, &error).unwrap_or_else(|| StoreError::Open {
        path: path.display().to_string(),
        message: error.to_string(),
    })
}
