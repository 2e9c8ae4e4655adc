//! kill -9 of the daemon.

use crate::env::world::{World, eventually};

pub const SLOW: &[(&str, &str)] = &[
    (
        "tasks/slow.yaml",
        "prompt: Wait.\nretry_policy: {max_interruptions: 1}\ncompletion: {shell: test -e done.txt}\n",
    ),
    (
        "scripted/slow.yaml",
        "turns:
  - tool_calls:
      - name: bash
        arguments: {command: 'echo half > half.txt; test -e ../go || sleep 300'}
",
    ),
];

pub fn trigger(world: &World, task: &str) {
    let bundle = world.bundle();
    world.ok(&["sched", "trigger", task, "--bundle", bundle.to_str().expect("UTF-8")]);
}

pub fn wait_for_tool(world: &World) -> serde_json::Value {
    eventually("the tool call has started", || {
        let run = world.runs().into_iter().next()?;
        let whole = world.run(&run["run_id"]);
        let events = whole["events"].as_array()?;
        events.iter().any(|event| event["type"] == "tool_started").then_some(run)
    })
}

#[test]
fn kill_in_the_middle_of_a_tool_call_leaves_no_container_and_the_next_start_resolves_the_run() {
    let world = World::new(SLOW);
    let daemon = world.serve();
    trigger(&world, "slow");
    let run = wait_for_tool(&world);
    assert_eq!(world.containers().len(), 1);

    daemon.kill();
    eventually("the container is gone", || world.containers().is_empty().then_some(()));
    assert_eq!(world.run(&run["run_id"])["state"], "running", "nobody has resolved it yet");

    // Interrupted once: tried again by policy. Interrupted twice: a dead letter.
    let daemon = world.serve();
    daemon.wait_for("attempt failed and will be tried again");
    eventually("the second attempt's tool has written", || {
        let whole = world.run(&run["run_id"]);
        let worktree = whole["attempt_list"][1]["worktree"].as_str()?;
        std::path::Path::new(worktree).join("half.txt").exists().then_some(())
    });
    daemon.kill();
    let daemon = world.serve();
    daemon.wait_for("run failed");
    let whole = world.run(&run["run_id"]);
    assert_eq!(
        (&whole["state"], &whole["outcome"]),
        (&"dead_lettered".into(), &"interrupted".into()),
        "{whole:#}"
    );
    assert_eq!(daemon.stop(), Some(0));
    assert!(world.containers().is_empty());

    // What the dead attempts wrote is kept on the run's branch.
    let repo = whole["attempt_list"][1]["repo"].as_str().expect("a repository");
    let branch = whole["branch"].as_str().expect("the salvaged branch");
    let half = crate::env::git(repo.as_ref(), &["show", &format!("{branch}:half.txt")]);
    assert_eq!(half, "half");
    assert_eq!(world.json(&["worktree", "list", "--json"]), serde_json::json!([]));
}

#[test]
fn sigterm_interrupts_after_the_grace_and_leaves_nothing_running() {
    let world = World::new(SLOW);
    let config = world.state().join("fleet.toml");
    let text = std::fs::read_to_string(&config).expect("fleet.toml");
    std::fs::write(&config, format!("{text}\n[serve]\nshutdown_grace = \"1s\"\n"))
        .expect("fleet.toml");
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
}
