//! From the end of a run to what people are told.

use std::path::Path;
use std::time::Duration;

use fleet::run::RunState;
use fleet::store::NoticeRow;
use serde_json::{Value, json};

use crate::env::mail_server::MailServer;
use crate::env::receiver::{Received, Receiver};
use crate::env::simulation::Simulation;
use crate::env::source_root;
use crate::env::world::{BASE, World, eventually};

const KEY: &str = "planted-key-4711-abcdefgh";
const PATH_SECRET: &str = "planted-path-0815-ijklmnop";
const TALK: &str = "turns:\n  - text: I am done.\nloop_from: 0\n";
const FAILS: &str = "schedule: '0 6 * * *'\nprompt: Do it.\ncompletion: {shell: 'false'}\n";
const WORKS: &str = "schedule: '0 6 * * *'\nprompt: Do it.\ncompletion: {shell: 'true'}\n";

/// A manifest with these channels.
fn manifest(notify: &str) -> String {
    format!("{}notify:\n{notify}", BASE[0].1)
}

/// A channel whose key is in a variable that every test process has.
fn hook(url: &str) -> String {
    manifest(&format!(
        "  - name: ops\n    type: webhook\n    url: {url}\n    secret_env: NEXTEST_RUN_ID\n    on: [failure, sla_warning, sla_overdue]\n"
    ))
}

fn events(received: &[Received]) -> Vec<String> {
    let event = |received: &Received| received.json()["event"].as_str().map(str::to_owned);
    received.iter().filter_map(event).collect()
}

/// Files below `dir` that hold the text.
fn holding(dir: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).expect("a directory").flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.extend(holding(&entry.path(), text)),
            Ok(kind) if kind.is_file() => {
                let bytes = std::fs::read(entry.path()).unwrap_or_default();
                if bytes.windows(text.len()).any(|window| window == text.as_bytes()) {
                    found.push(entry.path().display().to_string());
                }
            }
            _ => {}
        }
    }
    found
}

#[test]
fn each_failure_the_second_in_a_row_and_the_recovery_are_told_once_and_secrets_stay_secret() {
    let receiver = Receiver::start(&[]);
    let mail = MailServer::start(&[]);
    let url = format!("{}/{PATH_SECRET}", receiver.url());
    let channels = manifest(&format!(
        "  - name: ops\n    type: webhook\n    url_env: OPS_URL\n    secret_env: OPS_KEY\n    on: [failure, repeated_failure, recovery]\n    after_failures: 2\n  - name: mail\n    type: smtp\n    server: {}\n    tls: none\n    from: a@example.org\n    to: [b@example.org]\n    on: [recovery]\n",
        mail.address()
    ));
    let task = |text: &str| text.replace("schedule: '0 6 * * *'\n", "");
    let world = World::new(&[
        ("manifest.yaml", &channels),
        ("tasks/job.yaml", &task(FAILS)),
        ("scripted/job.yaml", TALK),
    ]);
    let environment = [("OPS_URL", url.as_str()), ("OPS_KEY", KEY), ("FLEET_LOG", "trace")];
    let daemon = world.serve_with(&environment);
    world.ok(&["sched", "trigger", "job"]);
    receiver.wait_for(1);
    world.ok(&["sched", "trigger", "job"]);
    receiver.wait_for(3);
    world.commit(&[("tasks/job.yaml", &task(WORKS))], "mend it");
    daemon.wait_for("a new bundle is in force");
    world.ok(&["sched", "trigger", "job"]);
    let received = receiver.wait_for(4);
    eventually("the mail comes", || (!mail.mails().is_empty()).then_some(()));
    eventually("nothing waits", || {
        (world.json(&["notify", "list", "--json"]) == json!([])).then_some(())
    });

    assert_eq!(events(&received), ["failure", "failure", "repeated_failure", "recovery"]);
    let last = received[3].json();
    assert_eq!(
        (&last["state"], &last["failures_in_a_row"], &last["subject"]),
        (&json!("success"), &json!(2), &json!("fleet: task job succeeds again, after 2 failures"))
    );
    let keys: std::collections::BTreeSet<&String> =
        received.iter().map(|received| &received.headers["idempotency-key"]).collect();
    assert_eq!(keys.len(), 4);
    assert_eq!(mail.mails().len(), 1);
    let runs = world.runs();
    let ended: Vec<&Value> = runs.iter().map(|run| &run["run_id"]).rev().collect();
    let told: Vec<Value> =
        received.iter().map(|received| received.json()["run_id"].clone()).collect();
    assert_eq!(told.iter().collect::<Vec<_>>(), [ended[0], ended[1], ended[1], ended[2]]);
    daemon.terminate();
    daemon.wait_for("stopped");
    let log = daemon.log();
    assert!(log.contains("sent a notice"), "{log}");
    assert_eq!(daemon.stop(), Some(0));
    for secret in [KEY, PATH_SECRET] {
        assert!(!log.contains(secret), "{log}");
        assert_eq!(holding(&world.state(), secret), [""; 0]);
    }
}

