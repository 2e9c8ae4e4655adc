//! The store's write-ahead log, and a reader that never ends.

use std::path::Path;

use fleet::store::WalState;

use super::{IDLE, page};
use crate::env::world::World;
use crate::store::bench::{Bench, warned};

fn log_bytes(database: &Path) -> u64 {
    database.with_file_name("fleet.db-wal").metadata().map_or(0, |metadata| metadata.len())
}

/// A connection in the middle of reading.
fn reader(database: &Path) -> rusqlite::Connection {
    let connection = rusqlite::Connection::open(database).expect("opens");
    connection.execute_batch("BEGIN; SELECT count(*) FROM runs").expect("reads");
    connection
}

#[tokio::test]
async fn log_that_a_reader_holds_is_told_of_writers_go_on_and_it_shrinks_afterwards() {
    const LIMIT: u64 = 1 << 20;
    let bench = Bench::new();
    let claimed = bench.running("report", 1).await;
    assert_eq!(bench.store.shrink_wal(LIMIT).await.expect("looks"), WalState::Small);
    let reading = reader(&bench.path());
    let text = "x".repeat(100_000);
    let write = async || {
        for _ in 0..80 {
            let (run, token) = (claimed.run_id.clone(), claimed.token);
            bench.store.append_events(run, token, vec![warned(&text)]).await.expect("written");
        }
    };
    write().await;
    let state = bench.store.shrink_wal(LIMIT).await.expect("looks");
    let bytes = log_bytes(&bench.path());
    assert_eq!(state, WalState::Held { bytes });
    assert!(bytes > 8_000_000, "{bytes}");
    write().await;
    drop(reading);
    assert_eq!(bench.store.shrink_wal(LIMIT).await.expect("looks"), WalState::Small);
    assert_eq!(log_bytes(&bench.path()), 0);
    write().await;
    assert!(log_bytes(&bench.path()) < 6_000_000, "{}", log_bytes(&bench.path()));
}

#[test]
fn daemon_warns_of_a_log_that_a_reader_holds() {
    let world = World::new(IDLE);
    let daemon = world.serve();
    let database = world.state().join("fleet.db");
    let reading = reader(&database);
    let writer = rusqlite::Connection::open(&database).expect("opens");
    writer
        .execute_batch(
            "PRAGMA synchronous = OFF; CREATE TABLE ballast (b BLOB);
             INSERT INTO ballast VALUES (zeroblob(70 * 1024 * 1024)); DROP TABLE ballast",
        )
        .expect("written");
    let wake = || std::fs::write(world.state().join("wake"), "now").expect("the wake file");
    wake();
    daemon.wait_for("the store's log cannot be shrunk: a reader holds it");
    assert!(page(&world, "/").contains("cannot be shrunk"));
    assert!(page(&world, "/readyz").starts_with("HTTP/1.1 200"), "runs go on");
    drop(reading);
    wake();
    daemon.wait_for("the store's log is small again");
    assert!(log_bytes(&database) < 1 << 20);
    assert_eq!(daemon.stop(), Some(0));
}
