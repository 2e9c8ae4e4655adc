//! `fleet notify`.

use std::path::Path;

use serde_json::json;

use crate::env::receiver::Receiver;
use crate::env::world::{BASE, World};

const KEY: &str = "planted-key-4711-abcdefgh";

fn world(url: &str) -> World {
    let notify =
        format!("notify:\n  - {{name: ops, type: webhook, url: '{url}', secret_env: OPS_KEY}}\n");
    World::new(&[("manifest.yaml", &format!("{}{notify}", BASE[0].1))])
}

fn bundle(world: &World) -> String {
    world.bundle().display().to_string()
}

#[test]
fn test_notice_says_what_came_of_it() {
    let receiver = Receiver::start(&[204, 503]);
    let world = world(&receiver.url());
    let bundle = bundle(&world);
    let test = |channel: &str, key: Option<&str>| {
        let mut command = world.command(&["notify", "test", channel, "--bundle", &bundle]);
        command.envs(key.map(|key| ("OPS_KEY", key)));
        let output = command.output().expect("fleet starts");
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(said).expect("UTF-8"))
    };
    let address = receiver.address();
    assert_eq!(
        test("ops", Some(KEY)),
        (Some(0), format!("sent by webhook to ops: {address} answered with status 204\n"))
    );
    let received = receiver.received()[0].json();
    assert_eq!(
        (&received["test"], &received["subject"]),
        (&json!(true), &json!("fleet: this is a test"))
    );
    assert_eq!(
        test("ops", Some(KEY)),
        (Some(1), format!("error: {address} answered with status 503\n"))
    );
    let (code, said) = test("ops", None);
    assert_eq!(code, Some(1));
    assert!(said.contains("OPS_KEY (secret_env of channel ops) is not set"), "{said}");
    let (code, said) = test("opps", Some(KEY));
    assert_eq!(code, Some(2));
    assert!(said.contains("its channels are ops"), "{said}");
}

#[test]
fn lists_without_a_store_make_none() {
    let world = world("https://alerts.example.org/");
    assert_eq!(world.ok(&["notify", "list"]), "no notice waits\n");
    assert_eq!(world.json(&["notify", "list", "--json"]), json!([]));
    assert_eq!(world.ok(&["notify", "retry", "--all"]), "no notice was given up\n");
    assert_eq!(world.fleet(&["notify", "retry", "7"]).status.code(), Some(2));
    assert!(!Path::new(&world.state()).join("fleet.db").exists());
}
