//! A retry, then a dead letter, then a replay, as a person would type it.

use crate::env::world::World;

const FLAKY: &[(&str, &str)] = &[
    (
        "tasks/flaky.yaml",
        "prompt: Write x.\ntags: [nightly]\nmax_retries: 1\nretry_policy: {backoff: fixed, initial_delay: 1s}\ncompletion: {shell: test -e x}\n",
    ),
    (
        "scripted/flaky.yaml",
        // Four requests an attempt: the first one and three of the loop's own retries.
        "turns:
  - fault: {status: 503, message: overloaded, times: 8}
  - tool_calls:
      - name: write_file
        arguments: {path: x, content: done}
  - text: Done.
",
    ),
];

#[test]
fn failing_run_is_retried_then_dead_lettered_then_replayed_to_success() {
    let world = World::new(FLAKY);
    let bundle = world.bundle();
    let output =
        world.fleet(&["task", "run", "flaky", "--bundle", bundle.to_str().expect("UTF-8")]);
    assert_eq!(output.status.code(), Some(7), "{}", String::from_utf8_lossy(&output.stdout));

    let letters = world.json(&["dlq", "list", "--json"]);
    assert_eq!(letters.as_array().map(Vec::len), Some(1));
    assert_eq!(letters[0]["dead_letter_attempts"], 2);
    assert_eq!(letters[0]["tags"], serde_json::json!(["nightly"]));
    let reason = letters[0]["dead_letter_reason"].as_str().expect("a reason");
    assert!(reason.contains("503"), "{reason}");

    let id = letters[0]["run_id"].as_str().expect("an id").to_owned();
    let daemon = world.serve();
    world.ok(&["sched", "dlq", "replay", &id]);
    daemon.wait_for("run succeeded");
    let run = world.run(&letters[0]["run_id"]);
    assert_eq!((&run["state"], &run["attempts"]), (&"success".into(), &3.into()));
    assert_eq!(world.json(&["dlq", "list", "--json"]), serde_json::json!([]));
    assert_eq!(daemon.stop(), Some(0));

    let again = world.fleet(&["dlq", "replay", &id]);
    assert_eq!(again.status.code(), Some(4), "{}", String::from_utf8_lossy(&again.stderr));
}