/// The one notice that waits, once `enough` holds of it.
async fn waiting(simulation: &Simulation, enough: impl Fn(&NoticeRow) -> bool) -> NoticeRow {
    let mut look_again = tokio::time::interval(Duration::from_millis(20));
    for _ in 0..3000 {
        look_again.tick().await;
        let rows = simulation.context.store.notices(10).await.expect("the notices");
        if let Some(row) = rows.into_iter().find(&enough) {
            return row;
        }
    }
    panic!("no notice came to that");
}

async fn nothing_waits(simulation: &Simulation) {
    let mut look_again = tokio::time::interval(Duration::from_millis(20));
    while !simulation.context.store.notices(10).await.expect("the notices").is_empty() {
        look_again.tick().await;
    }
}

/// A daemon in whose bundle a run has failed.
async fn failed(world: &World) -> Simulation {
    let simulation = Simulation::start(world, "2026-07-01T05:59:59Z").await;
    simulation.clock.set("2026-07-01T06:00:00Z".parse().expect("an instant"));
    simulation.runs(|runs| runs.iter().any(|run| run.state == RunState::DeadLettered)).await;
    simulation
}

#[tokio::test(flavor = "multi_thread")]
async fn notice_that_was_refused_is_sent_again_with_the_same_key() {
    let receiver = Receiver::start(&[500, 404]);
    let world = World::new(&[
        ("manifest.yaml", &hook(&receiver.url())),
        ("tasks/job.yaml", FAILS),
        ("scripted/job.yaml", TALK),
    ]);
    let simulation = failed(&world).await;
    for tries in 1..=2 {
        let row = waiting(&simulation, |row| row.tries == tries && row.last_error.is_some()).await;
        let status = if tries == 1 { 500 } else { 404 };
        let error = format!("{} answered with status {status}", receiver.address());
        let known = waiting(&simulation, |row| row.last_error.as_ref() == Some(&error)).await;
        assert_eq!(known.id, row.id);
        simulation.clock.set(known.try_at.expect("it is tried again"));
    }
    let received = receiver.wait_for(3);
    nothing_waits(&simulation).await;
    let keys: Vec<&String> =
        received.iter().map(|received| &received.headers["idempotency-key"]).collect();
    assert_eq!(keys, [keys[0]; 3]);
    assert_eq!(received[0].body, received[2].body);
    assert_ne!(
        received[0].headers["x-fleet-signature"], received[2].headers["x-fleet-signature"],
        "each try is signed with its own time"
    );
    simulation.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn notice_waits_for_a_receiver_that_is_down() {
    let address = Receiver::start(&[]).address();
    let world = World::new(&[
        ("manifest.yaml", &hook(&format!("http://{address}/fleet"))),
        ("tasks/job.yaml", FAILS),
        ("scripted/job.yaml", TALK),
    ]);
    let simulation = failed(&world).await;
    let row = waiting(&simulation, |row| row.last_error.is_some()).await;
    assert!(row.last_error.expect("an error").contains("cannot be reached"));
    // The next start goes on where this one ended.
    simulation.end().await;
    let receiver = Receiver::start_at(address, &[]);
    let simulation = Simulation::start(&world, "2026-07-01T06:00:30Z").await;
    let received = receiver.wait_for(1);
    nothing_waits(&simulation).await;
    assert_eq!(received[0].headers["idempotency-key"], row.notice.idempotency_key);
    simulation.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn notice_of_a_channel_that_vanished_is_given_up_and_seen() {
    let address = Receiver::start(&[]).address();
    let world = World::new(&[
        ("manifest.yaml", &hook(&format!("http://{address}/fleet"))),
        ("tasks/job.yaml", FAILS),
        ("scripted/job.yaml", TALK),
    ]);
    let mut simulation = failed(&world).await;
    let row = waiting(&simulation, |row| row.last_error.is_some()).await;
    simulation.bundles.borrow_and_update();
    world.commit(&[("manifest.yaml", BASE[0].1)], "tell nobody");
    simulation.bundles.changed().await.expect("the keeper lives");
    simulation.clock.set(row.try_at.expect("it is tried again"));
    let given_up = waiting(&simulation, |row| row.given_up_at.is_some()).await;
    assert_eq!(given_up.last_error.as_deref(), Some("the bundle in force has no channel ops"));
    simulation.end().await;
    let status = || -> Value {
        let output = world.fleet(&["status", "--json"]);
        assert_eq!(output.status.code(), Some(6));
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    let reasons = status()["reasons"].to_string();
    assert!(reasons.contains("1 notice(s) could not be sent"), "{reasons}");
    let listed = world.json(&["notify", "list", "--json"]);
    assert_eq!((&listed[0]["task"], &listed[0]["event"]), (&json!("job"), &json!("failure")));
    let id = listed[0]["id"].to_string();
    assert_eq!(world.ok(&["notify", "retry", &id]), format!("notice {id} waits to be sent\n"));
    assert_eq!(status()["totals"]["notices_waiting"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn run_that_takes_long_is_warned_of_then_overdue_and_goes_on() {
    let receiver = Receiver::start(&[]);
    let task = WORKS.replace("prompt", "expected_duration_minutes: 10\nprompt");
    let slow = "turns:\n  - delay: 1h\n    text: I am done.\n";
    let world = World::new(&[
        ("manifest.yaml", &hook(&receiver.url())),
        ("tasks/job.yaml", &task),
        ("scripted/job.yaml", slow),
    ]);
    let simulation = Simulation::start(&world, "2026-07-01T05:59:59Z").await;
    simulation.clock.set("2026-07-01T06:00:00Z".parse().expect("an instant"));
    let runs = simulation.runs_in_time(|runs| runs.iter().any(|run| run.state.is_terminal())).await;
    assert_eq!(runs[0].state, RunState::Success);
    let received = receiver.wait_for(2);
    nothing_waits(&simulation).await;
    assert_eq!(events(&received), ["sla_warning", "sla_overdue"]);
    assert_eq!(
        (&received[0].json()["state"], &received[1].json()["reason"]),
        (&json!("running"), &json!("the attempt runs for 20.0 minutes, and 10.0 were expected"))
    );
    simulation.end().await;
    let run = runs[0].run_id.to_string();
    let log = world.ok(&["runs", "logs", &run]);
    assert!(log.contains("longer than expected: runs for 10m 0s, expected 10m 0s"), "{log}");
    assert!(log.contains("overdue: runs for 20m 0s, expected 10m 0s"), "{log}");
}

#[test]
fn hung_channel_holds_up_neither_the_schedule_nor_the_stop_and_leaves_no_process() {
    let channels = |dir: &Path| {
        manifest(&format!(
            "  - name: hung\n    type: command\n    command: [sh, -c, 'echo $$ > {}/pid; sleep 1000']\n    timeout: 10m\n",
            dir.display()
        ))
    };
    let world = World::new(&[("tasks/job.yaml", &FAILS.replace("0 6 * * *", "0 0 29 2 *"))]);
    world.commit(
        &[
            ("manifest.yaml", &channels(world.path())),
            ("scripted/job.yaml", TALK),
            ("tasks/next.yaml", "prompt: Do it.\ncompletion: {shell: 'true'}\n"),
            ("scripted/next.yaml", TALK),
        ],
        "channels",
    );
    let daemon = world.serve();
    world.ok(&["sched", "trigger", "job"]);
    let pid = eventually("the command hangs", || {
        std::fs::read_to_string(world.path().join("pid")).ok().filter(|pid| pid.ends_with('\n'))
    });
    world.ok(&["sched", "trigger", "next"]);
    daemon.wait_for("run succeeded");
    let listed = world.json(&["notify", "list", "--json"]);
    assert_eq!((&listed[0]["tries"], &listed[0]["last_error"]), (&json!(1), &Value::Null));
    assert_eq!(daemon.stop(), Some(0));
    let process = format!("/proc/{}", pid.trim());
    eventually("it is gone", || (!Path::new(&process).exists()).then_some(()));
    assert_eq!(world.json(&["notify", "list", "--json"]).as_array().map(Vec::len), Some(1));
}

#[test]
fn example_tells_its_channel_without_a_daemon() {
    let example = source_root().join("examples/notices");
    let read = |path: &str| std::fs::read_to_string(example.join(path)).expect("it is there");
    let files = [
        "manifest.yaml",
        "tasks/broken-import.yaml",
        "tasks/quiet-import.yaml",
        "scripted/broken-import.yaml",
        "scripted/quiet-import.yaml",
    ];
    let texts: Vec<(&str, String)> = files.iter().map(|file| (*file, read(file))).collect();
    let files: Vec<(&str, &str)> =
        texts.iter().map(|(file, text)| (*file, text.as_str())).collect();
    let world = World::new(&files);
    let quiet = world.run_task("quiet-import");
    let broken = world.run_task("broken-import");
    assert_eq!(
        (&quiet["state"], &broken["state"]),
        (&json!("dead_lettered"), &json!("dead_lettered"))
    );
    let told =
        std::fs::read_to_string(world.path().join("fleet-notices.jsonl")).expect("it was told");
    let told: Vec<Value> =
        told.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!((&told[0]["run_id"], &told[0]["event"]), (&broken["run_id"], &json!("failure")));
}
