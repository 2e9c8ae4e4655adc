//! A provider's key serves its requests and is seen nowhere else.

use std::path::Path;

use serde_json::{Value, json};

use crate::env::model_server::{ModelServer, refuses, streams_call, streams_text};
use crate::env::world::World;

const KEY: &str = "planted-key-4711-abcdefgh";

fn world(server: &ModelServer) -> World {
    let manifest = format!(
        "version: 1\nname: keys\ndefaults:\n  model: loopback/m\nproviders:\n  - name: loopback\n    type: openai\n    base_url: {}\n    api_key_env: LOOPBACK_KEY\n    models: [m]\n",
        server.base_url()
    );
    World::new(&[
        ("manifest.yaml", &manifest),
        ("tasks/ask.yaml", "prompt: Write env.txt.\ncompletion: {artifacts: [env.txt]}\n"),
    ])
}

fn run(world: &World) -> (Value, String) {
    let bundle = world.bundle();
    let args = ["task", "run", "ask", "--bundle", bundle.to_str().expect("UTF-8")];
    let output = world
        .command(&args)
        .env("LOOPBACK_KEY", KEY)
        .env("FLEET_LOG", "trace")
        .output()
        .expect("fleet starts");
    let mut printed = String::from_utf8_lossy(&output.stdout).into_owned();
    printed.push_str(&String::from_utf8_lossy(&output.stderr));
    (world.run(&world.runs()[0]["run_id"]), printed)
}

/// Whether any file below `dir` holds the key.
fn is_on_disk(dir: &Path) -> bool {
    std::fs::read_dir(dir).expect("a directory").flatten().any(|entry| {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => is_on_disk(&path),
            Ok(kind) if kind.is_file() => {
                let bytes = std::fs::read(&path).unwrap_or_default();
                bytes.windows(KEY.len()).any(|window| window == KEY.as_bytes())
            }
            _ => false,
        }
    })
}

#[test]
fn key_is_sent_to_the_provider_and_is_neither_in_the_sandbox_nor_in_the_store() {
    let look = json!({"command": "cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n' > env.txt; env >> env.txt; git add -A; git commit -qm env"});
    let publish = json!({"path": "env.txt"});
    let server = ModelServer::start(vec![
        streams_call("a", "bash", &look.to_string()),
        streams_call("b", "publish_artifact", &publish.to_string()),
        streams_text(&format!("I guessed the key: {KEY}.")),
    ]);
    let world = world(&server);
    let (run, printed) = run(&world);

    assert_eq!(run["state"], "success", "{run:#}\n{printed}");
    let asked = server.asked();
    assert_eq!(asked[0].authorization.as_deref(), Some(format!("Bearer {KEY}").as_str()));
    assert!(asked.iter().all(|asked| !asked.body.to_string().contains(KEY)), "it is in a request");
    assert!(!run.to_string().contains(KEY) && !printed.contains(KEY), "it is shown");
    assert!(!is_on_disk(&world.state()), "it is in a file of the state directory");
}

#[test]
fn refused_key_is_a_config_failure_whose_text_does_not_hold_the_key() {
    let server =
        ModelServer::start(vec![refuses(401, json!({"message": format!("bad key {KEY}")}))]);
    let world = world(&server);
    let (run, printed) = run(&world);
    assert_eq!(
        (&run["state"], &run["outcome"]),
        (&"dead_lettered".into(), &"config".into()),
        "{run:#}"
    );
    assert!(run["reason"].as_str().expect("a reason").contains("401"), "{run:#}");
    assert!(!run.to_string().contains(KEY) && !printed.contains(KEY), "it is shown");
    assert!(!is_on_disk(&world.state()), "it is in a file of the state directory");
}

#[test]
fn missing_key_is_a_config_failure_that_names_the_variable() {
    let server = ModelServer::start(Vec::new());
    let world = world(&server);
    let run = world.run_task("ask");
    assert_eq!(
        (&run["state"], &run["outcome"]),
        (&"dead_lettered".into(), &"config".into()),
        "{run:#}"
    );
    assert!(run["reason"].as_str().expect("a reason").contains("LOOPBACK_KEY"), "{run:#}");
}
