//! The daemon's lease.

use fleet::secrets::Redactor;
use fleet::store::{DaemonLease, Store, StoreError, TakeLease};

fn daemon(pid: u32) -> DaemonLease {
    DaemonLease {
        token: 0,
        instance: format!("instance-{pid}"),
        pid,
        host: "h".to_owned(),
        until: "2026-01-02T03:04:05Z".parse().expect("an instant"),
    }
}

#[tokio::test]
async fn daemon_that_was_replaced_writes_nothing_and_others_still_do() {
    let dir = tempfile::tempdir().expect("scratch directory");
    let path = dir.path().join("fleet.db");
    let open = || Store::open(&path, Redactor::default()).expect("the store opens");
    let (first, second, other) = (open(), open(), open());
    assert_eq!(Store::daemon_at(&path).expect("readable"), None);

    first.take_daemon_lease(TakeLease::AtOnce, daemon(1)).await.expect("the first daemon");
    let seen = Store::daemon_at(&path).expect("readable").expect("a daemon");
    assert_eq!(seen, DaemonLease { token: 1, ..daemon(1) });
    second.take_daemon_lease(TakeLease::From(seen.clone()), daemon(2)).await.expect("the second");

    let tick = Some("2026-01-02T03:04:06Z".parse().expect("an instant"));
    let refused = first.insert_occurrences(Vec::new(), tick).await;
    assert!(
        matches!(&refused, Err(StoreError::DaemonReplaced(by)) if by == "pid 2 on h"),
        "{refused:?}"
    );
    assert_eq!(other.last_tick().await.expect("readable"), None);
    other.insert_occurrences(Vec::new(), tick).await.expect("no daemon, no fence");
    second.insert_occurrences(Vec::new(), tick).await.expect("the daemon in office");

    // What the lease was is not what it is: whoever is late does not take it.
    let late = open().take_daemon_lease(TakeLease::From(seen), daemon(3)).await;
    assert!(matches!(late, Err(StoreError::DaemonReplaced(_))), "{late:?}");
    second.resign_daemon_lease().await.expect("the second ends");
    assert_eq!(Store::daemon_at(&path).expect("readable"), None);
}
