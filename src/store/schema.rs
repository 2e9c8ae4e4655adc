//! Brings a database's schema up to date: the files of `migrations/`, in order, each in one
//! transaction with the number that it leaves in `user_version`.

use include_dir::{Dir, include_dir};
use rusqlite::{Connection, TransactionBehavior};

use super::StoreError;
use crate::fault;

static MIGRATIONS: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/migrations");

/// The newest schema that this program knows.
pub(super) fn newest() -> i64 {
    i64::try_from(MIGRATIONS.files().count()).expect("few migrations")
}

/// Applies what is missing. Refuses a schema that is newer than this program.
pub(super) fn migrate(connection: &mut Connection, path: &str) -> Result<(), StoreError> {
    let failed = |source| StoreError::sql("migrates the schema", source);
    let found = version(connection).map_err(failed)?;
    if found > newest() {
        return Err(StoreError::TooNew { path: path.to_owned(), found, known: newest() });
    }
    if found == newest() {
        return Ok(());
    }
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    // Another process may have migrated between the look and the lock.
    let found = version(&transaction).map_err(failed)?;
    let mut files: Vec<_> = MIGRATIONS.files().collect();
    files.sort_by_key(|file| file.path());
    for (number, file) in (1_i64..).zip(files) {
        if number > found {
            let text = file.contents_utf8().expect("migrations are UTF-8");
            transaction.execute_batch(text).map_err(failed)?;
            fault::point("mid_migration");
        }
    }
    transaction.pragma_update(None, "user_version", newest()).map_err(failed)?;
    transaction.commit().map_err(failed)
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}
