//! A bundle with one task that is due, a model that heeds what it is told of earlier attempts, and a
//! service that counts effects.

use std::os::unix::process::ExitStatusExt;

use jiff::{ToSpan, Zoned, tz::TimeZone};
use serde_json::{Value, json};

use crate::env::model_server::{
    Asked, ModelServer, Reply, delta, finish, streams, streams_text, usage,
};
use crate::env::world::{Daemon, World, eventually};

const EFFECT: &str = "/effect";

/// What a task does after interruptions.
#[derive(Clone, Copy, Debug)]
pub enum Policy {
    /// The default: three more attempts.
    TriesAgain,
    /// None.
    GivesUp,
}

/// A world with its model and its service.
pub struct Stage {
    pub world: World,
    server: ModelServer,
}

impl Stage {
    /// One task that has been due since midnight, once a daemon has been there before.
    pub fn new(policy: Policy) -> Self {
        let server = ModelServer::answering(|asked| Some(respond(asked)));
        let manifest = format!(
            "version: 1\nname: matrix\ndefaults:\n  model: loopback/m\nproviders:\n  - name: loopback\n    type: openai\n    base_url: {}\n    models: [m]\n",
            server.base_url()
        );
        let world = World::new(&[("manifest.yaml", &manifest), ("tasks/post.yaml", &task(policy))]);
        Stage { world, server }
    }

    /// As if a daemon had ticked last just before midnight: the day's occurrence is due.
    pub fn make_due(&self) {
        let midnight = Zoned::now().with_time_zone(TimeZone::UTC).start_of_day().expect("a day");
        let tick = midnight.timestamp() - 1.second();
        self.world.ticked_last(tick);
    }

    /// Starts a daemon that dies at `fault`, or lives without one.
    pub fn start(&self, fault: Option<&str>) -> Daemon {
        let url = self.server.url(EFFECT);
        let mut variables = vec![("FLEET_STUB_EFFECT_URL", url.as_str())];
        variables.extend(fault.map(|fault| ("FLEET_FAULT", fault)));
        self.world.start_serve(&[], &variables)
    }

    /// Starts a daemon and sees it die at `fault`.
    pub fn dies_at(&self, fault: &str) {
        let status = self.start(Some(fault)).end();
        assert_eq!(status.signal(), Some(9), "{fault}: the daemon ended with {status}");
    }

    /// Starts a daemon that goes on to the end of everything, and stops it.
    pub fn goes_on(&self) {
        let daemon = self.start(None);
        daemon.wait_for("the status page is up");
        self.wait_for_the_end();
        assert_eq!(daemon.stop(), Some(0));
    }

    /// Waits until the run has ended.
    pub fn wait_for_the_end(&self) {
        eventually("the run has ended", || {
            let runs = self.world.runs();
            let ended = |run: &Value| {
                !["pending", "running", "scheduled"].contains(&run["state"].as_str().expect("text"))
            };
            (!runs.is_empty() && runs.iter().all(ended)).then_some(())
        });
    }

    /// How often the effect happened.
    pub fn effects(&self) -> usize {
        self.server.asked().iter().filter(|asked| asked.path == EFFECT).count()
    }
}

fn task(policy: Policy) -> String {
    let most = match policy {
        Policy::TriesAgain => "",
        Policy::GivesUp => "retry_policy: {max_interruptions: 0}\n",
    };
    format!(
        "schedule: '0 0 * * *'\ntimezone: UTC\nprompt: Post it once.\n{most}completion: {{shell: test -e done.txt}}\n"
    )
}

/// The service counts; the model makes the effect, unless it is told that it may have happened.
fn respond(asked: &Asked) -> Reply {
    if asked.path == EFFECT {
        return Reply::Whole { status: 200, headers: Vec::new(), body: "counted".to_owned() };
    }
    let messages = asked.body["messages"].as_array().expect("messages");
    if messages.last().is_some_and(|last| last["role"] == "tool") {
        return streams_text("Done.");
    }
    let told = messages[0].to_string().contains("stub_effect");
    let work = call(0, "bash", json!({"command": "echo done > done.txt"}));
    let post = call(1, "stub_effect", json!({"what": "post"}));
    let calls = if told { json!([work]) } else { json!([work, post]) };
    streams(&[delta(json!({ "tool_calls": calls })), finish("tool_calls"), usage(100, 10)])
}

fn call(index: u32, name: &str, arguments: Value) -> Value {
    json!({
        "index": index, "id": format!("call-{index}"), "type": "function",
        "function": {"name": name, "arguments": arguments.to_string()}
    })
}
