//! Programs on the host.

use std::time::Duration;

use fleet::bundle::{ChannelKind, HostCommand};
use fleet::secrets::Redactor;
use serde_json::Value;

use super::send_to;
use crate::env::world::eventually;

fn shell(script: &str, timeout: Duration) -> ChannelKind {
    ChannelKind::Command(HostCommand {
        program: "sh".into(),
        arguments: vec!["-c".into(), script.into()],
        timeout,
    })
}

const SOON: Duration = Duration::from_secs(30);

#[tokio::test]
async fn command_gets_the_notice_on_its_input_and_a_minimal_environment() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = dir.path().display();
    let script = format!("cat > {at}/input; env | sed 's/=.*//' | sort > {at}/env; pwd > {at}/pwd");
    let said = send_to(shell(&script, SOON), &Redactor::default()).await.expect("sent");
    assert_eq!(said, "the command sh ended with 0");
    let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).expect("it is there");
    let notice: Value = serde_json::from_str(&read("input")).expect("JSON");
    assert_eq!((&notice["task"], &notice["event"]), (&"report".into(), &"failure".into()));
    assert_eq!((read("env").as_str(), read("pwd").as_str()), ("HOME\nLANG\nPATH\nPWD\n", "/\n"));
}

#[tokio::test]
async fn failure_of_a_command_has_the_end_of_what_it_said_without_secrets() {
    let redactor = Redactor::default();
    redactor.register("hunter2hunter2");
    let script = "echo early >&2; head -c 2000 /dev/zero | tr '\\0' x >&2; echo; echo no hunter2hunter2 >&2; exit 3";
    let failure = send_to(shell(script, SOON), &redactor).await.expect_err("it fails").to_string();
    assert!(failure.starts_with("the command sh ended with exit status: 3: x"), "{failure}");
    assert!(failure.ends_with("no [redacted]") && failure.len() < 1200, "{failure}");
}

#[tokio::test]
async fn command_that_is_not_there_is_named() {
    let command = HostCommand {
        program: "fleet-test-no-such-program".into(),
        arguments: Vec::new(),
        timeout: SOON,
    };
    let failure = send_to(ChannelKind::Command(command), &Redactor::default()).await;
    assert_eq!(
        failure.expect_err("it is not there").to_string(),
        "the command fleet-test-no-such-program cannot be started: No such file or directory (os \
         error 2)"
    );
}

/// Whether a process is there and no zombie.
fn lives(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(" Z"))
}

#[tokio::test]
async fn hung_command_is_killed_with_its_children() {
    let dir = tempfile::tempdir().expect("a directory");
    let pids = dir.path().join("pids");
    let script = format!("sleep 1000 & echo $! $$ > {}; wait", pids.display());
    let failure = send_to(shell(&script, Duration::from_secs(1)), &Redactor::default()).await;
    let text = failure.expect_err("it hangs").to_string();
    assert_eq!(text, "the command sh was killed after 1 s");
    let pids = std::fs::read_to_string(pids).expect("it wrote them");
    assert_eq!(pids.split_whitespace().count(), 2);
    eventually("both are gone", || (!pids.split_whitespace().any(lives)).then_some(()));
}

#[tokio::test]
async fn child_of_a_command_does_not_outlive_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let pid = dir.path().join("pid");
    let script = format!("sleep 1000 & echo $! > {}", pid.display());
    send_to(shell(&script, SOON), &Redactor::default()).await.expect("it ends well");
    let pid = std::fs::read_to_string(pid).expect("it wrote it");
    eventually("the child is gone", || (!lives(&pid)).then_some(()));
}
