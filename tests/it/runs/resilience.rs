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
    // The daemon looks each half minute, and when it is woken.
    std::fs::write(world.state().join("wake"), "now").expect("the wake file");

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

fn plays(task: &str, calls: &[(&str, serde_json::Value)]) -> World {
    let turns: Vec<_> = calls
        .iter()
        .map(|(name, arguments)| serde_json::json!({"tool_calls": [{"name": name, "arguments": arguments}]}))
        .chain([serde_json::json!({"text": "Done."})])
        .collect();
    let script = serde_json::json!({ "turns": turns }).to_string();
    World::new(&[("tasks/play.yaml", task), ("scripted/play.yaml", &script)])
}

fn bash(command: &str) -> (&'static str, serde_json::Value) {
    ("bash", serde_json::json!({ "command": command }))
}

#[test]
fn workspace_whose_agent_removed_what_the_repository_holds_is_removed_all_the_same() {
    let world = plays(
        "prompt: Go.\ncompletion: {shell: 'true'}\n",
        &[bash(
            "git branch -D main; git pack-refs --all; git gc -q; echo x > x; git add x; git commit -qm x",
        )],
    );
    assert_eq!(world.run_task("play")["state"], "success");
    assert_eq!(world.json(&["worktree", "list", "--json"]), serde_json::json!([]));
    let left = std::fs::read_dir(world.state().join("runs")).expect("runs").count();
    assert_eq!(left, 0, "an overlay is left");
}

#[test]
fn failure_after_the_worktree_was_made_leaves_no_worktree() {
    let task = "prompt: '{% if run.attempt > 1 %}{{ 1 // 0 }}{% endif %}x'\nmax_retries: 1\nretry_policy: {initial_delay: 1s, retry_on: [completion_failed]}\ncompletion: {shell: 'false'}\n";
    let world = plays(task, &[bash("true")]);
    let run = world.run_task("play");
    assert_eq!(
        (&run["state"], &run["outcome"]),
        (&"dead_lettered".into(), &"config".into()),
        "{run:#}"
    );
    assert_eq!(world.json(&["worktree", "list", "--json"]), serde_json::json!([]));
}

#[test]
fn deleting_the_branch_of_the_last_success_does_not_stop_the_next_run() {
    let world = plays(
        "prompt: Go.\ncompletion: {shell: 'true'}\n",
        &[bash("echo x >> x; git add x; git commit -qm x")],
    );
    let first = world.run_task("play");
    let repo = first["attempt_list"][0]["repo"].as_str().expect("a repository").to_owned();
    crate::env::git(repo.as_ref(), &["branch", "-D", first["branch"].as_str().expect("a branch")]);
    let second = world.run_task("play");
    assert_eq!(second["state"], "success", "{second:#}");
    assert_eq!(
        second["attempt_list"][0]["base_commit"], first["commit"],
        "it goes on from the kept commit"
    );
}

#[test]
fn prune_leaves_another_state_directorys_workspaces_alone() {
    let repo_of = |world: &World| world.path().join("repo");
    let task = |repo: &str| {
        format!(
            "prompt: Go.\nworkspace: {{repo: {repo}}}\nworktree_config: {{auto_cleanup: false}}\ncompletion: {{shell: 'true'}}\n"
        )
    };
    let world = World::new(&[]);
    crate::env::repository(&repo_of(&world), &[("README", "hello\n")]);
    let task = task(&repo_of(&world).display().to_string());
    world.commit(
        &[("tasks/keep.yaml", &task), ("scripted/keep.yaml", "turns:\n  - text: Done.\n")],
        "task",
    );
    assert_eq!(world.run_task("keep")["state"], "success");

    let other = World::new(&[
        ("tasks/keep.yaml", &task),
        ("scripted/keep.yaml", "turns:\n  - text: Done.\n"),
    ]);
    assert_eq!(other.run_task("keep")["state"], "success");
    other.ok(&["worktree", "prune", "--older-than", "0s"]);
    assert_eq!(other.json(&["worktree", "list", "--json"]), serde_json::json!([]));
    assert_eq!(world.json(&["worktree", "list", "--json"]).as_array().map(Vec::len), Some(1));
}

#[test]
fn artifact_that_is_too_large_is_refused_and_the_run_fails_for_want_of_it() {
    let publish = ("publish_artifact", serde_json::json!({"path": "a"}));
    let world = plays(
        "prompt: Go.\nlimits: {max_iterations: 8}\ncompletion: {artifacts: [a]}\n",
        &[bash("truncate -s 70M a"), publish],
    );
    let run = world.run_task("play");
    assert_eq!(run["state"], "dead_lettered", "{run:#}");
    let refused = |event: &serde_json::Value| {
        event["tool"] == "publish_artifact" && event["is_error"] == true
    };
    assert!(run["events"].as_array().expect("events").iter().any(refused), "{run:#}");
}

#[test]
fn repository_that_vanished_stops_its_own_task_and_no_other() {
    let there = "prompt: Go.\ncompletion: {shell: 'true'}\n";
    let needs = format!("{there}workspace: {{repo: ../shop}}\n");
    let done = "turns:\n  - text: Done.\n";
    let world = World::new(&[
        ("tasks/needs.yaml", &needs),
        ("scripted/needs.yaml", done),
        ("tasks/other.yaml", there),
        ("scripted/other.yaml", done),
    ]);
    let shop = world.path().join("shop");
    crate::env::repository(&shop, &[("a.md", "a")]);
    assert_eq!(world.serve().stop(), Some(0));
    std::fs::rename(&shop, world.path().join("away")).expect("moved");

    let daemon = world.serve();
    assert!(daemon.log().contains("the host lacks what a task needs"), "{}", daemon.log());
    for task in ["needs", "other"] {
        // The bundle is the daemon's: its commit has a problem of the host alone.
        world.ok(&["sched", "trigger", task, "--bundle", world.bundle().to_str().expect("UTF-8")]);
    }
    let ended = eventually("both have ended", || {
        let runs = world.runs();
        let ended = |run: &serde_json::Value| {
            ["success", "dead_lettered"].contains(&run["state"].as_str()?).then_some(())
        };
        (runs.len() == 2 && runs.iter().all(|run| ended(run).is_some())).then_some(runs)
    });
    for run in ended {
        let outcome = if run["task"] == "other" { "success" } else { "transient" };
        assert_eq!(run["outcome"], outcome, "{run}");
    }
    let checked = world.fleet(&["bundle", "validate", world.bundle().to_str().expect("UTF-8")]);
    assert_eq!(checked.status.code(), Some(1));
    std::fs::rename(world.path().join("away"), &shop).expect("moved");
    world.ok(&["sched", "trigger", "needs", "--bundle", world.bundle().to_str().expect("UTF-8")]);
    eventually("it runs again", || (world.runs()[0]["outcome"] == "success").then_some(()));
    assert_eq!(daemon.stop(), Some(0));
}
