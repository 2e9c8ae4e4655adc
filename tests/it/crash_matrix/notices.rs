//! A daemon that dies around the sending of a notice: it is told at least once, and each repetition
//! carries the same key.

use std::os::unix::process::ExitStatusExt;

use crate::env::leftovers;
use crate::env::receiver::Receiver;
use crate::env::world::{BASE, Daemon, World, eventually};

/// The points of this file.
pub const FAULTS: &[&str] = &["before_outbox_send", "after_outbox_send"];

const TALK: &str = "turns:\n  - text: I am done.\nloop_from: 0\n";
const FAILS: &str = "prompt: Do it.\ncompletion: {shell: 'false'}\n";

fn start(world: &World, fault: &str) -> Daemon {
    let variables =
        [("HOOK_KEY", "planted-key-4711"), ("FLEET_NOTICE_CLAIM", "200"), ("FLEET_FAULT", fault)];
    world.start_serve(&[], &variables)
}

/// The keys of what arrived, in order, when the daemon died once at `fault`.
fn keys_after(fault: &str) -> Vec<String> {
    let receiver = Receiver::start(&[]);
    let url = receiver.url();
    let manifest = format!(
        "{}notify:\n  - {{name: ops, type: webhook, url: '{url}', secret_env: HOOK_KEY, on: [failure]}}\n",
        BASE[0].1
    );
    let world = World::new(&[
        ("manifest.yaml", &manifest),
        ("tasks/t.yaml", FAILS),
        ("scripted/t.yaml", TALK),
    ]);
    world.ok(&["sched", "trigger", "t", "--bundle", world.bundle().to_str().expect("UTF-8")]);
    let status = start(&world, fault).end();
    assert_eq!(status.signal(), Some(9), "{fault}: the daemon ended with {status}");

    let daemon = start(&world, "");
    daemon.wait_for("the status page is up");
    eventually("nothing waits to be sent", || {
        let waiting = world.json(&["notify", "list", "--json"]);
        waiting.as_array().expect("a list").is_empty().then_some(())
    });
    assert_eq!(daemon.stop(), Some(0));
    leftovers::none(&world);
    let key = |json: serde_json::Value| json["idempotency_key"].as_str().map(str::to_owned);
    receiver.received().iter().filter_map(|received| key(received.json())).collect()
}

#[test]
fn before_the_sending_the_next_start_tells_it_once() {
    let keys = keys_after(FAULTS[0]);
    assert_eq!(keys.len(), 1, "{keys:?}");
}

#[test]
fn after_the_sending_the_next_start_tells_it_again_with_the_same_key() {
    let keys = keys_after(FAULTS[1]);
    assert_eq!(keys.len(), 2, "{keys:?}");
    assert_eq!(keys[0], keys[1]);
}
