//! Puts a backup in the store's place. The backup is verified first, the store that it replaces is
//! kept beside it, and there is a whole store under the name at every instant.
//!
//! A backup does not know what ran after it was made. So what it calls waiting is not run again, and
//! what was due since is neither run nor recorded, unless somebody asks for it.

use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use super::backup::{Part, check, sync_directory};
use super::columns::{get_instant_opt, instant};
use super::lock::{StoreLock, beside};
use super::{Store, StoreError, connection, counters, schema};

/// What becomes of the time between a backup and its restoration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SinceBackup {
    /// Nothing of it runs: it may have run already.
    Skip,
    /// It runs by its tasks' policies, perhaps a second time.
    CatchUp,
}

/// What a restoration did.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Restored {
    /// Where the store that was replaced is kept.
    pub replaced: Option<PathBuf>,
    pub runs: u64,
    /// What was due after it is unknown.
    pub last_tick: Option<Timestamp>,
    /// Runs that waited, now dead letters.
    pub set_aside: u64,
    /// Runs that the backup calls running: the next start resolves them.
    pub running: u64,
}

/// The time of which the store knows nothing, because a backup took its place.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Gap {
    pub from: Option<Timestamp>,
    pub until: Timestamp,
}

/// Why a run that waited in the backup is set aside.
const UNKNOWN: &str = "restored from a backup: whether it ran since is unknown";

/// Replaces the store at `database` by the backup `from`.
///
/// # Errors
/// Somebody has the store open, or the backup is damaged, foreign or too new: the store is as it was.
pub fn restore(
    from: &Path,
    database: &Path,
    since: SinceBackup,
    now: Timestamp,
) -> Result<Restored, StoreError> {
    connection::make_directory(database)?;
    let _alone = StoreLock::alone(database)?;
    refuse_itself(from, database)?;
    let part = Part::begin(&beside(database, ".restored"))?;
    let mut copy = part.copy_of(from)?;
    let (runs, last_tick) = check(&copy, from)?;
    schema::migrate(&mut copy, &from.display().to_string())?;
    let failed = |error| connection::open_error(&part.path, error);
    let transaction = copy.transaction().map_err(failed)?;
    let set_aside = match since {
        SinceBackup::Skip => skip_gap(&transaction, last_tick, now).map_err(failed)?,
        SinceBackup::CatchUp => 0,
    };
    let running = transaction
        .query_row("SELECT count(*) AS n FROM runs WHERE state = 'running'", [], |row| {
            super::columns::get_unsigned(row, "n")
        })
        .map_err(failed)?;
    transaction.commit().map_err(failed)?;
    drop(copy);
    let replaced = replace(part, database, now)?;
    Ok(Restored { replaced, runs, last_tick, set_aside, running })
}

fn refuse_itself(from: &Path, database: &Path) -> Result<(), StoreError> {
    let refused = |message: String| StoreError::Open { path: from.display().to_string(), message };
    let real = from.canonicalize().map_err(|error| refused(error.to_string()))?;
    if !real.is_file() {
        return Err(refused("it is not a file".to_owned()));
    }
    if database.canonicalize().is_ok_and(|database| database == real) {
        return Err(refused("it is the store itself".to_owned()));
    }
    Ok(())
}

/// Nothing that may have run since is run again: the schedule goes on from now, and what waited is
/// set aside for a person. Returns how many runs that were.
fn skip_gap(
    connection: &Connection,
    last_tick: Option<Timestamp>,
    now: Timestamp,
) -> rusqlite::Result<u64> {
    connection.execute(
        "UPDATE scheduler SET last_tick = ?1, restored_at = ?1, unknown_since = ?2",
        params![instant(now), last_tick.map(instant)],
    )?;
    let set_aside = connection.execute(
        "UPDATE runs SET state = 'dead_lettered', outcome = 'interrupted', reason = ?1,
            retry_at = NULL, token = token + 1, finished_at = ?2, dead_lettered_at = ?2,
            dead_letter_reason = ?1, dead_letter_attempts = attempts - attempts_before
         WHERE state IN ('pending', 'scheduled', 'interrupted')",
        params![UNKNOWN, instant(now)],
    )?;
    // What ran is resolved by the next start; its policy must not let it run again either.
    connection.execute("UPDATE runs SET interruptions = ?1 WHERE state = 'running'", [u32::MAX])?;
    let set_aside = u64::try_from(set_aside).expect("a count of rows");
    if set_aside > 0 {
        counters::bump(connection, counters::OUTCOME, "interrupted", set_aside)?;
        counters::bump(connection, counters::DEAD_LETTER, "non_retryable", set_aside)?;
    }
    Ok(set_aside)
}

/// Swaps the files. Returns where the replaced store is.
fn replace(part: Part, database: &Path, now: Timestamp) -> Result<Option<PathBuf>, StoreError> {
    let failed = |error: io::Error| connection::io_error(database, &error);
    let stamp = now.strftime("%Y%m%dT%H%M%SZ");
    let kept = beside(database, &format!(".replaced-{stamp}"));
    let there = database.try_exists().map_err(failed)?;
    if there {
        fold_log(database);
        std::fs::hard_link(database, &kept).map_err(failed)?;
    }
    // A log beside the new file would be taken for its own. One that could not be folded, because the
    // store is damaged, stays with the store that it belongs to.
    for suffix in ["-wal", "-shm"] {
        let beside_new = beside(database, suffix);
        if beside_new.try_exists().map_err(failed)? {
            std::fs::rename(&beside_new, beside(&kept, suffix)).map_err(failed)?;
        }
    }
    part.sync().map_err(failed)?;
    std::fs::rename(&part.path, database).map_err(failed)?;
    sync_directory(database).map_err(failed)?;
    Ok(there.then_some(kept))
}

/// Brings the replaced store's log into its file. A damaged one keeps its log.
fn fold_log(database: &Path) {
    if let Ok(old) = Connection::open(database) {
        let _ = old.pragma_update(None, "journal_mode", "DELETE");
    }
}

impl Store {
    /// The time of which the store knows nothing since its last restoration.
    pub async fn gap(&self) -> Result<Option<Gap>, StoreError> {
        let doing = "reads when it was restored";
        self.readers
            .read(doing, move |connection| {
                let row = connection.query_row(
                    "SELECT restored_at, unknown_since FROM scheduler",
                    [],
                    |row| {
                        let until = get_instant_opt(row, "restored_at")?;
                        let from = get_instant_opt(row, "unknown_since")?;
                        Ok(until.map(|until| Gap { from, until }))
                    },
                );
                row.optional().map(Option::flatten).map_err(|source| StoreError::sql(doing, source))
            })
            .await
    }
}
