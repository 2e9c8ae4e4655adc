//! A store whose file is damaged, or that may not be written.

use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;

use fleet::run::Trigger;
use fleet::secrets::Redactor;
use fleet::store::{RunFilter, Store, StoreError};

use super::{IDLE, page};
use crate::env::world::World;
use crate::store::bench::{Bench, claim, occurrence};

/// `fleet serve` that must not start: its exit code and what it says.
fn refusal(world: &World) -> (Option<i32>, String) {
    let bundle = world.bundle();
    let bundle = bundle.to_str().expect("UTF-8");
    let output = world.fleet(&["serve", "--bundle", bundle, "--listen", "127.0.0.1:0"]);
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn daemon_refuses_a_store_without_its_header_and_tells_of_restore_and_backups() {
    let world = World::new(IDLE);
    std::fs::write(world.state().join("fleet.db"), "no header. ".repeat(1000)).expect("written");
    let (code, told) = refusal(&world);
    assert_eq!(code, Some(5), "{told}");
    for wanted in ["state/fleet.db is damaged", "fleet restore FILE", "state/backups"] {
        assert!(told.contains(wanted), "{wanted}: {told}");
    }
    let read = world.fleet(&["runs", "list"]);
    assert_eq!(read.status.code(), Some(5));
}

#[test]
fn store_whose_file_was_emptied_is_refused_and_a_new_state_directory_is_not() {
    let world = World::new(IDLE);
    // A start that was killed before it wrote anything leaves an empty file: that is a new store.
    std::fs::write(world.state().join("fleet.db"), "").expect("written");
    world.ok(&["runs", "list"]);
    world.ok(&["backup"]);
    for name in ["fleet.db-wal", "fleet.db-shm"] {
        // Folded in at the end, as a rule.
        let _ = std::fs::remove_file(world.state().join(name));
    }
    std::fs::write(world.state().join("fleet.db"), "").expect("emptied");
    let (code, told) = refusal(&world);
    assert_eq!(code, Some(5), "{told}");
    for wanted in ["state/fleet.db is damaged: the file is empty", "fleet restore FILE"] {
        assert!(told.contains(wanted), "{wanted}: {told}");
    }
    assert_eq!(world.fleet(&["runs", "list"]).status.code(), Some(5));
}

#[tokio::test]
async fn damaged_page_is_told_with_the_file_when_it_is_met() {
    let bench = Bench::new();
    let due = vec![occurrence("report", 1, Trigger::Schedule)];
    bench.store.insert_occurrences(due, None).await.expect("recorded");
    super::backup::damage(&bench.path(), "runs");
    // A page that is in no cache: the store is opened anew.
    let store = Store::open(&bench.path(), Redactor::default()).expect("its header is whole");
    let named = bench.path().display().to_string();
    let failures = [
        store.runs(RunFilter::default()).await.map(drop),
        store.claim_next(claim("a")).await.map(drop),
    ];
    for failure in failures {
        assert!(
            matches!(&failure, Err(StoreError::Corrupt { path, .. }) if *path == named),
            "{failure:?}"
        );
    }
}

#[test]
fn running_daemon_that_meets_damage_stops_claiming_and_says_so_once() {
    let world = World::new(IDLE);
    let daemon = world.serve();
    super::trigger(&world);
    daemon.wait_for("run succeeded");
    let database = world.state().join("fleet.db");
    damage_behind(&database);
    std::fs::write(world.state().join("wake"), "now").expect("the wake file");
    let told = daemon.wait_for("nothing is claimed any more");
    assert!(told.contains("fleet restore FILE") && told.contains("fleet.db is damaged"), "{told}");
    let ready = page(&world, "/readyz");
    assert!(ready.starts_with("HTTP/1.1 503"), "{ready}");
    assert!(ready.contains("Nothing is started any more"), "{ready}");
    assert_eq!(daemon.stop(), Some(0));
    let (code, told) = refusal(&world);
    assert_eq!(code, Some(5), "{told}");
}

/// Damages every table of runs below a living store, and makes its caches stale.
fn damage_behind(database: &Path) {
    let connection = rusqlite::Connection::open(database).expect("opens");
    let checkpoint = || {
        connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
            .expect("the log is folded in");
    };
    checkpoint();
    let mut roots = connection
        .prepare("SELECT rootpage FROM sqlite_schema WHERE tbl_name = 'runs' AND rootpage > 0")
        .expect("a query");
    let roots: Vec<u32> = roots
        .query_map([], |row| row.get(0))
        .expect("rows")
        .collect::<Result<_, _>>()
        .expect("pages");
    let size: u32 = connection.query_row("PRAGMA page_size", [], |row| row.get(0)).expect("a size");
    let file = std::fs::OpenOptions::new().write(true).open(database).expect("opens");
    for page in roots {
        let at = u64::from(page - 1) * u64::from(size);
        file.write_all_at(&vec![0xa5_u8; size as usize], at).expect("written");
    }
    connection.execute("INSERT INTO counters VALUES ('test', '', 1)", []).expect("written");
}

#[test]
fn store_that_may_not_be_written_is_refused_with_the_way_out() {
    let world = World::new(IDLE);
    let database = world.state().join("fleet.db");
    drop(Store::open(&database, Redactor::default()).expect("made"));
    let mode = |mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(&database, mode).expect("its mode");
    };
    mode(0o400);
    let (code, told) = refusal(&world);
    assert_eq!(code, Some(5), "{told}");
    assert!(told.contains("state/fleet.db cannot be written"), "{told}");
    assert!(told.contains("--state DIR"), "{told}");
    mode(0o600);
    let closed = std::fs::Permissions::from_mode(0o500);
    std::fs::set_permissions(world.state(), closed).expect("its mode");
    let (code, told) = refusal(&world);
    let open = std::fs::Permissions::from_mode(0o700);
    std::fs::set_permissions(world.state(), open).expect("its mode");
    assert_eq!(code, Some(5), "{told}");
    assert!(told.contains(&world.state().display().to_string()), "{told}");
}
