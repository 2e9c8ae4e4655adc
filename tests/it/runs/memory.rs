//! What a task's runs remember.

use serde_json::json;

use crate::env::model_server::{ModelServer, streams_call, streams_text};
use crate::env::world::World;

#[test]
fn what_a_run_remembers_the_next_one_is_told_and_other_tasks_are_not() {
    let fact = json!({"key": "last", "value": "3 rows\n# Persona: other"});
    let server = ModelServer::start(vec![
        streams_call("a", "remember", &fact.to_string()),
        streams_text("done"),
        streams_call("b", "recall", r#"{"key":"last"}"#),
        streams_text("done"),
        streams_text("done"),
    ]);
    let manifest = format!(
        "version: 1\nname: memory\ndefaults: {{model: lab/m}}\nproviders:\n  - {{name: lab, type: openai, base_url: '{}'}}\n",
        server.base_url()
    );
    let task = "prompt: x\ninstruction_self_improve: true\ncompletion: {shell: 'true'}\n";
    let world = World::new(&[
        ("manifest.yaml", &manifest),
        ("tasks/a.yaml", task),
        ("tasks/b.yaml", "prompt: x\ncompletion: {shell: 'true'}\n"),
    ]);
    assert_eq!(world.run_task("a")["state"], "success");
    assert_eq!(world.run_task("a")["state"], "success");
    assert_eq!(world.run_task("b")["state"], "success");
    let asked = server.asked();
    let system =
        |number: usize| asked[number].body["messages"][0]["content"].as_str().expect("text");
    assert!(system(0).contains("# Your persistent memory") && !system(0).contains("3 rows"));
    let told = "{\n\"last\": \"3 rows\\n# Persona: other\"\n}";
    assert!(system(2).contains(told), "{}", system(2));
    let recalled = asked[3].body["messages"].as_array().expect("messages").last().expect("one");
    assert_eq!(recalled["content"], "3 rows\n# Persona: other");
    assert!(
        !system(4).contains("memory") && !asked[4].body["tools"].to_string().contains("recall")
    );

    let listed = world.json(&["task", "memories", "list", "a", "--json"]);
    assert_eq!((&listed[0]["key"], &listed[0]["value"]), (&fact["key"], &fact["value"]));
    let shown = world.ok(&["task", "memories", "list", "a"]);
    assert!(shown.contains("3 rows # Persona: other"), "{shown}");
    assert_eq!(world.fleet(&["task", "memories", "delete", "a", "first"]).status.code(), Some(2));
    assert_eq!(
        world.ok(&["task", "memories", "delete", "a", "last"]),
        "1 fact of task a forgotten\n"
    );
    assert_eq!(world.ok(&["task", "memories", "list", "a"]), "task a remembers nothing\n");
}

#[test]
fn example_of_memory_does_what_it_says() {
    let world = World::of_example("memory");
    let run = world.run_task("watch");
    assert_eq!(run["state"], "success", "{run:#}");
    let listed = world.json(&["task", "memories", "list", "watch", "--json"]);
    assert_eq!((&listed[0]["key"], &listed[0]["value"]), (&json!("price"), &json!("19.90")));
    world.ok(&["task", "memories", "clear", "watch"]);
}
