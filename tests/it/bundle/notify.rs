//! `notify` and the SLA keys: each mistake by its place, code and words; what a valid bundle holds.

use std::time::Duration;

use fleet::bundle::{Bundle, Channel, ChannelKind, HostCommand, Sla, Smtp, Tls, WebhookUrl};
use fleet::run::NoticeEvent;

use super::{MANIFEST, SCRIPT, check, check_task, hints, lines, load_files};

fn check_channels(notify: &str) -> Vec<String> {
    check(&[("manifest.yaml", &manifest(notify))])
}

fn manifest(notify: &str) -> String {
    format!("{MANIFEST}notify:\n{notify}")
}

fn bundle(manifest: &str, task: &str) -> std::sync::Arc<Bundle> {
    let loaded = load_files(&[
        ("manifest.yaml", manifest.as_bytes()),
        ("tasks/t.yaml", task.as_bytes()),
        ("scripted/t.yaml", SCRIPT.as_bytes()),
    ]);
    assert_eq!(lines(&loaded.problems), [""; 0]);
    loaded.bundle.expect("a bundle")
}

const THREE: &str = "  - {name: hook, type: webhook, url: 'https://a.example/x?y=1', secret_env: KEY}\n  \
    - {name: mail, type: smtp, server: '[::1]:25', tls: none, from: a@b.example, to: [c@d.example]}\n  \
    - {name: run, type: command, command: [logger, -t, fleet], on: [repeated_failure, failure], after_failures: 5}\n";

#[test]
fn channels_are_read_with_their_defaults() {
    let bundle = bundle(&manifest(THREE), "prompt: hi\n");
    let task = bundle.tasks.values().next().expect("a task");
    let names: Vec<&str> = task.notify.iter().map(|channel| channel.name.as_str()).collect();
    assert_eq!(names, ["hook", "mail", "run"], "a task without a list tells every channel");
    let defaults = vec![
        NoticeEvent::Failure,
        NoticeEvent::Recovery,
        NoticeEvent::Parked,
        NoticeEvent::Approval,
        NoticeEvent::SlaOverdue,
    ];
    let ChannelKind::Webhook(hook) = &bundle.channels["hook"].kind else { panic!("a webhook") };
    assert_eq!(hook.url, WebhookUrl::Plain("https://a.example/x?y=1".into()));
    assert_eq!(
        (&bundle.channels["hook"].on, bundle.channels["hook"].after_failures),
        (&defaults, 3)
    );
    let mail = Smtp {
        host: "::1".into(),
        port: 25,
        tls: Tls::None,
        login_env: None,
        from: "a@b.example".into(),
        to: vec!["c@d.example".into()],
    };
    assert_eq!(bundle.channels["mail"].kind, ChannelKind::Smtp(mail));
    let run = Channel {
        name: "run".into(),
        kind: ChannelKind::Command(HostCommand {
            program: "logger".into(),
            arguments: vec!["-t".into(), "fleet".into()],
            timeout: Duration::from_secs(30),
        }),
        on: vec![NoticeEvent::Failure, NoticeEvent::RepeatedFailure],
        after_failures: 5,
    };
    assert_eq!(*bundle.channels["run"], run);
}

#[test]
fn tasks_choose_among_the_channels() {
    let chosen = |defaults: &str, task: &str| -> Vec<String> {
        let manifest = manifest(THREE).replace("session}", &format!("session{defaults}}}"));
        let bundle = bundle(&manifest, task);
        let task = bundle.tasks.values().next().expect("a task");
        task.notify.iter().map(|channel| channel.name.clone()).collect()
    };
    assert_eq!(chosen("", "prompt: hi\nnotify: [run]\n"), ["run"]);
    assert_eq!(chosen("", "prompt: hi\nnotify: []\n"), [""; 0]);
    assert_eq!(chosen(", notify: [mail]", "prompt: hi\n"), ["mail"]);
    assert_eq!(chosen(", notify: [mail]", "prompt: hi\nnotify: [run, hook]\n"), ["hook", "run"]);
    assert_eq!(chosen(", notify: []", "prompt: hi\n"), [""; 0]);
}

