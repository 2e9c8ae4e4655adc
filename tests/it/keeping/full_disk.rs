//! A disk that is full: nothing is half-done, and everything goes on once there is room.

use std::os::unix::fs::MetadataExt;

use fleet::run::{OutcomeClass, RunState, Trigger};
use fleet::secrets::Redactor;
use fleet::store::{Store, StoreError};
use rustix::process::{Pid, Resource, Rlimit, prlimit};

use super::small_disk::{SmallDisk, with_small_disk};
use super::{IDLE, trigger};
use crate::env::world::World;
use crate::store::bench::{claim, dump, finish, now, occurrence, warned};

/// Does one kind of write on a full disk and again with room: the first leaves the store as it was.
async fn fails_whole<T, F: Future<Output = Result<T, StoreError>>>(
    disk: &SmallDisk,
    write: impl Fn() -> F,
) -> T {
    let database = disk.path().join("fleet.db");
    let before = dump(&database);
    disk.fill();
    match write().await {
        Err(StoreError::Full { path, .. }) => assert_eq!(path, database.display().to_string()),
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("it was written"),
    }
    assert_eq!(dump(&database), before);
    disk.empty();
    let written = write().await.expect("there is room again");
    assert_ne!(dump(&database), before);
    written
}

#[test]
fn each_kind_of_write_is_whole_or_not_there() {
    const TEST: &str = "keeping::full_disk::each_kind_of_write_is_whole_or_not_there";
    let each = async |disk: &SmallDisk| {
        let database = disk.path().join("fleet.db");
        let store = Store::open(&database, Redactor::default()).expect("opens");
        let due = || vec![occurrence("report", 1, Trigger::Schedule)];
        fails_whole(disk, || store.insert_occurrences(due(), Some(now()))).await;
        let claimed = fails_whole(disk, || store.claim_next(claim("a"))).await.expect("due");
        let (run, token) = (claimed.run_id, claimed.token);
        let text = "x".repeat(9000);
        let events = || vec![warned(&text)];
        fails_whole(disk, || store.append_events(run.clone(), token, events())).await;
        let end = || finish(OutcomeClass::Success, RunState::Success);
        fails_whole(disk, || store.finish_attempt(run.clone(), token, end())).await;
        let jobs = store.pending_cleanup().await.expect("reads");
        assert_eq!(jobs.len(), 1, "the clean-up is promised once");
        fails_whole(disk, || store.cleanup_done(jobs[0].0)).await;
        let connection = rusqlite::Connection::open(&database).expect("opens");
        let sound: String =
            connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("checks");
        assert_eq!(sound, "ok");
    };
    with_small_disk(TEST, 4, |disk| {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        runtime.expect("a runtime").block_on(each(disk));
    });
}

#[test]
fn writes_that_wait_together_fail_together_on_a_full_disk() {
    const TEST: &str = "keeping::full_disk::writes_that_wait_together_fail_together_on_a_full_disk";
    let all = async |disk: &SmallDisk| {
        let database = disk.path().join("fleet.db");
        let store = Store::open(&database, Redactor::default()).expect("opens");
        let before = dump(&database);
        disk.fill();
        let writes: Vec<_> = (0..40)
            .map(|number| {
                let store = store.clone();
                let due = vec![occurrence("report", number, Trigger::Schedule)];
                tokio::spawn(async move { store.insert_occurrences(due, None).await })
            })
            .collect();
        for write in writes {
            let failure = write.await.expect("joins").expect_err("full");
            assert!(matches!(&failure, StoreError::Full { .. }), "{failure:?}");
        }
        assert_eq!(dump(&database), before);
        disk.empty();
    };
    with_small_disk(TEST, 4, |disk| {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        runtime.expect("a runtime").block_on(all(disk));
    });
}

#[test]
fn daemon_whose_store_cannot_grow_goes_on_when_it_can() {
    let world = World::new(IDLE);
    // A file-size limit stands in for a full disk; its signal is ignored, as a full disk sends none.
    let passes_on = "trap '' XFSZ; exec \"$0\" \"$@\"";
    let binary = crate::env::fleet_binary();
    let daemon =
        world.serve_by(world.program("sh", &["-c", passes_on, binary.to_str().expect("UTF-8")]));
    let log = world.state().join("fleet.db-wal");
    let pid = Pid::from_raw(i32::try_from(daemon.pid()).expect("a pid"));
    let limit = |current: Option<u64>| {
        let limits = Rlimit { current, maximum: None };
        prlimit(pid, Resource::Fsize, limits).expect("the limit is set");
    };
    limit(Some(log.metadata().expect("a log").size()));
    // This process has no limit: the run is recorded, and the daemon cannot claim it.
    trigger(&world);
    let told = daemon.wait_for("the store failed: tried again in 5 s");
    assert!(told.contains("fleet.db cannot grow"), "{told}");
    assert_eq!(world.runs()[0]["state"], "pending");
    limit(None);
    daemon.wait_for("run succeeded");
    let run = world.run(&world.runs()[0]["run_id"]);
    assert_eq!((&run["state"], &run["attempts"]), (&"success".into(), &1.into()), "{run:#}");
    assert_eq!(daemon.stop(), Some(0));
}
