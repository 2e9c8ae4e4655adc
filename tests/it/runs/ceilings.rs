//! Ceilings end a run with their own outcome.

use crate::env::world::World;

fn runaway(limits: &str) -> World {
    let task = format!("prompt: Go on and on.\nlimits:\n{limits}completion:\n  shell: 'false'\n");
    let script = "turns:
  - tool_calls:
      - name: bash
        arguments: {command: 'date +%N'}
    usage: {prompt_tokens: 1000, completion_tokens: 100, cost_usd: 0.10}
loop_from: 0
";
    World::new(&[("tasks/runaway.yaml", &task), ("scripted/runaway.yaml", script)])
}

fn outcome(world: &World) -> (String, String, f64) {
    let run = world.run_task("runaway");
    let text = |key: &str| run[key].as_str().unwrap_or_default().to_owned();
    (text("state"), text("outcome"), run["cost_usd"].as_f64().expect("a cost"))
}

#[test]
fn cost_ceiling_stops_a_runaway_script() {
    let (state, outcome, cost) = outcome(&runaway("  max_cost_usd: 0.25\n"));
    assert_eq!((state.as_str(), outcome.as_str()), ("dead_lettered", "cost_ceiling"));
    assert!((0.25..=0.35).contains(&cost), "spent {cost}");
}

#[test]
fn token_ceiling_stops_a_runaway_script() {
    let (state, outcome, _) = outcome(&runaway("  max_total_tokens: 2500\n"));
    assert_eq!((state.as_str(), outcome.as_str()), ("dead_lettered", "token_ceiling"));
}

#[test]
fn iteration_ceiling_stops_a_runaway_script() {
    let (state, outcome, _) = outcome(&runaway("  max_iterations: 3\n"));
    assert_eq!((state.as_str(), outcome.as_str()), ("dead_lettered", "iteration_ceiling"));
}

#[test]
fn wall_timeout_ends_a_hung_command_and_leaves_no_container() {
    let world = World::new(&[
        (
            "tasks/runaway.yaml",
            "prompt: Wait.\nlimits: {wall_timeout: 4s}\ncompletion: {shell: 'true'}\n",
        ),
        (
            "scripted/runaway.yaml",
            "turns:\n  - tool_calls:\n      - name: bash\n        arguments: {command: 'sleep 300 & setsid sleep 300 & wait'}\n",
        ),
    ]);
    let (state, outcome, _) = outcome(&world);
    assert_eq!((state.as_str(), outcome.as_str()), ("dead_lettered", "wall_timeout"));
    assert!(world.containers().is_empty());
}
