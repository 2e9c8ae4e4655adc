//! Tells whether anybody has written to the store, in memory that the processes share: no file is read.
//! A quiet write (a daemon's sign of life) is left out, so that it wakes nobody.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;

use super::{StoreError, connection};

/// Counts the commits that matter, of any process. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Versions(Arc<Mutex<Witness>>);

#[derive(Debug)]
struct Witness {
    /// Never used for anything but `PRAGMA data_version`, which compares within one connection.
    connection: Connection,
    seen: u32,
    told: u64,
}

impl Versions {
    /// Watches the database at `path`, which exists.
    pub(super) fn of(path: &Path) -> Result<Self, StoreError> {
        let connection = connection::reader(path)?;
        let seen = data_version(&connection)?;
        Ok(Versions(Arc::new(Mutex::new(Witness { connection, seen, told: 0 }))))
    }

    /// A number that changes with every commit of any process that was not quiet.
    pub(super) fn now(&self) -> Result<u64, StoreError> {
        self.look(|| Ok(true))
    }

    /// Begins a quiet write: `writer` is inside a transaction, so nobody else can commit.
    pub(super) fn before_quiet(&self, writer: &Connection) -> Result<Quiet, StoreError> {
        self.now()?;
        data_version(writer).map(Quiet)
    }

    /// Ends a quiet write that was committed: its commit is passed over, unless another process has
    /// committed since.
    pub(super) fn after_quiet(&self, writer: &Connection, begun: &Quiet) -> Result<(), StoreError> {
        // The writer's connection sees the commits of others only, and looks after the witness.
        self.look(|| Ok(data_version(writer)? != begun.0)).map(drop)
    }

    fn look(&self, counts: impl FnOnce() -> Result<bool, StoreError>) -> Result<u64, StoreError> {
        let mut witness = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = data_version(&witness.connection)?;
        if now != witness.seen {
            if counts()? {
                witness.told += 1;
            }
            witness.seen = now;
        }
        Ok(witness.told)
    }
}

/// The writer's own view at the beginning of a quiet write.
pub(super) struct Quiet(u32);

fn data_version(connection: &Connection) -> Result<u32, StoreError> {
    connection
        .prepare_cached("PRAGMA data_version")
        .and_then(|mut version| version.query_row([], |row| row.get(0)))
        .map_err(|source| StoreError::sql("reads its version", source))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(connection: &Connection) {
        connection.execute_batch("INSERT INTO t VALUES (1)").expect("a write");
    }

    fn store() -> (tempfile::TempDir, Connection, Connection, Versions) {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("fleet.db");
        let writer = connection::writer(&path).expect("the writer");
        writer.execute_batch("CREATE TABLE t (x)").expect("a table");
        let other = connection::writer(&path).expect("another process");
        let versions = Versions::of(&path).expect("a witness");
        (dir, writer, other, versions)
    }

    #[test]
    fn every_commit_counts() {
        let (_dir, writer, other, versions) = store();
        let first = versions.now().expect("the store answers");
        assert_eq!(versions.now().expect("the store answers"), first);
        write(&writer);
        let second = versions.now().expect("the store answers");
        assert_ne!(second, first);
        write(&other);
        assert_ne!(versions.now().expect("the store answers"), second);
    }

    #[test]
    fn a_quiet_write_is_passed_over_but_nothing_beside_it() {
        let (_dir, writer, other, versions) = store();
        let quiet = |before: bool, after: bool| {
            let version = versions.now().expect("the store answers");
            if before {
                write(&other);
            }
            writer.execute_batch("BEGIN IMMEDIATE").expect("the store answers");
            let begun = versions.before_quiet(&writer).expect("the store answers");
            write(&writer);
            writer.execute_batch("COMMIT").expect("the store answers");
            if after {
                write(&other);
            }
            versions.after_quiet(&writer, &begun).expect("the store answers");
            versions.now().expect("the store answers") != version
        };
        assert!(!quiet(false, false));
        assert!(quiet(true, false), "a commit before it");
        assert!(quiet(false, true), "a commit after it");
        assert!(!quiet(false, false));
    }
}
