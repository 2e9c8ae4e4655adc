//! `fleet doctor`, on the real binary: what it sees, what it repairs, what it leaves alone.

mod repairs;
mod root;

use std::process::Output;

use serde_json::Value;

use crate::env::world::World;

/// The checks that are not well, by name.
fn wrong(output: &Output) -> Vec<(String, String)> {
    let checks: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let text = |check: &Value, key: &str| check[key].as_str().unwrap_or_default().to_owned();
    let checks = checks.as_array().expect("a list");
    let wrong = checks.iter().filter(|check| check["ok"] != true);
    wrong.map(|check| (text(check, "name"), text(check, "message"))).collect()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn whole_host_passes_with_a_real_container_and_nothing_is_left() {
    let world = World::new(&[]);
    let checks = world.json(&["doctor", "--json"]);
    let names: Vec<&str> = checks
        .as_array()
        .expect("a list")
        .iter()
        .map(|check| {
            assert_eq!(check["ok"], true, "{check}");
            check["name"].as_str().expect("a name")
        })
        .collect();
    assert_eq!(
        names,
        [
            "state directory",
            "file system",
            "store",
            "git",
            "time zones",
            "subordinate ids",
            "linger",
            "podman",
            "storage driver",
            "seccomp profile",
            "image",
            "sandbox seal",
            "smoke test",
            "stale state"
        ]
    );
    assert_eq!(world.containers(), Vec::<String>::new());
    let left: Vec<String> = std::fs::read_dir(world.state())
        .expect("the state directory")
        .map(|entry| entry.expect("entry").file_name().into_string().expect("UTF-8"))
        .filter(|name| name.starts_with("doctor"))
        .collect();
    assert_eq!(left, Vec::<String>::new());
}

#[test]
fn host_without_podman_or_git_names_the_packages() {
    let world = World::new(&[]);
    let bare = world.command(&["doctor", "--json"]).env("PATH", "/nonexistent").output();
    let bare = bare.expect("fleet starts");
    assert_eq!(bare.status.code(), Some(1));
    assert_eq!(
        wrong(&bare),
        [
            ("git".into(), "git is not on PATH: install the package git".into()),
            (
                "podman".to_owned(),
                "podman is not on PATH: install the package podman (4.3 or newer)".to_owned()
            ),
        ]
    );
}
