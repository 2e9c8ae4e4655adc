//! Files that can be opened, and files that cannot.

use std::path::Path;

use fleet::run::{RunState, TaskName};
use fleet::secrets::Redactor;
use fleet::store::{RunFilter, Store, StoreError};

use super::bench::{Bench, claim};
use crate::env::source_root;

fn refusal(path: &Path) -> StoreError {
    Store::open(path, Redactor::default()).expect_err("not opened")
}

#[test]
fn a_file_that_is_no_database_is_damaged_and_left_alone() {
    let dir = tempfile::tempdir().expect("scratch directory");
    let file = dir.path().join("fleet.db");
    let text = "this is no database. ".repeat(100);
    std::fs::write(&file, &text).expect("written");
    let error = refusal(&file);
    assert!(
        matches!(&error, StoreError::Corrupt { path, .. } if *path == file.display().to_string()),
        "{error:?}"
    );
    assert_eq!(std::fs::read_to_string(&file).expect("read"), text);
}

#[test]
fn a_directory_that_cannot_be_written_is_named() {
    let dir = tempfile::tempdir().expect("scratch directory");
    let blocked = dir.path().join("file");
    std::fs::write(&blocked, "").expect("written");
    let file = blocked.join("fleet.db");
    let error = refusal(&file);
    assert!(
        matches!(&error, StoreError::Open { path, .. } if *path == file.display().to_string()),
        "{error:?}"
    );
}

#[test]
fn a_read_only_directory_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().expect("scratch directory");
    let closed = dir.path().join("closed");
    std::fs::create_dir(&closed).expect("made");
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o500)).expect("closed");
    let error = refusal(&closed.join("fleet.db"));
    assert!(matches!(&error, StoreError::Open { .. }), "{error:?}");
}

#[test]
fn a_newer_schema_is_refused_and_left_alone() {
    let bench = Bench::new();
    let path = bench.path();
    let connection = rusqlite::Connection::open(&path).expect("opens");
    let known: i64 =
        connection.query_row("PRAGMA user_version", [], |row| row.get(0)).expect("reads");
    connection.pragma_update(None, "user_version", known + 1).expect("written");
    let error = refusal(&path);
    assert_eq!(
        error.to_string(),
        format!(
            "the store {} has schema {}, newer than this fleet's {known}",
            path.display(),
            known + 1
        )
    );
    let found: i64 =
        connection.query_row("PRAGMA user_version", [], |row| row.get(0)).expect("reads");
    assert_eq!(found, known + 1);
}

#[test]
fn the_file_and_its_directory_are_their_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().expect("scratch directory");
    let file = dir.path().join("state/fleet.db");
    let _store = Store::open(&file, Redactor::default()).expect("opens");
    let mode = |path: &Path| path.metadata().expect("is there").permissions().mode() & 0o777;
    assert_eq!((mode(&dir.path().join("state")), mode(&file)), (0o700, 0o600));
}

#[tokio::test]
async fn a_store_of_schema_1_is_brought_up_to_date_with_its_runs() {
    let dir = tempfile::tempdir().expect("scratch directory");
    let file = dir.path().join("fleet.db");
    let dump = source_root().join("tests/fixtures/store/schema-1.sql");
    let dump = std::fs::read_to_string(dump).expect("the stored copy");
    rusqlite::Connection::open(&file).expect("opens").execute_batch(&dump).expect("loads");
    let store = Store::open(&file, Redactor::default()).expect("migrates");
    let rows = store.runs(RunFilter::default()).await.expect("reads");
    let short: Vec<_> =
        rows.iter().map(|row| (row.task.as_str(), row.state, row.attempts)).collect();
    assert_eq!(short, [("tidy", RunState::Pending, 0), ("report", RunState::DeadLettered, 1)]);
    let dead = store.run_detail(rows[1].run_id.clone()).await.expect("reads");
    assert_eq!((dead.events.len(), dead.artifacts.len(), dead.usage.input_tokens), (1, 1, 10));
    let claimed = store.claim_next(claim("a")).await.expect("claims").expect("one is pending");
    assert_eq!(claimed.task, TaskName::new("tidy"));
}
