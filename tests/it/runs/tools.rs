//! Which tools a run is offered.

use serde_json::Value;

use crate::env::model_server::{ModelServer, streams_call, streams_text};
use crate::env::world::World;

fn events(world: &World, run: &Value) -> Vec<Value> {
    let id = run["run_id"].as_str().expect("an id");
    let lines = world.ok(&["runs", "logs", id, "--json"]);
    lines.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

#[test]
fn a_refused_tool_is_not_offered_and_calling_it_is_an_error_that_the_model_sees() {
    let server = ModelServer::start(vec![
        streams_call("a", "bash", r#"{"command":"touch ran.txt"}"#),
        streams_call("b", "write_file", r#"{"path":"out.txt","content":"x"}"#),
        streams_text("done"),
    ]);
    let manifest = format!(
        "version: 1\nname: roles\ndefaults: {{model: lab/m}}\nproviders:\n  - {{name: lab, type: openai, base_url: '{}'}}\n",
        server.base_url()
    );
    let world = World::new(&[
        ("manifest.yaml", &manifest),
        ("personas/p.yaml", "instructions: x\ntool_permissions: {deny: [bash, web_fetch]}\n"),
        (
            "tasks/t.yaml",
            "prompt: x\npersona: p\ntool_permissions: {allow: [bash, write_file, view_file]}\n\
             completion: {shell: 'test -e out.txt && test ! -e ran.txt'}\n",
        ),
    ]);
    let run = world.run_task("t");
    assert_eq!(run["state"], "success", "{run:#}");
    let asked = server.asked();
    let offered: Vec<&str> = asked[0].body["tools"]
        .as_array()
        .expect("tools")
        .iter()
        .map(|tool| tool["function"]["name"].as_str().expect("a name"))
        .collect();
    assert_eq!(offered, ["view_file", "write_file"]);
    let told =
        &asked[1].body["messages"].as_array().expect("messages").last().expect("one")["content"];
    assert_eq!(told, "there is no tool \"bash\"; the tools are: view_file, write_file");
    let blocked: Vec<Value> = events(&world, &run)
        .into_iter()
        .filter(|event| event["type"] == "persona_tool_blocked")
        .collect();
    let reason = |tool: &str| {
        let event = blocked.iter().find(|event| event["tool"] == tool).expect("it is told");
        assert_eq!(event["persona"], "p");
        event["reason"].as_str().expect("a reason").to_owned()
    };
    assert_eq!(reason("bash"), "persona p: tool_permissions.deny lists bash");
    assert_eq!(reason("run_python"), "task t: tool_permissions.allow does not list it");
}

#[test]
fn example_of_tools_does_what_it_says() {
    let world = World::of_example("tools");
    let run = world.run_task("review");
    assert_eq!(run["state"], "success", "{run:#}");
    let id = run["run_id"].as_str().expect("an id");
    let log = world.ok(&["runs", "logs", id]);
    assert!(
        log.contains("bash is not offered: persona reviewer: tool_permissions.deny lists bash"),
        "{log}"
    );
    assert!(log.contains("there is no tool \"bash\""), "{log}");
}
