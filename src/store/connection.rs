//! Opens connections: one for the writer, others that can only read.

use std::io;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::{StoreError, schema};

/// Statements that a connection keeps prepared: all that a run needs.
const STATEMENTS: usize = 64;

/// How long a connection waits for another process's lock.
const BUSY: Duration = Duration::from_secs(10);

/// Makes the file for its owner alone, opens it for writing and migrates it.
pub(super) fn writer(path: &Path) -> Result<Connection, StoreError> {
    make_private(path).map_err(|error| StoreError::Open {
        path: path.display().to_string(),
        message: error.to_string(),
    })?;
    let failed = |error| open_error(path, error);
    let mut connection = Connection::open(path).map_err(failed)?;
    connection.busy_timeout(BUSY).map_err(failed)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.pragma_update(None, "journal_mode", "WAL").map_err(failed)?;
    connection.pragma_update(None, "foreign_keys", true).map_err(failed)?;
    connection.pragma_update(None, "synchronous", "FULL").map_err(failed)?;
    schema::migrate(&mut connection, &path.display().to_string()).map_err(|error| match error {
        StoreError::Sql { source, .. } => open_error(path, source),
        other => other,
    })?;
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

fn make_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
    if let Some(parent) = path.parent() {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
    }
    std::fs::OpenOptions::new().create(true).append(true).mode(0o600).open(path).map(drop)
}

fn open_error(path: &Path, error: rusqlite::Error) -> StoreError {
    let path = path.display().to_string();
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            StoreError::Corrupt { path, message: error.to_string() }
        }
        _ => StoreError::Open { path, message: error.to_string() },
    }
}