#[test]
fn unknown_channels_and_events_are_named_with_what_was_meant() {
    let manifest =
        manifest("  - {name: on-call, type: command, command: [a], on: [recovry, failure]}\n");
    let files = [
        ("manifest.yaml", manifest.as_str()),
        ("tasks/t.yaml", "prompt: hi\nnotify: [oncall, on-call, on-call]\n"),
        ("scripted/t.yaml", SCRIPT),
    ];
    assert_eq!(
        check(&files),
        [
            "manifest.yaml:6:55 invalid-value: notify[0].on[0]: \"recovry\" is not known",
            "tasks/t.yaml:2:10 unknown-channel: no channel is named \"oncall\"",
            "tasks/t.yaml:2:27 ?duplicate-entry: notify: \"on-call\" is listed twice",
        ]
    );
    let meant = hints(&files);
    assert_eq!(meant[0].as_deref(), Some("did you mean \"recovery\"?"));
    assert_eq!(meant[1].as_deref(), Some("did you mean \"on-call\"?"));
    let defaults = format!("{MANIFEST}notify: []\n").replace("session}", "session, notify: [x]}");
    assert_eq!(
        check(&[("manifest.yaml", &defaults)]),
        ["manifest.yaml:4:46 unknown-channel: no channel is named \"x\""]
    );
}

#[test]
fn missing_parts_are_named_once_each() {
    let seen = check_channels(
        "  - {type: webhook}\n  - {name: b}\n  - {name: c, type: webhook}\n  - {name: d, type: smtp}\n  \
         - {name: e, type: command}\n  - {name: f, type: webhok}\n",
    );
    assert_eq!(
        seen,
        [
            "manifest.yaml:6:5 missing-key: \"name\" is missing in notify[0]",
            "manifest.yaml:6:5 missing-key: \"secret_env\" is missing in notify[0]",
            "manifest.yaml:6:5 missing-key: \"url\" is missing in notify[0]",
            "manifest.yaml:7:5 missing-key: \"type\" is missing in notify[1]",
            "manifest.yaml:8:5 missing-key: \"secret_env\" is missing in notify[2]",
            "manifest.yaml:8:5 missing-key: \"url\" is missing in notify[2]",
            "manifest.yaml:9:5 missing-key: \"from\" is missing in notify[3]",
            "manifest.yaml:9:5 missing-key: \"server\" is missing in notify[3]",
            "manifest.yaml:9:5 missing-key: \"to\" is missing in notify[3]",
            "manifest.yaml:10:5 missing-key: \"command\" is missing in notify[4]",
            "manifest.yaml:11:21 invalid-value: notify[5].type: \"webhok\" is not known",
        ]
    );
}

#[test]
fn parts_of_another_type_are_named() {
    let seen = check_channels(
        "  - {name: a, type: command, command: [a], url: 'https://a.example', tls: none}\n  \
         - {name: b, type: webhook, url: 'https://a.example', secret_env: K, timeout: 3s, after_failures: 2}\n",
    );
    assert_eq!(
        seen,
        [
            "manifest.yaml:6:44 useless-key: a command channel has no url",
            "manifest.yaml:6:70 useless-key: a command channel has no tls",
            "manifest.yaml:7:71 useless-key: a webhook channel has no timeout",
            "manifest.yaml:7:84 useless-key: after_failures counts only for repeated_failure, which on \
             does not list",
        ]
    );
}

