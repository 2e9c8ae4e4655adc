//! What a lying provider, a closed pipe or a dead neighbour must not do.

use std::io::Read;
use std::process::Stdio;

use crate::env::world::{World, eventually};

#[test]
fn absurd_usage_is_cut_and_the_store_stays_writable() {
    let usage =
        "usage: {prompt_tokens: 999999999999, completion_tokens: 999999999999, cost_usd: 900000}";
    let script = format!("turns:\n  - text: Done.\n    {usage}\n");
    let task = "prompt: Go.\nlimits: {max_cost_usd: 0, max_total_tokens: 0}\ncompletion: {shell: 'true'}\n";
    let world = World::new(&[("tasks/huge.yaml", task), ("scripted/huge.yaml", &script)]);
    for _ in 0..3 {
        assert_eq!(world.run_task("huge")["state"], "success");
    }
}

#[test]
fn reader_that_goes_away_does_not_end_the_run() {
    let world = World::new(&[
        ("tasks/talk.yaml", "prompt: Go.\ncompletion: {shell: test -e x}\n"),
        (
            "scripted/talk.yaml",
            "turns:\n  - tool_calls:\n      - {name: bash, arguments: {command: 'seq 1 2000; touch x'}}\n  - text: Done.\n",
        ),
    ]);
    let bundle = world.bundle();
    let mut command =
        world.command(&["task", "run", "talk", "--bundle", bundle.to_str().expect("UTF-8")]);
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("fleet starts");
    let mut first = [0_u8; 4];
    child.stdout.take().expect("piped").read_exact(&mut first).expect("its first words");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    assert_eq!(world.runs()[0]["state"], "success");
}

#[test]
fn run_of_a_dead_neighbour_is_resolved_by_the_running_daemon() {
    let world = World::new(&[
        (
            "tasks/slow.yaml",
            "prompt: Wait.\nretry_policy: {max_interruptions: 0}\ncompletion: {shell: 'true'}\n",
        ),
        (
            "scripted/slow.yaml",
            "turns:\n  - tool_calls:\n      - {name: bash, arguments: {command: 'sleep 300'}}\n",
        ),
    ]);
    let daemon = world.serve();
    let bundle = world.bundle();
    let mut command =
        world.command(&["task", "run", "slow", "--bundle", bundle.to_str().expect("UTF-8")]);
    let mut child =
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("fleet starts");
    let run = eventually("the tool has started", || {
        let run = world.runs().into_iter().next()?;
        let whole = world.run(&run["run_id"]);
        whole["events"]
            .as_array()?
            .iter()
            .any(|event| event["type"] == "tool_started")
            .then_some(run)
    });
    child.kill().expect("it is killed");
    child.wait().expect("it is reaped");

    daemon.wait_for("run failed");
    let whole = world.run(&run["run_id"]);
    assert_eq!(
        (&whole["state"], &whole["outcome"]),
        (&"dead_lettered".into(), &"interrupted".into())
    );
    assert!(world.containers().is_empty());
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn retry_keeps_the_commit_with_which_its_run_began() {
    let task = |check: &str| {
        format!(
            "prompt: Go.\nmax_retries: 1\nretry_policy: {{backoff: fixed, initial_delay: 3s, retry_on: [completion_failed]}}\nschedule: '0 0 1 1 *'\ncompletion: {{shell: '{check}'}}\n"
        )
    };
    let world = World::new(&[
        ("tasks/check.yaml", &task("test -e ../never")),
        ("scripted/check.yaml", "turns:\n  - text: Done.\n"),
    ]);
    let daemon = world.serve();
    world.ok(&["sched", "trigger", "check"]);
    daemon.wait_for("attempt failed and will be tried again");
    world.commit(&[("tasks/check.yaml", &task("true"))], "let it pass");
    daemon.wait_for("a new bundle is in force");
    daemon.wait_for("run failed");
    let run = world.run(&world.runs()[0]["run_id"]);
    assert_eq!(
        (&run["attempts"], &run["outcome"]),
        (&2.into(), &"completion_failed".into()),
        "{run:#}"
    );

    // A replay takes the commit in force.
    world.ok(&["dlq", "replay", "check"]);
    daemon.wait_for("run succeeded");
    assert_eq!(daemon.stop(), Some(0));
}
