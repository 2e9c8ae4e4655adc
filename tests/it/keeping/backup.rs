//! Copies that can be relied on, or none.

use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

use fleet::run::Trigger;
use fleet::secrets::Redactor;
use fleet::store::{RunFilter, Store, StoreError, backup};

use super::IDLE;
use super::small_disk::with_small_disk;
use crate::env::world::World;
use crate::store::bench::{Bench, now, occurrence};

fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).expect("a directory");
    let name = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.expect("an entry").file_name().into_string().expect("UTF-8")
    };
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn backup_taken_while_runs_are_written_is_whole() {
    let bench = Bench::new();
    let store = bench.store.clone();
    let (stop, mut stopped) = tokio::sync::oneshot::channel::<()>();
    let writer = tokio::spawn(async move {
        let mut number = 0;
        while stopped.try_recv().is_err() {
            let due = vec![occurrence("report", number, Trigger::Schedule)];
            store.insert_occurrences(due, Some(now())).await.expect("recorded");
            number += 1;
        }
        number
    });
    let copies = bench.dir.path().join("copies");
    std::fs::create_dir(&copies).expect("made");
    let mut seen = 0;
    for number in 0..5 {
        let (from, to) = (bench.path(), copies.join(format!("{number}.db")));
        let copying = tokio::task::spawn_blocking(move || backup(&from, &to));
        let made = copying.await.expect("joins").expect("a copy");
        assert!(made.runs >= seen, "{made:?}");
        seen = made.runs;
        let metadata = made.path.metadata().expect("is there");
        assert_eq!((metadata.permissions().mode() & 0o777, metadata.len()), (0o600, made.bytes));
        let copy = Store::open(&made.path, Redactor::default()).expect("opens");
        let filter = RunFilter { limit: u32::MAX, ..RunFilter::default() };
        assert_eq!(copy.runs(filter).await.expect("reads").len() as u64, made.runs);
        drop(copy);
    }
    stop.send(()).expect("it writes");
    assert!(u64::from(writer.await.expect("joins")) >= seen);
    let parts = names(&copies).into_iter().filter(|name| name.contains(".part")).count();
    assert_eq!(parts, 0);
}

#[test]
fn existing_file_is_not_overwritten() {
    let bench = Bench::new();
    let to = bench.dir.path().join("precious.db");
    std::fs::write(&to, "precious").expect("written");
    let refusal = backup(&bench.path(), &to).expect_err("refused").to_string();
    assert!(
        refusal.contains("precious.db is there already") && refusal.contains("overwrites nothing"),
        "{refusal}"
    );
    assert_eq!(std::fs::read_to_string(&to).expect("read"), "precious");
}

#[test]
fn backup_in_a_place_that_cannot_be_written_names_that_place() {
    let bench = Bench::new();
    let to = bench.dir.path().join("nowhere/copy.db");
    let refusal = backup(&bench.path(), &to).expect_err("refused").to_string();
    let wanted = format!("cannot write the backup {}: ", to.display());
    assert!(refusal.starts_with(&wanted) && !refusal.contains(".part"), "{refusal}");
}

/// Overwrites the pages of a table of a closed store.
pub fn damage(database: &Path, table: &str) {
    let connection = rusqlite::Connection::open(database).expect("opens");
    let page: u32 = connection
        .query_row("SELECT rootpage FROM sqlite_schema WHERE name = ?1", [table], |row| row.get(0))
        .expect("a table");
    let size: u32 = connection.query_row("PRAGMA page_size", [], |row| row.get(0)).expect("a size");
    connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .expect("the log is folded in");
    let file = std::fs::OpenOptions::new().write(true).open(database).expect("opens");
    let garbage = vec![0xa5_u8; size as usize];
    file.write_all_at(&garbage, u64::from(page - 1) * u64::from(size)).expect("written");
}

#[test]
fn damaged_store_gives_no_backup() {
    let bench = Bench::new();
    damage(&bench.path(), "runs");
    let to = bench.dir.path().join("copy.db");
    let failure = backup(&bench.path(), &to).expect_err("damaged");
    assert!(matches!(&failure, StoreError::Corrupt { .. }), "{failure:?}");
    let left: Vec<String> =
        names(bench.dir.path()).into_iter().filter(|name| name.starts_with("copy")).collect();
    assert_eq!(left, Vec::<String>::new());
}

#[test]
fn backup_that_does_not_fit_leaves_no_file() {
    const TEST: &str = "keeping::backup::backup_that_does_not_fit_leaves_no_file";
    with_small_disk(TEST, 1, |disk| {
        let bench = Bench::new();
        let to = disk.path().join("copy.db");
        backup(&bench.path(), &to).expect("it fits");
        std::fs::remove_file(&to).expect("removed");
        disk.fill();
        let failure = backup(&bench.path(), &to).expect_err("full");
        assert!(matches!(&failure, StoreError::Full { .. }), "{failure:?}");
        assert_eq!(names(disk.path()), ["filler"]);
        disk.empty();
        backup(&bench.path(), &to).expect("there is room again");
    });
}

#[test]
fn what_a_killed_backup_left_does_not_hinder_the_next_one() {
    let bench = Bench::new();
    let to = bench.dir.path().join("copy.db");
    std::fs::write(bench.dir.path().join("copy.db.part"), "half").expect("written");
    backup(&bench.path(), &to).expect("a copy");
    assert!(!names(bench.dir.path()).contains(&"copy.db.part".to_owned()));
}

#[test]
fn backup_of_a_living_daemon_prints_place_size_and_runs() {
    let world = World::new(IDLE);
    let daemon = world.serve();
    let backups = world.state().join("backups");
    std::fs::create_dir(&backups).expect("made");
    std::fs::write(backups.join("fleet-killed.db.part"), "half").expect("written");
    let text = world.ok(&["backup"]);
    assert_eq!(names(&backups).len(), 1, "what a killed backup left is gone");
    let place = PathBuf::from(text.lines().next().expect("a place"));
    assert!(place.starts_with(&backups), "{text}");
    assert!(text.contains(" KiB, 0 runs, opened and found whole"), "{text}");
    let to = world.path().join("own.db");
    let made = world.json(&["backup", "--json", "--to", to.to_str().expect("UTF-8")]);
    assert_eq!((made["path"].as_str(), &made["runs"]), (to.to_str(), &0.into()));
    assert_eq!(daemon.stop(), Some(0));
}
