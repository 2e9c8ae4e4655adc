//! Whole runs with a way out: what the task says is what its run reaches.

use std::sync::Arc;

use fleet::bundle::{Revision, load};
use fleet::clock::Clock;
use fleet::config::{Config, Overrides};
use fleet::egress::Dialer;
use fleet::run::{Cancel, EventKind, RunState};
use fleet::runner::{Context, TaskRun};
use fleet::secrets::Redactor;

use crate::env::outside::{Names, Server, dialer, ok};
use crate::env::source_root;
use crate::env::world::World;

/// Carries out a task of the world with this dialer; how it ended, and its events.
pub(super) async fn carry_out(
    world: &World,
    task: &str,
    dialer: Dialer,
) -> (RunState, Vec<EventKind>) {
    let config = Config::read(Overrides { state: Some(world.state()) }).expect("configuration");
    let opened = Context::open(config, Clock::System, Redactor::default()).await;
    let mut context = opened.expect("a context");
    Arc::get_mut(&mut context).expect("nobody else has it yet").dialer = dialer;
    let loaded = load(&world.bundle(), &Revision::Head).expect("read");
    let bundle = loaded.bundle.unwrap_or_else(|| panic!("{:?}", loaded.problems));
    let name = fleet::run::TaskName::new(task.to_owned());
    let begun =
        TaskRun::begin(context.clone(), bundle.clone(), &bundle.tasks[&name], Cancel::default());
    let row = begun.await.expect("begun").carry_out().await.expect("carried out");
    let events = context.store.events_after(row.run_id.clone(), 0, 1000).await.expect("events");
    (row.state, events.into_iter().map(|row| row.event.kind).collect())
}

pub(super) fn verdicts(events: &[EventKind]) -> Vec<String> {
    let line = |event: &EventKind| match event {
        EventKind::EgressJudged { via, target, allowed, reason } => {
            let verdict = if *allowed { "allowed" } else { "denied" };
            Some(format!("{verdict} {target} {via} {}", reason.as_deref().unwrap_or("-")))
        }
        _ => None,
    };
    events.iter().filter_map(line).collect()
}

/// Tool, output and whether it may have had effects outside, of each call.
pub(super) fn outputs(events: &[EventKind]) -> Vec<(&str, &str, bool)> {
    let mut found = Vec::new();
    for event in events {
        if let EventKind::ToolFinished { tool, output, effects, .. } = event {
            found.push((tool.as_str(), output.as_str(), *effects));
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn verdicts_are_in_the_log_of_the_run_and_the_tool_goes_the_same_way() {
    let server = Server::http(|head| ok(head.lines().next().unwrap_or_default())).await;
    let port = server.port();
    let names = Names::default();
    names.answer("good.test", &["127.0.0.1"]);
    let task = format!(
        "prompt: x\nallow_network: ['good.test:{port}']\ncompletion: {{required_tools: [web_fetch]}}\n"
    );
    let script = format!(
        "turns:\n  - tool_calls:\n      - name: bash\n        arguments: {{command: 'curl -sS http://good.test:{port}/inside; curl -sS http://evil.test/'}}\n  \
         - tool_calls:\n      - name: web_fetch\n        arguments: {{url: 'http://good.test:{port}/outside'}}\n  \
         - tool_calls:\n      - name: web_fetch\n        arguments: {{url: 'http://evil.test/'}}\n  - text: Done.\n"
    );
    let world = World::new(&[("tasks/reach.yaml", &task), ("scripted/reach.yaml", &script)]);
    let (state, events) = carry_out(&world, "reach", dialer(&names, server.address)).await;
    assert_eq!(state, RunState::Success, "{events:?}");
    let refused = "the host is not in the task's allow_network";
    assert_eq!(
        verdicts(&events),
        [
            format!("allowed good.test:{port} sandbox -"),
            format!("denied evil.test sandbox {refused}"),
            format!("allowed good.test:{port} web_fetch -"),
            format!("denied evil.test:80 web_fetch {refused}"),
        ]
    );
    let told = outputs(&events);
    assert_eq!(told.len(), 3);
    assert!(told[0].1.starts_with("GET /inside HTTP/1.1fleet: the host is not in"), "{told:?}");
    assert!(told[1].1.starts_with("GET /outside HTTP/1.1\n[status 200"), "{told:?}");
    assert!(told[2].1.starts_with("evil.test:80 was refused: the host is not in"), "{told:?}");
    let effects: Vec<bool> = told.iter().map(|(_, _, effects)| *effects).collect();
    assert_eq!(effects, [true, false, false]);
    assert_eq!(names.asked(), ["good.test", "good.test"]);
    let logs = world.ok(&["runs", "logs", world.runs()[0]["run_id"].as_str().expect("an id")]);
    assert!(logs.contains(&format!("network allowed (sandbox): good.test:{port}")), "{logs}");
    assert!(
        logs.contains(&format!("network denied (web_fetch): evil.test:80: {refused}")),
        "{logs}"
    );
    assert_eq!(logs.matches("network ended: good.test").count(), 2, "{logs}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sealed_run_is_not_offered_the_tool() {
    let script = "turns:\n  - tool_calls:\n      - name: web_fetch\n        arguments: {url: 'https://good.test/'}\n  - text: Done.\n";
    let world = World::new(&[
        ("tasks/sealed.yaml", "prompt: x\ncompletion: {shell: '! env | grep -qi proxy'}\n"),
        ("scripted/sealed.yaml", script),
    ]);
    let names = Names::default();
    let open = ([127, 0, 0, 1], 9).into();
    let (state, events) = carry_out(&world, "sealed", dialer(&names, open)).await;
    assert_eq!(state, RunState::Success, "{events:?}");
    assert!(outputs(&events)[0].1.starts_with("there is no tool \"web_fetch\""), "{events:?}");
    assert_eq!(names.asked(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_reaches_what_it_names_and_nothing_else() {
    let example = source_root().join("examples/egress");
    let mut files = Vec::new();
    for place in ["manifest.yaml", "tasks", "scripted"] {
        let path = example.join(place);
        if path.is_file() {
            files.push((place.to_owned(), path));
            continue;
        }
        for entry in std::fs::read_dir(path).expect("a directory").flatten() {
            let name = entry.file_name().into_string().expect("text");
            files.push((format!("{place}/{name}"), entry.path()));
        }
    }
    let texts: Vec<(String, String)> = files
        .into_iter()
        .map(|(name, path)| (name, std::fs::read_to_string(path).expect("readable")))
        .collect();
    let texts: Vec<(&str, &str)> =
        texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let world = World::new(&texts);
    let names = Names::default();
    let open = ([127, 0, 0, 1], 9).into();
    let (state, events) = carry_out(&world, "gather", dialer(&names, open)).await;
    assert_eq!(state, RunState::Success, "{events:?}");
    let refused = "the host is not in the task's allow_network";
    let address = "the host is an address, not a name";
    assert_eq!(
        verdicts(&events),
        [
            "denied data.example.org sandbox the name cannot be resolved: there is no such name"
                .to_owned(),
            format!("denied tracker.example.net sandbox {refused}"),
            format!("denied 169.254.169.254 sandbox {address}"),
            format!("denied 0x7f.1 sandbox {address}"),
            format!("denied tracker.example.net:443 web_fetch {refused}"),
        ]
    );
    assert_eq!(names.asked(), ["data.example.org"]);
    for task in ["mirror", "sealed"] {
        let (state, events) = carry_out(&world, task, dialer(&names, open)).await;
        assert_eq!(state, RunState::Success, "{task}: {events:?}");
    }
}
