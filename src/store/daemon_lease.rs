//! Which daemon the state directory has. Taking the lease gives a token, and from then on every write
//! through that store carries it: a daemon that was replaced can write nothing any more.

use std::path::Path;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::columns::{get_instant, get_small, instant};
use super::writer::Durability;
use super::{Store, StoreError, connection};

/// A daemon's hold on the state directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DaemonLease {
    /// Grows with each taking.
    pub token: i64,
    /// The daemon as a holder of runs.
    pub instance: String,
    pub pid: u32,
    pub host: String,
    pub until: Timestamp,
}

/// When the lease may be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TakeLease {
    /// The daemon before is known to be gone.
    AtOnce,
    /// Only as long as the lease is still the one that was seen: neither renewed nor taken.
    From(DaemonLease),
}

impl Store {
    /// The daemon that the store at `path` knows, without opening it for writing; none where there
    /// is none or the store is older than this table.
    pub fn daemon_at(path: &Path) -> Result<Option<DaemonLease>, StoreError> {
        if !path.exists() {
            return Ok(None);
        }
        let connection = connection::reader(path)?;
        let failed = |source| StoreError::sql("reads the daemon's lease", source);
        let known: bool = connection
            .query_row(
                "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'daemon'",
                [],
                |row| row.get(0),
            )
            .map_err(failed)?;
        if known { current(&connection).map_err(failed) } else { Ok(None) }
    }

    /// Becomes the daemon, with a token that this store's writes carry from now on.
    pub async fn take_daemon_lease(
        &self,
        when: TakeLease,
        daemon: DaemonLease,
    ) -> Result<(), StoreError> {
        let doing = "takes the daemon's lease";
        let token = self
            .writer
            .write(doing, Durability::Power, move |connection| {
                take(connection, &when, &daemon)
                    .map_err(|source| StoreError::sql(doing, source))?
                    .ok_or_else(|| replaced(connection))
            })
            .await?;
        self.writer.carry(token);
        Ok(())
    }

    /// Goes on being the daemon until that instant.
    pub async fn renew_daemon_lease(&self, until: Timestamp) -> Result<(), StoreError> {
        let doing = "renews the daemon's lease";
        self.writer
            .write(doing, Durability::Quiet, move |connection| {
                connection
                    .execute("UPDATE daemon SET lease_until = ?1", [instant(until)])
                    .map(drop)
                    .map_err(|source| StoreError::sql(doing, source))
            })
            .await
    }

    /// Is the daemon no longer.
    pub async fn resign_daemon_lease(&self) -> Result<(), StoreError> {
        let doing = "gives up the daemon's lease";
        self.writer
            .write(doing, Durability::Process, move |connection| {
                connection
                    .execute(
                        "UPDATE daemon SET instance = NULL, pid = NULL, host = NULL, lease_until = NULL",
                        [],
                    )
                    .map(drop)
                    .map_err(|source| StoreError::sql(doing, source))
            })
            .await
    }
}

/// Fails when another daemon has taken the lease since the token was given.
pub(super) fn check(connection: &Connection, token: i64) -> Result<(), StoreError> {
    let failed = |source| StoreError::sql("checks the daemon's lease", source);
    let held: i64 = connection
        .prepare_cached("SELECT token FROM daemon")
        .and_then(|mut query| query.query_row([], |row| row.get(0)))
        .map_err(failed)?;
    if held == token { Ok(()) } else { Err(replaced(connection)) }
}

fn replaced(connection: &Connection) -> StoreError {
    match current(connection) {
        Ok(Some(DaemonLease { pid, host, .. })) => {
            StoreError::DaemonReplaced(format!("pid {pid} on {host}"))
        }
        Ok(None) => StoreError::DaemonReplaced("it has ended since".to_owned()),
        Err(source) => StoreError::sql("reads the daemon's lease", source),
    }
}

fn take(
    connection: &Connection,
    when: &TakeLease,
    daemon: &DaemonLease,
) -> rusqlite::Result<Option<i64>> {
    if let TakeLease::From(seen) = when
        && current(connection)?.as_ref() != Some(seen)
    {
        return Ok(None);
    }
    connection
        .query_row(
            "UPDATE daemon SET token = token + 1, instance = ?1, pid = ?2, host = ?3, lease_until = ?4
             RETURNING token",
            params![daemon.instance, daemon.pid, daemon.host, instant(daemon.until)],
            |row| row.get(0),
        )
        .map(Some)
}

fn current(connection: &Connection) -> rusqlite::Result<Option<DaemonLease>> {
    connection.query_row("SELECT * FROM daemon WHERE instance IS NOT NULL", [], lease).optional()
}

fn lease(row: &Row<'_>) -> rusqlite::Result<DaemonLease> {
    Ok(DaemonLease {
        token: row.get("token")?,
        instance: row.get("instance")?,
        pid: get_small(row, "pid")?,
        host: row.get("host")?,
        until: get_instant(row, "lease_until")?,
    })
}
