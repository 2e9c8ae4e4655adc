//! Limits of a run's container, from the task's keys to what an operator reads.

use crate::env::world::World;

const BASH: &str = "turns:\n  - tool_calls:\n      - name: bash\n        arguments: {command: COMMAND}\n  - text: Done.\n";

fn world(limits: &str, command: &str) -> World {
    let task = format!(
        "prompt: x\nmax_retries: 0\nlimits: {{sandbox: {limits}}}\ncompletion: {{required_tools: [bash]}}\n"
    );
    let script = BASH.replace("COMMAND", &format!("'{command}'"));
    World::new(&[("tasks/limited.yaml", &task), ("scripted/limited.yaml", &script)])
}

#[test]
fn outgrown_disk_is_the_run_s_reason_with_limit_amount_and_key_and_its_commits_are_kept() {
    let script = "git commit -q --allow-empty -m early; fallocate -l 20MiB a; fallocate -l 20MiB b; sleep 60";
    let world = world("{disk_mb: 24}", script);
    let run = world.run_task("limited");
    assert_eq!(run["state"], "dead_lettered", "{run}");
    let reason = run["reason"].as_str().unwrap_or_default();
    assert!(
        reason.contains(
            "the sandbox ended during the run: soft disk limit: limits.sandbox.disk_mb = 24, and "
        ),
        "{reason}"
    );
    assert!(
        reason.contains(
            " MB were used in the workspace and the repository's overlay; raise the limit, or"
        ),
        "{reason}"
    );
    let shown = world.ok(&["runs", "show", run["run_id"].as_str().expect("an id")]);
    assert!(shown.contains("limits.sandbox.disk_mb = 24"), "{shown}");
    assert!(
        run["branch"].is_string() && run["commit"].is_string(),
        "what it committed is kept: {run}"
    );
    assert_eq!(world.containers(), Vec::<String>::new());
}

#[test]
fn best_effort_is_said_of_every_run_where_it_is_shown() {
    let world = world("{nofile: 200}", "ulimit -n");
    let bundle = world.bundle();
    let printed =
        world.ok(&["task", "run", "limited", "--bundle", bundle.to_str().expect("UTF-8")]);
    assert!(printed.contains("limits best_effort"), "{printed}");
    let run = world.run(&world.runs()[0]["run_id"]);
    assert_eq!(run["limits"], "best_effort");
    let id = run["run_id"].as_str().expect("an id");
    let shown = world.ok(&["runs", "show", id]);
    assert!(shown.contains("best_effort: memory, CPU and process limits were rlimits"), "{shown}");
    assert!(shown.contains("not enforced (best effort)"), "{shown}");
    let log = world.ok(&["runs", "logs", id]);
    assert!(log.contains("best_effort") || log.contains("best effort"), "{log}");
    assert!(log.contains("200"), "the key is effective: {log}");
}
