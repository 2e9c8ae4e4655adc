//! `fleet task run`, and the scaffold that a newcomer starts from.

use crate::env::git;
use crate::env::world::World;

const REPORT: &[(&str, &str)] = &[
    (
        "tasks/report.yaml",
        "prompt: Write report.md.\ncompletion:\n  artifacts: [report.md]\n  shell: test -s report.md\n",
    ),
    (
        "scripted/report.yaml",
        "turns:
  - text: I write it.
    tool_calls:
      - name: bash
        arguments: {command: 'echo 42 > report.md && git add report.md && git commit -qm report && echo $?'}
      - name: run_python
        arguments: {code: 'x = 21'}
      - name: run_python
        arguments: {code: 'print(x * 2)'}
      - name: publish_artifact
        arguments: {path: report.md, description: The answer}
    usage: {prompt_tokens: 1000, completion_tokens: 50, cost_usd: 0.01}
  - text: Done.
    usage: {prompt_tokens: 1200, completion_tokens: 10, cost_usd: 0.01}
",
    ),
];

#[test]
fn run_ends_with_success_branch_artifact_and_cost() {
    let world = World::new(REPORT);
    let run = world.run_task("report");

    assert_eq!(run["state"], "success", "{run:#}");
    assert_eq!((&run["attempts"], &run["tokens"]), (&1.into(), &2260.into()));
    assert_eq!(run["cost_usd"], 0.02);
    assert_eq!(run["limits"], "best_effort");
    assert_eq!(run["answer"], "Done.");

    let repo = run["attempt_list"][0]["repo"].as_str().expect("a repository");
    let branch = run["branch"].as_str().expect("a branch");
    let shown = git(repo.as_ref(), &["show", &format!("{branch}:report.md")]);
    assert_eq!(shown, "42");
    assert_eq!(
        git(repo.as_ref(), &["rev-parse", branch]),
        run["commit"].as_str().expect("a commit")
    );

    assert_eq!(run["artifacts"][0]["path"], "report.md");
    let saved = world.path().join("saved");
    let id = run["run_id"].as_str().expect("an id");
    world.ok(&["runs", "artifacts", id, "--save", saved.to_str().expect("UTF-8")]);
    assert_eq!(std::fs::read_to_string(saved.join("report.md")).expect("the copy"), "42\n");

    assert!(world.containers().is_empty(), "a container is left");
    let worktrees = world.json(&["worktree", "list", "--json"]);
    assert_eq!(worktrees, serde_json::json!([]), "a worktree is left");
}

#[test]
fn python_keeps_its_state_between_calls() {
    let world = World::new(REPORT);
    let run = world.run_task("report");
    let outputs: Vec<_> = run["events"]
        .as_array()
        .expect("events")
        .iter()
        .filter(|event| event["type"] == "tool_finished" && event["tool"] == "run_python")
        .map(|event| event["output"].as_str().expect("output").to_owned())
        .collect();
    assert!(outputs[1].contains("42"), "{outputs:?}");
}

#[test]
fn dry_run_starts_and_writes_nothing() {
    let world = World::new(REPORT);
    let bundle = world.bundle();
    let text = world.ok(&[
        "task",
        "run",
        "report",
        "--bundle",
        bundle.to_str().expect("UTF-8"),
        "--dry-run",
    ]);
    assert!(text.contains("recorded/session"), "{text}");
    assert!(!world.state().join("fleet.db").exists());
}

#[test]
fn unknown_task_is_named_with_those_that_exist() {
    let world = World::new(REPORT);
    let bundle = world.bundle();
    let output =
        world.fleet(&["task", "run", "raport", "--bundle", bundle.to_str().expect("UTF-8")]);
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("\"raport\"") && text.contains("report"), "{text}");
}

#[test]
fn task_without_any_check_is_unverified() {
    let world = World::new(&[
        ("tasks/talk.yaml", "prompt: Say hello.\n"),
        ("scripted/talk.yaml", "turns:\n  - text: Hello, it is all done!\n"),
    ]);
    let run = world.run_task("talk");
    assert_eq!((&run["state"], &run["outcome"]), (&"dead_lettered".into(), &"unverified".into()));
}

#[test]
fn every_task_of_the_scaffold_succeeds() {
    let world = World::new(&[]);
    let demo = world.path().join("demo");
    let demo = demo.to_str().expect("UTF-8");
    world.ok(&["init", demo]);
    world.ok(&["bundle", "validate", demo]);
    for task in ["hello-report", "tidy-notes", "flaky-import"] {
        world.ok(&["task", "run", task, "--bundle", demo]);
    }
    let runs = world.runs();
    assert_eq!(runs.len(), 3);
    assert!(runs.iter().all(|run| run["state"] == "success"), "{runs:#?}");
    let flaky = runs.iter().find(|run| run["task"] == "flaky-import").expect("it ran");
    assert_eq!(flaky["attempts"], 2);
}
