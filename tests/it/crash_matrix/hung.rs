//! A daemon that is there and does nothing.

use rustix::process::Signal;

use crate::env::world::World;
use crate::runs::crash::{trigger, wait_for_tool};

const FILES: &[(&str, &str)] = &[
    (
        "tasks/slow.yaml",
        "prompt: Wait.\nretry_policy: {max_interruptions: 0}\ncompletion: {shell: 'true'}\n",
    ),
    (
        "scripted/slow.yaml",
        "turns:\n  - tool_calls:\n      - {name: bash, arguments: {command: 'sleep 300'}}\n",
    ),
    ("tasks/quick.yaml", "prompt: Go.\ncompletion: {shell: 'true'}\n"),
    ("scripted/quick.yaml", "turns:\n  - text: Done.\n"),
];

#[test]
fn standby_takes_over_from_a_daemon_that_hangs_and_that_one_ends_when_it_wakes() {
    let world = World::new(FILES);
    // Long enough for a busy machine, short enough for a test.
    let lease = [("FLEET_DAEMON_LEASE", "3000")];
    let first = world.start_serve(&[], &lease);
    first.wait_for("the status page is up");
    trigger(&world, "slow");
    let run = wait_for_tool(&world);
    let second = world.start_serve(&["--standby"], &lease);
    second.wait_for("standing by until that daemon ends");

    first.signal(Signal::STOP);
    second.wait_for("it hangs, and this one takes over");
    second.wait_for("the status page is up");
    second.wait_for("run failed");
    let whole = world.run(&run["run_id"]);
    assert_eq!(
        (&whole["state"], &whole["outcome"]),
        (&"dead_lettered".into(), &"interrupted".into()),
        "{whole:#}"
    );

    first.signal(Signal::CONT);
    let told = first.wait_for("lost the state directory");
    let successor = format!("pid {} on ", second.pid());
    assert!(told.contains(&successor), "{told}");
    assert_eq!(first.end().code(), Some(3));

    trigger(&world, "quick");
    second.wait_for("run succeeded");
    let after = world.run(&run["run_id"]);
    assert_eq!(after, whole, "the daemon that woke has written nothing");
    assert_eq!(second.stop(), Some(0));
    crate::env::leftovers::none(&world);
}
