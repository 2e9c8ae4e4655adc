//! As root: the service account's prerequisites. Root is the one of a user namespace here, and the
//! programs that change accounts are doubles.

use std::os::unix::fs::PermissionsExt;
use std::process::Output;

use super::{said, wrong};
use crate::env::fleet_binary;
use crate::env::world::World;

/// `fleet doctor` with user id 0 and a `usermod` that writes down what it is told.
fn as_root(world: &World, args: &[&str]) -> Output {
    let usermod = world.path().join("usermod");
    let log = world.path().join("told");
    std::fs::write(&usermod, format!("#!/bin/sh\necho \"$*\" >>'{}'\n", log.display()))
        .expect("file");
    std::fs::set_permissions(&usermod, std::fs::Permissions::from_mode(0o755)).expect("mode");
    let path = format!("{}:/usr/bin:/bin:/usr/sbin:/sbin", world.path().display());
    let mut command = world.program("unshare", &["--user", "--map-root-user"]);
    command.arg(fleet_binary()).args(["doctor", "--json"]).args(args).env("PATH", path);
    command.output().expect("unshare starts")
}

#[test]
fn root_is_told_the_account_and_runs_nothing_else() {
    let world = World::new(&[]);
    let user = std::process::Command::new("id").arg("-un").output().expect("id runs");
    let user = String::from_utf8(user.stdout).expect("text").trim().to_owned();
    let output = as_root(&world, &["--user", &user]);
    assert_eq!((output.status.code(), wrong(&output)), (Some(0), vec![]), "{}", said(&output));
    let told = format!(
        "fleet never runs as root: for the rest, run `runuser -l {user} -c 'fleet doctor'`"
    );
    assert_eq!(said(&output).trim_end(), told);
}

#[test]
fn account_that_is_missing_is_named_with_the_command_that_makes_it() {
    let world = World::new(&[]);
    let output = as_root(&world, &["--user", "nobody-at-all"]);
    assert_eq!(output.status.code(), Some(1));
    let checks: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(checks[0]["root"], "useradd --create-home --shell /bin/bash nobody-at-all");
    assert_eq!(
        wrong(&output),
        [(
            "account".to_owned(),
            "there is no account nobody-at-all: name another with --user NAME".to_owned()
        )]
    );
}

#[test]
fn fix_grants_subordinate_ids_behind_everybody_s() {
    let world = World::new(&[]);
    // The double grants nothing, so the check fails afterwards too.
    let output = as_root(&world, &["--user", "nobody", "--fix"]);
    assert_eq!(output.status.code(), Some(1));
    let told = std::fs::read_to_string(world.path().join("told")).expect("usermod was asked");
    assert!(told.starts_with("--add-subuids ") && told.trim_end().ends_with(" nobody"), "{told}");
    assert!(
        said(&output).starts_with("fixing subordinate ids: usermod --add-subuids "),
        "{}",
        said(&output)
    );
}
