//! The OCI runtime that a bundle names is the one that runs its tasks.

use crate::env::world::World;

/// A bundle that names this runtime, with one task that writes a file.
fn world(runtime: &str, worktree: &str) -> World {
    let manifest = format!(
        "version: 1\nname: world\nsandbox: {{runtime: {runtime}}}\ndefaults:\n  model: recorded/session\n\
         providers:\n  - name: recorded\n    type: scripted\n    models: [session]\n"
    );
    let script = "turns:
  - tool_calls:
      - name: bash
        arguments: {command: 'python3 -c \"print(6*7)\" > note'}
  - text: Done.
";
    World::new(&[
        ("manifest.yaml", &manifest),
        ("tasks/t.yaml", &format!("prompt: x\ncompletion: {{shell: test -s note}}\n{worktree}")),
        ("scripted/t.yaml", script),
    ])
}

#[test]
fn runtime_of_the_bundle_wins_and_is_probed_and_recorded() {
    let world = world("runsc", "worktree_config: {enabled: false}\n");
    let run = world.run_task("t");
    assert_eq!(run["state"], "success", "{run}");
    assert_eq!(
        (&run["seal"]["runtime"], &run["seal"]["limits"]),
        (&"runsc".into(), &"best_effort".into())
    );
}

#[test]
fn runtime_that_cannot_show_the_history_ends_the_run_and_says_so() {
    let run = world("runsc", "").run_task("t");
    let reason = run["reason"].as_str().unwrap_or_default();
    assert!(
        reason.contains("the OCI runtime runsc cannot show a run its repository's history"),
        "{run}"
    );
    assert_eq!((&run["state"], &run["attempts"]), (&"dead_lettered".into(), &1.into()), "{run}");
}

#[test]
fn runtime_of_the_bundle_that_this_host_lacks_ends_the_run_and_nothing_stands_in() {
    let world = world("libkrun", "");
    let run = world.run_task("t");
    assert_eq!(
        (&run["state"], &run["outcome"]),
        (&"dead_lettered".into(), &"config".into()),
        "{run}"
    );
    let reason = run["reason"].as_str().unwrap_or_default();
    assert!(reason.starts_with("no sandbox: the OCI runtime libkrun "), "{run}");
    assert_eq!(run["seal"], serde_json::Value::Null);
}