#[test]
fn values_that_nothing_can_be_sent_with_are_refused() {
    let seen = check_channels(
        "  - {name: a, type: webhook, url: 'http://a.example/', secret_env: K}\n  \
         - {name: b, type: webhook, url: 'ftp://a.example/', secret_env: K}\n  \
         - {name: c, type: webhook, url: 'https://me@a.example/', secret_env: k-ey}\n  \
         - {name: d, type: webhook, url: 'https://a.example/', url_env: U, secret_env: K}\n  \
         - {name: e, type: smtp, server: mail, from: me, to: [], username_env: U}\n  \
         - {name: f, type: smtp, server: 'm.example:25', tls: none, from: a@b.example, to: [x]}\n  \
         - {name: g, type: command, command: []}\n  \
         - {name: h, type: command, command: [bin/x], timeout: 1h, on: []}\n  \
         - {name: h, type: command, command: [x]}\n  \
         - {name: I, type: command, command: [x]}\n",
    );
    assert_eq!(
        seen,
        [
            "manifest.yaml:6:35 invalid-value: a webhook goes over https unless its receiver is on this host",
            "manifest.yaml:7:35 invalid-value: this is not an http(s) URL",
            "manifest.yaml:8:35 invalid-value: the URL holds a user",
            "manifest.yaml:8:72 invalid-value: this is not the name of an environment variable",
            "manifest.yaml:9:57 useless-key: url and url_env exclude each other",
            "manifest.yaml:10:5 missing-key: \"password_env\" is missing in notify[4]",
            "manifest.yaml:10:35 invalid-value: \"mail\" is not a mail server's host:port",
            "manifest.yaml:10:47 invalid-value: \"me\" is not a mail address",
            "manifest.yaml:10:55 invalid-value: the mail goes to nobody",
            "manifest.yaml:11:56 invalid-value: tls: none sends the mail in the open to m.example",
            "manifest.yaml:11:86 invalid-value: \"x\" is not a mail address",
            "manifest.yaml:12:39 invalid-value: the command is empty",
            "manifest.yaml:13:40 invalid-value: \"bin/x\" is not a program",
            "manifest.yaml:13:57 invalid-value: timeout is out of range",
            "manifest.yaml:13:65 invalid-value: the channel is told of nothing",
            "manifest.yaml:14:12 duplicate-name: a channel \"h\" is declared twice",
            "manifest.yaml:15:12 invalid-name: \"I\" cannot be a channel's name",
        ]
    );
}

#[test]
fn secrets_in_a_channel_are_found_and_not_repeated() {
    let key = ["ghp_", "abcdefghijklmnopqrstuvwxyz0123456789"].concat();
    let seen = check_channels(&format!(
        "  - {{name: a, type: webhook, url: 'https://u:p4ssw0rd@a.example/', secret_env: {key}}}\n"
    ));
    assert_eq!(
        seen,
        [
            "manifest.yaml:6:36 secret-in-bundle: this looks like a password in a URL",
            "manifest.yaml:6:80 secret-in-bundle: this looks like a GitHub token",
        ]
    );
}

#[test]
fn expected_durations_become_instants_of_warning_and_overdue() {
    let sla = |task: &str| bundle(MANIFEST, task).tasks.values().next().expect("a task").sla;
    let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
    assert_eq!(sla("prompt: hi\n"), None);
    assert_eq!(
        sla("prompt: hi\nexpected_duration_minutes: 10\n"),
        Some(Sla { expected: minutes(10), warn_after: minutes(10), overdue_after: minutes(20) })
    );
    assert_eq!(
        sla("prompt: hi\nexpected_duration_minutes: 10\nsla_warn: 1.5\nsla_fail: 3\n"),
        Some(Sla { expected: minutes(10), warn_after: minutes(15), overdue_after: minutes(30) })
    );
}

#[test]
fn sla_keys_that_mean_nothing_are_refused() {
    assert_eq!(
        check_task("prompt: hi\nsla_warn: 1\nsla_fail: 2\n"),
        [
            "tasks/t.yaml:2:1 useless-key: sla_warn is a multiple of expected_duration_minutes, which is \
             missing",
            "tasks/t.yaml:3:1 useless-key: sla_fail is a multiple of expected_duration_minutes, which is \
             missing",
        ]
    );
    assert_eq!(
        check_task("prompt: hi\nexpected_duration_minutes: 0\nsla_fail: 1\n"),
        [
            "tasks/t.yaml:2:28 invalid-value: expected_duration_minutes: 0 is out of range",
            "tasks/t.yaml:3:11 invalid-value: sla_fail is 1, and sla_warn is 1",
        ]
    );
}
