//! The verbs of an operator's day: `sched`, `status`, `doctor`, `worktree`.

use serde_json::{Value, json};

use crate::env::world::World;

const NIGHTLY: &[(&str, &str)] = &[
    (
        "tasks/nightly.yaml",
        "description: Says done.\nschedule: '30 2 * * *'\ntimezone: America/New_York\nprompt: Write x.\ncompletion: {shell: test -e x}\n",
    ),
    (
        "scripted/nightly.yaml",
        "turns:\n  - tool_calls:\n      - name: write_file\n        arguments: {path: x, content: done}\n  - text: Done.\n",
    ),
];

fn bundle(world: &World) -> String {
    world.bundle().to_str().expect("UTF-8").to_owned()
}

#[test]
fn trigger_without_a_daemon_says_so_and_the_next_daemon_runs_it() {
    let world = World::new(NIGHTLY);
    let told = world.ok(&["sched", "trigger", "nightly", "--bundle", &bundle(&world)]);
    assert!(told.contains("no daemon runs"), "{told}");
    assert_eq!(world.runs()[0]["state"], "pending");

    let daemon = world.serve();
    daemon.wait_for("run succeeded");
    let told = world.ok(&["sched", "trigger", "nightly"]);
    assert!(told.contains("fleet runs logs -f"), "{told}");
    daemon.wait_for("run succeeded");
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn status_names_the_daemon_what_is_due_and_what_waits() {
    let world = World::new(NIGHTLY);
    let absent = world.fleet(&["status", "--json", "--bundle", &bundle(&world)]);
    assert_eq!(absent.status.code(), Some(6), "tasks are scheduled and no daemon runs");

    let daemon = world.serve();
    let status = world.json(&["status", "--json"]);
    assert_eq!(status["status"], "ok");
    assert_eq!(status["daemon"]["pid"], daemon.pid());
    assert_eq!(status["due_next"][0]["task"], "nightly");
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn lists_are_empty_json_before_anything_ran_and_make_no_state() {
    let world = World::new(NIGHTLY);
    for args in
        [["runs", "list", "--json"], ["dlq", "list", "--json"], ["worktree", "list", "--json"]]
    {
        assert_eq!(world.json(&args), Value::Array(Vec::new()), "{args:?}");
    }
    assert!(!world.state().join("fleet.db").exists());
}

#[test]
fn doctor_passes_here_and_fails_without_podman() {
    let world = World::new(NIGHTLY);
    let checks = world.json(&["doctor", "--json"]);
    let checks = checks.as_array().expect("checks");
    assert!(checks.iter().all(|check| check["ok"] == true), "{checks:#?}");

    let bare =
        world.command(&["doctor"]).env("PATH", "/nonexistent").output().expect("fleet starts");
    assert_eq!(bare.status.code(), Some(1));
    let text = String::from_utf8_lossy(&bare.stdout).into_owned();
    assert!(text.contains("podman") && text.contains("FAIL"), "{text}");
}

#[test]
fn worktree_is_kept_on_request_and_pruned_by_hand() {
    let kept = NIGHTLY[0].1.replace("prompt:", "worktree_config: {auto_cleanup: false}\nprompt:");
    let world = World::new(&[("tasks/nightly.yaml", &kept), NIGHTLY[1]]);
    let run = world.run_task("nightly");
    assert_eq!(run["state"], "success", "{run:#}");
    let listed = world.json(&["worktree", "list", "--json"]);
    assert_eq!((&listed[0]["state"], &listed[0]["run_id"]), (&"kept".into(), &run["run_id"]));
    let path = listed[0]["path"].as_str().expect("a path").to_owned();

    world.ok(&["worktree", "prune", "--older-than", "0s", "--dry-run"]);
    assert!(std::path::Path::new(&path).exists());
    world.ok(&["worktree", "prune", "--older-than", "0s"]);
    assert!(!std::path::Path::new(&path).exists());
    assert_eq!(world.json(&["worktree", "list", "--json"]), json!([]));
}
