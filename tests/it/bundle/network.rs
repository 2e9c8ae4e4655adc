//! `allow_network` and `sandbox.network_allowlist`: each mistake by its place, once.

use fleet::egress::NetworkPolicy;

use super::{SCRIPT, check, check_task, hints, load_files};

const PROVIDERS: &str = "providers: [{name: scripted, type: scripted}]\n";

fn manifest(rest: &str) -> String {
    format!("version: 1\nname: test\n{PROVIDERS}{rest}")
}

/// A task's policy in words.
fn policy(manifest: &str, task: &str) -> String {
    let loaded = load_files(&[
        ("manifest.yaml", manifest.as_bytes()),
        ("tasks/t.yaml", task.as_bytes()),
        ("scripted/t.yaml", SCRIPT.as_bytes()),
    ]);
    let bundle = loaded.bundle.unwrap_or_else(|| panic!("{:?}", loaded.problems));
    let task = bundle.tasks.values().next().expect("a task");
    match &task.network {
        NetworkPolicy::Sealed => "sealed".to_owned(),
        open => open.to_string(),
    }
}

#[test]
fn a_task_inherits_the_default_and_true_is_what_the_allowlist_holds() {
    let none = manifest("defaults: {model: scripted/session}\n");
    let bounded = manifest(
        "defaults: {model: scripted/session, allow_network: true}\n\
         sandbox: {network_allowlist: [a.test, '*.b.test:8443']}\n",
    );
    let all = "every public host, on ports 443 and 80";
    let table = [
        (&none, "prompt: x\n", "sealed"),
        (&none, "prompt: x\nallow_network: false\n", "sealed"),
        (&none, "prompt: x\nallow_network: true\n", all),
        (
            &none,
            "prompt: x\nallow_network: [A.Test., '*.b.test', 'c.test:8443']\n",
            "a.test, *.b.test, c.test:8443",
        ),
        (&bounded, "prompt: x\n", "a.test, *.b.test:8443"),
        (&bounded, "prompt: x\nallow_network: false\n", "sealed"),
        (&bounded, "prompt: x\nallow_network: ['x.b.test:8443']\n", "x.b.test:8443"),
    ];
    for (manifest, task, want) in table {
        assert_eq!(policy(manifest, task), want, "{task}");
    }
}

#[test]
fn every_mistake_of_a_list_is_told_at_its_entry() {
    let task = "prompt: x\n\
                allow_network:\n  - https://a.test/x\n  - 10.0.0.1\n  - a.test\n  - A.TEST.\n  - '*.com'\n  - localhost\n  \
                - bücher.example\n  - a.test:0\n";
    assert_eq!(
        check_task(task),
        [
            "tasks/t.yaml:3:5 invalid-host: \"https://a.test/x\" is not a host that can be allowed: it is a URL",
            "tasks/t.yaml:4:5 invalid-host: \"10.0.0.1\" is not a host that can be allowed: the host is an \
             address, not a name",
            "tasks/t.yaml:6:5 ?duplicate-entry: allow_network: a.test is listed twice",
            "tasks/t.yaml:7:5 invalid-host: \"*.com\" is not a host that can be allowed: *.com would allow \
             every host below a top-level domain",
            "tasks/t.yaml:8:5 invalid-host: \"localhost\" is not a host that can be allowed: the host has no \
             dot: it is no public name",
            "tasks/t.yaml:9:5 invalid-host: \"bücher.example\" is not a host that can be allowed: the host is \
             not ASCII",
            "tasks/t.yaml:10:5 invalid-host: \"a.test:0\" is not a host that can be allowed: the port \"0\" \
             is not a number from 1 to 65535",
        ]
    );
    assert_eq!(
        check_task("prompt: x\nallow_network: []\n"),
        ["tasks/t.yaml:2:16 invalid-value: the list of hosts is empty"]
    );
    assert_eq!(
        check_task("prompt: x\nallow_network: a.test\n"),
        [
            "tasks/t.yaml:2:16 wrong-type: allow_network: the text \"a.test\" is not true, false or a list of hosts"
        ]
    );
}

#[test]
fn what_the_allowlist_does_not_hold_is_told_where_it_is_asked_for() {
    let bounded = manifest(
        "defaults: {model: scripted/session, allow_network: [c.test]}\n\
         sandbox: {network_allowlist: [a.test, '*.b.test']}\n",
    );
    let files = [
        ("manifest.yaml", bounded.as_str()),
        ("tasks/t.yaml", "prompt: x\nallow_network: [a.test, b.test, x.b.test, 'a.test:8443']\n"),
        ("scripted/t.yaml", SCRIPT),
        ("tasks/u.yaml", "prompt: x\n"),
        ("scripted/u.yaml", SCRIPT),
    ];
    assert_eq!(
        check(&files),
        [
            "manifest.yaml:4:53 host-not-allowed: c.test is not within the manifest's sandbox.network_allowlist",
            "tasks/t.yaml:2:25 host-not-allowed: b.test is not within the manifest's sandbox.network_allowlist",
            "tasks/t.yaml:2:43 host-not-allowed: a.test:8443 is not within the manifest's \
             sandbox.network_allowlist",
        ]
    );
    assert_eq!(hints(&files)[0], Some("it allows a.test, *.b.test".to_owned()));
    let closed =
        manifest("defaults: {model: scripted/session}\nsandbox: {network_allowlist: []}\n");
    let files = [
        ("manifest.yaml", closed.as_str()),
        ("tasks/t.yaml", "prompt: x\nallow_network: true\n"),
        ("scripted/t.yaml", SCRIPT),
    ];
    assert_eq!(
        check(&files),
        ["tasks/t.yaml:2:16 host-not-allowed: the manifest's network_allowlist allows no host"]
    );
}

#[test]
fn a_wrong_allowlist_is_one_problem() {
    let wrong = manifest(
        "defaults: {model: scripted/session}\nsandbox: {network_allowlist: [a.test, '[::1]']}\n",
    );
    let files = [
        ("manifest.yaml", wrong.as_str()),
        ("tasks/t.yaml", "prompt: x\nallow_network: [b.test]\n"),
        ("scripted/t.yaml", SCRIPT),
    ];
    assert_eq!(
        check(&files),
        [
            "manifest.yaml:5:39 invalid-host: \"[::1]\" is not a host that can be allowed: the host is an \
          address, not a name"
        ]
    );
}

#[test]
fn a_required_fetch_needs_a_network() {
    let task = "prompt: x\ncompletion: {required_tools: [bash, web_fetch]}\n";
    assert_eq!(
        check_task(task),
        ["tasks/t.yaml:2:37 tool-not-offered: web_fetch is offered only to tasks with a network"]
    );
    assert_eq!(check_task(&format!("{task}allow_network: [a.test]\n")), [""; 0]);
}

#[test]
fn a_runtime_without_a_way_out_is_told_where_a_network_is_asked_for() {
    let machine = manifest("defaults: {model: scripted/session}\nsandbox: {runtime: kata}\n");
    let files = [
        ("manifest.yaml", machine.as_str()),
        ("tasks/t.yaml", "prompt: x\nallow_network: [a.test]\n"),
        ("scripted/t.yaml", SCRIPT),
        ("tasks/u.yaml", "prompt: x\nallow_network: false\n"),
        ("scripted/u.yaml", SCRIPT),
    ];
    assert_eq!(
        check(&files),
        ["tasks/t.yaml:2:1 sealed-runtime: the runtime \"kata\" has no way out of its sandbox"]
    );
}
