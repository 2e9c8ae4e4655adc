//! What must hold at the end of a run.

use crate::env::world::World;

#[test]
fn example_of_gates_does_what_it_says() {
    let world = World::of_example("gates");
    let counted = world.run_task("count");
    assert_eq!(counted["state"], "success", "{counted:#}");
    assert_eq!(counted["output"], serde_json::json!({"rows": 3, "note": "counted with wc"}));
    let id = counted["run_id"].as_str().expect("an id");
    let shown = world.ok(&["runs", "show", id]);
    assert!(shown.contains("\"rows\":3"), "{shown}");
    let log = world.ok(&["runs", "logs", id]);
    assert!(log.contains("not valid by the output schema: it is not one JSON value"), "{log}");

    let given_up = world.run_task("impossible");
    assert_eq!(
        (&given_up["outcome"], &given_up["reason"]),
        (&"audit_abort".into(), &"the model gave the task up: the shelf has no door".into())
    );
}
