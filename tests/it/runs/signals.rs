//! SIGTERM and SIGINT: what runs is finished, or interrupted and resumed; nothing is left.

use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::crash::{trigger, wait_for_tool};
use crate::env::leftovers;
use crate::env::world::{Daemon, World, eventually};

/// A task that is done once the file `go` lies in its workspace.
pub const WAITS: &[(&str, &str)] = &[
    (
        "tasks/slow.yaml",
        "prompt: Wait.\nschedule: '0 0 1 1 *'\ncompletion: {shell: test -e done.txt}\n",
    ),
    (
        "scripted/slow.yaml",
        "turns:
  - tool_calls:
      - name: bash
        arguments: {command: 'until test -e go; do sleep 0.05; done; echo x > done.txt', timeout_seconds: 60}
  - text: Done.
",
    ),
];

fn world(grace: &str) -> World {
    let world = World::new(WAITS);
    let config = world.state().join("fleet.toml");
    let text = std::fs::read_to_string(&config).expect("fleet.toml");
    std::fs::write(&config, format!("{text}\n[serve]\nshutdown_grace = \"{grace}\"\n"))
        .expect("fleet.toml");
    world
}

/// Lets the attempt that is under way go on to its end.
pub fn let_go(world: &World, run: &Value, attempt: u64) {
    let worktree = eventually("the attempt is in its tool call", || {
        let whole = world.run(&run["run_id"]);
        let begun = |event: &Value| event["type"] == "tool_started" && event["attempt"] == attempt;
        whole["events"].as_array()?.iter().any(begun).then_some(())?;
        let attempts = whole["attempt_list"].as_array()?;
        attempts.last()?["worktree"].as_str().map(str::to_owned)
    });
    std::fs::write(std::path::Path::new(&worktree).join("go"), "").expect("the file is written");
}

/// The run ended well at that attempt, and the daemon leaves nothing.
fn ends_well(world: &World, run: &Value, attempts: u32, daemon: Daemon) {
    daemon.wait_for("run succeeded");
    daemon.stop();
    let whole = world.run(&run["run_id"]);
    assert_eq!(
        (&whole["state"], &whole["attempts"]),
        (&"success".into(), &attempts.into()),
        "{whole:#}"
    );
    assert_eq!(world.runs().len(), 1);
    leftovers::none(world);
}

#[test]
fn sigterm_lets_what_runs_finish_within_the_grace() {
    let world = world("60s");
    let daemon = world.serve();
    trigger(&world, "slow");
    let run = wait_for_tool(&world);
    daemon.terminate();
    daemon.wait_for("nothing new is claimed");
    let_go(&world, &run, 1);
    daemon.wait_for("run succeeded");
    assert_eq!(daemon.end().code(), Some(0));
    assert_eq!(world.run(&run["run_id"])["attempts"], 1);
    leftovers::none(&world);
}

#[test]
fn sigterm_without_a_grace_interrupts_and_the_next_start_resumes() {
    let world = world("0s");
    let daemon = world.serve();
    trigger(&world, "slow");
    let run = wait_for_tool(&world);
    assert_eq!(daemon.stop(), Some(0));
    let whole = world.run(&run["run_id"]);
    assert_eq!(
        (&whole["state"], &whole["outcome"]),
        (&"scheduled".into(), &"interrupted".into()),
        "{whole:#}"
    );
    assert!(world.containers().is_empty());

    let daemon = world.serve();
    let_go(&world, &run, 2);
    ends_well(&world, &run, 2, daemon);
}

#[test]
fn second_signal_ends_at_once_and_the_next_start_resolves_what_ran() {
    let world = world("10m");
    let daemon = world.serve();
    trigger(&world, "slow");
    let run = wait_for_tool(&world);
    daemon.terminate();
    daemon.wait_for("nothing new is claimed");
    assert_eq!(daemon.stop(), Some(0));
    assert_eq!(world.run(&run["run_id"])["state"], "running", "nobody has resolved it yet");

    let daemon = world.serve();
    let_go(&world, &run, 2);
    ends_well(&world, &run, 2, daemon);
}

#[test]
fn sigterm_while_nothing_runs_ends_at_once_and_leaves_nothing() {
    let world = world("10m");
    let daemon = world.serve();
    assert_eq!(daemon.stop(), Some(0));
    leftovers::none(&world);
}

#[test]
fn manual_run_that_was_interrupted_by_hand_does_not_hold_up_the_next_slot() {
    let world = world("60s");
    let bundle = world.bundle();
    let mut command =
        world.command(&["task", "run", "slow", "--bundle", bundle.to_str().expect("UTF-8")]);
    let mut child =
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("fleet starts");
    let by_hand = wait_for_tool(&world);
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a pid");
    kill_process(pid, Signal::INT).expect("it gets Ctrl-C");
    child.wait().expect("it is reaped");
    assert_eq!(world.run(&by_hand["run_id"])["state"], "cancelled");

    world.ticked_last(jiff::Timestamp::now() - jiff::SignedDuration::from_secs(90));
    world.commit(
        &[("tasks/slow.yaml", &WAITS[0].1.replace("0 0 1 1 *", "* * * * *"))],
        "each minute",
    );
    let daemon = world.serve();
    let scheduled = eventually("the slot fires", || {
        let running = |run: &Value| run["trigger"] == "schedule" && run["state"] == "running";
        world.runs().into_iter().find(running)
    });
    let_go(&world, &scheduled, 1);
    daemon.wait_for("run succeeded");
    daemon.terminate();
    daemon.wait_for("nothing new is claimed");
    assert_eq!(daemon.stop(), Some(0));
}
