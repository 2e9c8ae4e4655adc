//! A second daemon that waits for its turn.

use super::crash::{SLOW, trigger, wait_for_tool};
use crate::env::world::{Daemon, World};

fn stand_by(world: &World, first: &Daemon) -> Daemon {
    let second = world.start_serve(&["--standby"], &[]);
    let line = second.wait_for("standing by until that daemon ends");
    assert!(line.contains(&format!("pid {} on host ", first.pid())), "{line}");
    second
}

#[test]
fn standby_takes_over_when_the_first_daemon_is_killed_and_resolves_its_run() {
    let world = World::new(SLOW);
    let first = world.serve();
    let second = stand_by(&world, &first);
    trigger(&world, "slow");
    let run = wait_for_tool(&world);

    first.kill();
    second.wait_for("no other daemon is left");
    second.wait_for("attempt failed and will be tried again");
    let whole = world.run(&run["run_id"]);
    assert_eq!(whole["attempt_list"][0]["outcome"], "interrupted", "{whole:#}");
    let status = world.json(&["status", "--json"]);
    assert_eq!(status["daemon"]["pid"], second.pid(), "{status:#}");
    // The second signal spares the grace.
    second.terminate();
    second.wait_for("nothing new is claimed");
    assert_eq!(second.stop(), Some(0));
}

#[test]
fn standby_takes_over_when_the_first_daemon_stops() {
    let world = World::new(SLOW);
    let first = world.serve();
    let second = stand_by(&world, &first);
    assert_eq!(first.stop(), Some(0));
    second.wait_for("the status page is up");
    assert_eq!(second.stop(), Some(0));
}

#[test]
fn standby_that_waits_ends_at_once_when_it_is_told_and_disturbs_nobody() {
    let world = World::new(SLOW);
    let first = world.serve();
    let second = stand_by(&world, &first);
    assert_eq!(second.stop(), Some(0));
    let status = world.json(&["status", "--json"]);
    assert_eq!(status["daemon"]["pid"], first.pid(), "{status:#}");
    assert_eq!(first.stop(), Some(0));
}
