//! The daemon as its operator meets it.

use super::crash::{trigger, wait_for_tool};
use super::signals::{WAITS, let_go};
use crate::env::leftovers;
use crate::env::world::World;

const NOTHING: &[(&str, &str)] = &[
    ("tasks/idle.yaml", "prompt: Nothing.\nschedule: '0 0 1 1 *'\ncompletion: {shell: 'true'}\n"),
    ("scripted/idle.yaml", "turns:\n  - text: Done.\n"),
];

#[test]
fn second_daemon_on_one_state_directory_is_refused_with_the_first_ones_pid_host_and_start() {
    let world = World::new(NOTHING);
    let daemon = world.serve();
    let bundle = world.bundle();
    let second = world.fleet(&[
        "serve",
        "--bundle",
        bundle.to_str().expect("UTF-8"),
        "--listen",
        "127.0.0.1:0",
    ]);
    assert_eq!(second.status.code(), Some(3));
    let text = String::from_utf8_lossy(&second.stderr).into_owned();
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("the host's name");
    let holder = format!("pid {} on host {} since 20", daemon.pid(), host.trim());
    assert!(text.contains(&holder) && text.contains("--standby"), "{text}");
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn busy_port_is_refused_and_nothing_is_made() {
    let world = World::new(NOTHING);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let bundle = world.bundle();
    let output =
        world.fleet(&["serve", "--bundle", bundle.to_str().expect("UTF-8"), "--listen", &address]);
    assert_eq!(output.status.code(), Some(3));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains(&address) && text.contains("--listen"), "{text}");
    assert!(!world.state().join("fleet.db").exists());
}

#[test]
fn bundle_without_a_commit_is_refused_with_the_way_out() {
    let world = World::new(NOTHING);
    let empty = world.path().join("empty");
    std::fs::create_dir(&empty).expect("directory");
    crate::env::git(&empty, &["init", "--quiet"]);
    let output = world.fleet(&[
        "serve",
        "--bundle",
        empty.to_str().expect("UTF-8"),
        "--listen",
        "127.0.0.1:0",
    ]);
    assert_ne!(output.status.code(), Some(0));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("no commit") && text.contains("git commit"), "{text}");
}

#[test]
fn state_directory_that_is_not_writable_is_refused_with_the_way_out() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new(NOTHING);
    let locked = world.path().join("locked");
    std::fs::create_dir(&locked).expect("directory");
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o500)).expect("mode");
    let state = locked.join("state");
    let bundle = world.bundle();
    let output = world.fleet(&[
        "serve",
        "--bundle",
        bundle.to_str().expect("UTF-8"),
        "--listen",
        "127.0.0.1:0",
        "--state",
        state.to_str().expect("UTF-8"),
    ]);
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o700)).expect("mode");
    assert_eq!(output.status.code(), Some(5));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("locked/state") && text.contains("--state"), "{text}");
}

#[test]
fn invalid_commit_keeps_the_last_good_bundle_and_is_shown() {
    let world = World::new(NOTHING);
    let daemon = world.serve();
    world.commit(&[("tasks/idle.yaml", "prompt: Nothing.\nschedule: '99 0 1 1 *'\n")], "break it");
    daemon.wait_for("the new bundle is invalid: the last one stays in force");
    world.commit(&[("tasks/idle.yaml", NOTHING[0].1)], "mend it");
    daemon.wait_for("a new bundle is in force");
    assert_eq!(daemon.stop(), Some(0));
}

#[test]
fn manual_run_beside_a_daemon_disturbs_neither() {
    let quick = [
        ("tasks/quick.yaml", "prompt: Go.\ncompletion: {shell: 'true'}\n"),
        ("scripted/quick.yaml", "turns:\n  - text: Done.\n"),
    ];
    let world = World::new(&[WAITS, &quick].concat());
    let daemon = world.serve();
    trigger(&world, "slow");
    let run = wait_for_tool(&world);
    let by_hand = world.run_task("quick");
    assert_eq!((&by_hand["state"], &by_hand["attempts"]), (&"success".into(), &1.into()));
    assert_eq!(world.run(&run["run_id"])["state"], "running");

    let_go(&world, &run, 1);
    daemon.wait_for("run succeeded");
    assert_eq!(daemon.stop(), Some(0));
    let whole = world.run(&run["run_id"]);
    assert_eq!((&whole["state"], &whole["attempts"]), (&"success".into(), &1.into()), "{whole:#}");
    leftovers::none(&world);
}

#[test]
fn lock_that_a_killed_daemon_s_child_has_for_a_moment_is_waited_for() {
    let world = World::new(NOTHING);
    let first = world.serve();
    first.kill();
    // What the daemon was just starting has its lock until it runs: here for a second.
    let mut child = std::process::Command::new("flock")
        .arg(world.state().join("serve.lock"))
        .args(["-c", "echo locked; exec sleep 1"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("flock starts");
    let mut line = String::new();
    let out = child.stdout.take().expect("piped");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).expect("it locks");
    let second = world.serve();
    child.wait().expect("it ends");
    assert_eq!(second.stop(), Some(0));
}
