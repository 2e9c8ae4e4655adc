//! A disk with too little room.

use fleet::runner::shortage;

use super::small_disk::with_small_disk;
use super::{IDLE, configure, page, trigger};
use crate::env::world::World;

/// So much that what others write meanwhile does not matter.
const RESERVE: u64 = 4 << 30;

#[test]
fn claims_stop_visibly_while_there_is_little_room_and_go_on_by_themselves() {
    let world = World::new(IDLE);
    let filler = world.path().join("filler");
    let file = std::fs::File::create(&filler).expect("a filler");
    let none = rustix::fs::FallocateFlags::empty();
    rustix::fs::fallocate(&file, none, 0, RESERVE).expect("4 GiB are free");
    drop(file);
    let disk = rustix::fs::statvfs(world.path()).expect("its size");
    let wanted = disk.f_bavail * disk.f_frsize + RESERVE / 2;
    configure(&world, &format!("[disk]\nmin_free = \"{wanted}\""));

    let daemon = world.serve();
    daemon.wait_for("nothing new is claimed");
    trigger(&world);
    let ready = page(&world, "/readyz");
    assert!(ready.starts_with("HTTP/1.1 503") && ready.contains("disk.min_free"), "{ready}");
    assert!(page(&world, "/").contains("less than disk.min_free"));
    assert!(page(&world, "/metrics").contains("\nfleet_claims_stopped 1\n"));
    let status = world.fleet(&["status"]);
    let told = String::from_utf8_lossy(&status.stdout).into_owned();
    assert_eq!(status.status.code(), Some(6));
    assert!(told.contains("less than disk.min_free"), "{told}");
    assert_eq!(world.runs()[0]["state"], "pending", "it has its row");

    std::fs::remove_file(&filler).expect("room is made");
    // It looks each half minute, and when it is woken.
    std::fs::write(world.state().join("wake"), "now").expect("the wake file");
    daemon.wait_for("there is room on the disk again");
    daemon.wait_for("run succeeded");
    assert!(page(&world, "/metrics").contains("\nfleet_claims_stopped 0\n"));
    assert!(page(&world, "/readyz").starts_with("HTTP/1.1 200"));
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn shortage_follows_what_is_really_free() {
    const TEST: &str = "keeping::disk_guard::shortage_follows_what_is_really_free";
    with_small_disk(TEST, 2, |disk| {
        let look = || shortage(disk.path(), 1 << 20);
        assert_eq!(look(), None);
        disk.fill();
        let told = look().expect("it is full");
        assert!(told.contains("has 0 B free, less than disk.min_free (1.0 MiB)"), "{told}");
        disk.empty();
        assert_eq!(look(), None);
    });
}
