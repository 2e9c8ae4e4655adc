//! What a failure of SQLite says about the store's file: damage, a full disk, no permission. Told
//! apart by SQLite's codes, never by its texts.

use std::path::Path;

use rusqlite::ErrorCode;

use super::StoreError;

impl StoreError {
    /// The failure with the file's name, where it is the file that failed.
    pub(super) fn at(self, path: &Path) -> Self {
        match self {
            StoreError::Sql { doing, source } => {
                of_file(path, &source).unwrap_or(StoreError::Sql { doing, source })
            }
            other => other,
        }
    }

    /// The same failure, for another one that it met.
    pub(super) fn again(&self) -> Self {
        match self {
            StoreError::Corrupt { path, message } => {
                StoreError::Corrupt { path: path.clone(), message: message.clone() }
            }
            StoreError::Full { path, message } => {
                StoreError::Full { path: path.clone(), message: message.clone() }
            }
            StoreError::ReadOnly { path, message } => {
                StoreError::ReadOnly { path: path.clone(), message: message.clone() }
            }
            StoreError::Failed(message) => StoreError::Failed(message.clone()),
            other => StoreError::Failed(other.to_string()),
        }
    }

    /// Whether the file is damaged: no further try will help.
    pub fn is_damage(&self) -> bool {
        matches!(self, StoreError::Corrupt { .. })
    }
}

/// A transaction that did not begin or did not commit.
pub(super) fn of_transaction(path: &Path, failure: &rusqlite::Error) -> StoreError {
    of_file(path, failure).unwrap_or_else(|| StoreError::Failed(failure.to_string()))
}

/// What is wrong with the file, if it is the file.
pub(super) fn of_file(path: &Path, failure: &rusqlite::Error) -> Option<StoreError> {
    /// A write that the kernel refused for another reason than space: a file-size limit, a bad disk.
    const IOERR_WRITE: i32 = rusqlite::ffi::SQLITE_IOERR_WRITE;
    const IOERR_SHMSIZE: i32 = rusqlite::ffi::SQLITE_IOERR_SHMSIZE;
    let (path, message) = (path.display().to_string(), failure.to_string());
    let sqlite = failure.sqlite_error()?;
    match (sqlite.code, sqlite.extended_code) {
        (ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase, _) => {
            Some(StoreError::Corrupt { path, message })
        }
        (ErrorCode::DiskFull, _) | (_, IOERR_WRITE | IOERR_SHMSIZE) => {
            Some(StoreError::Full { path, message })
        }
        (ErrorCode::ReadOnly, _) => Some(StoreError::ReadOnly { path, message }),
        _ => None,
    }
}
