//! How calls and containers end.

use std::path::Path;
use std::time::{Duration, Instant};

use fleet::sandbox::{Call, CallError, ContainerLimits, PodmanSandbox, Reply, Sandbox, sweep};
use tokio_util::sync::CancellationToken;

use super::{bash, bash_within, call, ended, told};
use crate::env::sandbox::{Cell, containers, podman_command, wait_until};

/// Looks for a process on the host by a word of its command line.
pub(super) fn is_running(word: &str) -> bool {
    let Ok(processes) = std::fs::read_dir("/proc") else { return false };
    processes.filter_map(Result::ok).any(|process| {
        std::fs::read(process.path().join("cmdline"))
            .is_ok_and(|line| String::from_utf8_lossy(&line).contains(word))
    })
}

/// A number of seconds that no other process sleeps.
fn odd_seconds(n: u32) -> String {
    format!("3{n}{:05}", std::process::id() % 100_000)
}

#[tokio::test]
async fn timeout_kills_the_command_and_its_children() {
    let cell = Cell::new().await;
    let sandbox = cell.start("run-time").await;
    let seconds = odd_seconds(1);
    let command = format!("setsid sleep {seconds} & sleep {seconds}");
    let reply = call(&sandbox, bash_within(&command, 1)).await.expect("it is answered");
    let Reply::Command(output) = reply else { panic!("another reply: {reply:?}") };
    assert!(output.timed_out);
    wait_until("the children end", || !is_running(&format!("sleep\0{seconds}"))).await;
    assert_eq!(told(&sandbox, "echo alive").await, ended(0, "alive\n"));
    sandbox.close().await;
}

#[tokio::test]
async fn cancelled_call_kills_its_command_and_the_sandbox_lives() {
    let cell = Cell::new().await;
    let sandbox = cell.start("run-cancel").await;
    let seconds = odd_seconds(2);
    let command = bash(&format!("sleep {seconds}"));
    let cancel = CancellationToken::new();
    let word = format!("sleep\0{seconds}");
    let when_running = async {
        wait_until("the command runs", || is_running(&word)).await;
        cancel.cancel();
    };
    let (answer, ()) = tokio::join!(sandbox.call(command, &cancel), when_running);
    assert!(matches!(answer, Err(CallError::Cancelled)), "{answer:?}");
    assert!(!is_running(&word));
    assert_eq!(told(&sandbox, "echo alive").await, ended(0, "alive\n"));
    sandbox.close().await;
}

#[tokio::test]
async fn helper_survives_a_kill_from_inside() {
    let cell = Cell::new().await;
    let sandbox = cell.start("run-kill").await;
    told(&sandbox, "kill -9 1; kill -TERM 1; kill -STOP 1").await;
    assert_eq!(told(&sandbox, "echo alive").await, ended(0, "alive\n"));
    sandbox.close().await;
}

#[tokio::test]
async fn helper_s_streams_cannot_be_reached_from_inside() {
    let cell = Cell::new().await;
    let sandbox = cell.start("run-forge").await;
    let command = "for fd in 0 1 2 3 4 5 6 7 8; do printf x 2>/dev/null > /proc/1/fd/$fd && echo wrote $fd; done; \
                   ls /proc/1/fd >/dev/null 2>&1 && echo listed; head -c 1 /proc/1/environ 2>/dev/null && echo read; \
                   python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"/fleet/s\")' 2>&1 | grep -o 'Connection refused\\|No such file'";
    let (code, output) = told(&sandbox, command).await;
    assert_eq!(code, Some(0));
    assert!(["Connection refused\n", "No such file\n"].contains(&output.as_str()), "{output}");
    assert_eq!(told(&sandbox, "echo alive").await, ended(0, "alive\n"));
    sandbox.close().await;
}

#[tokio::test]
async fn dropped_sandbox_ends_its_container() {
    let cell = Cell::new().await;
    let sandbox = cell.start("run-drop").await;
    let name = sandbox.container().to_owned();
    assert_eq!(containers(&cell.podman, "run-drop").await, [name]);
    let dropped = Instant::now();
    drop(sandbox);
    while !containers(&cell.podman, "run-drop").await.is_empty() {
        assert!(dropped.elapsed() < Duration::from_secs(5), "the container is still there");
    }
}

#[tokio::test]
async fn closed_sandbox_is_gone_and_answers_nothing() {
    let cell = Cell::new().await;
    let sandbox = cell.start("run-close").await;
    sandbox.close().await;
    assert!(containers(&cell.podman, "run-close").await.is_empty());
    sandbox.close().await;
    let answer = call(&sandbox, bash("true")).await;
    assert!(
        matches!(&answer, Err(CallError::Gone(reason)) if reason == "it was closed"),
        "{answer:?}"
    );
    assert_eq!(doors(&cell), Vec::<String>::new());
}

#[tokio::test]
async fn container_that_is_removed_from_outside_is_gone_to_its_callers() {
    let cell = Cell::new().await;
    let sandbox = cell.start("run-gone").await;
    let cancel = CancellationToken::new();
    let waiting = sandbox.call(bash("sleep 60"), &cancel);
    let (answer, removed) = tokio::join!(waiting, cell.podman.remove_run("run-gone"));
    removed.expect("it is removed");
    assert!(matches!(answer, Err(CallError::Gone(_))), "{answer:?}");
}

#[tokio::test]
async fn outgrown_disk_ends_the_sandbox_and_says_so() {
    let cell = Cell::new().await;
    let mut spec = cell.spec("run-disk");
    spec.limits = ContainerLimits { disk_mb: 8, ..spec.limits };
    let sandbox = cell.start_spec(spec).await;
    let command = "fallocate -l 5MiB a; fallocate -l 5MiB b; fallocate -l 5MiB c; sleep 60";
    let answer = call(&sandbox, bash(command)).await;
    let Err(CallError::Gone(reason)) = answer else { panic!("{answer:?}") };
    assert_eq!(
        reason,
        "soft disk limit: limits.sandbox.disk_mb = 8, and 15 MB were used in the workspace and the \
         repository's overlay; raise the limit, or let the task write less"
    );
    assert!(containers(&cell.podman, "run-disk").await.is_empty());
}

#[tokio::test]
async fn open_files_are_those_of_the_task_and_never_more_than_the_account_s() {
    let cell = Cell::new().await;
    let mut spec = cell.spec("run-files");
    spec.limits = ContainerLimits { nofile: 100, ..spec.limits };
    let sandbox = cell.start_spec(spec.clone()).await;
    assert_eq!(told(&sandbox, "ulimit -Sn; ulimit -Hn").await, ended(0, "100\n100\n"));
    let opens = "import os\nfiles = []\ntry:\n    while True:\n        files.append(os.open('/dev/null', 0))\n\
                 except OSError as error:\n    print(error.strerror, len(files) < 100)";
    let (code, output) = told(&sandbox, &format!("python3 -c \"{opens}\"")).await;
    assert_eq!((code, output.as_str()), (Some(0), "Too many open files True\n"));
    sandbox.close().await;
    spec.limits = ContainerLimits { nofile: u32::MAX, ..spec.limits };
    let refused = PodmanSandbox::start(&cell.podman, &cell.seal, spec).await.err();
    let refused = refused.expect("no account has so many");
    assert!(!refused.transient);
    let told = "limits.sandbox.nofile = 4294967295, and this account may open ";
    assert!(refused.message.starts_with(told), "{}", refused.message);
}

#[tokio::test]
async fn removal_of_a_run_leaves_other_runs_alone() {
    let cell = Cell::new().await;
    let (one, two) = tokio::join!(cell.start("run-one"), cell.start("run-two"));
    cell.podman.remove_run("run-one").await.expect("it is removed");
    assert!(containers(&cell.podman, "run-one").await.is_empty());
    assert_eq!(told(&two, "echo alive").await, ended(0, "alive\n"));
    cell.podman.remove_run("run-of-nobody").await.expect("nothing is fine");
    two.close().await;
    one.close().await;
}

#[tokio::test]
async fn sweep_removes_the_dead_and_leaves_the_living_and_strangers() {
    let (cell, stranger) = (Cell::new().await, Cell::new().await);
    let mut dead = cell.spec("run-dead");
    dead.instance = "dead".to_owned();
    let mut foreign = stranger.spec("run-foreign");
    foreign.instance = "dead".to_owned();
    let dead = cell.start_spec(dead).await;
    let foreign = stranger.start_spec(foreign).await;
    let living = cell.start("run-living").await;
    let alive = |instance: &str| instance != "dead";
    assert_eq!(sweep(&cell.podman, &alive).await.expect("swept"), 1);
    assert!(containers(&cell.podman, "run-dead").await.is_empty());
    assert_eq!(told(&living, "echo alive").await, ended(0, "alive\n"));
    assert_eq!(told(&foreign, "echo alive").await, ended(0, "alive\n"));
    for sandbox in [dead, living, foreign] {
        sandbox.close().await;
    }
}

#[tokio::test]
async fn start_that_fails_leaves_nothing_and_says_why() {
    let cell = Cell::new().await;
    let mut spec = cell.spec("run-fail");
    spec.workspace = cell.path("not-there");
    let error = PodmanSandbox::start(&cell.podman, &cell.seal, spec).await.err().expect("refused");
    assert!(error.transient && error.message.contains("not-there"), "{error:?}");
    let mut spec = cell.spec("run-fail");
    spec.image = "localhost/no-such-image".to_owned();
    let error = PodmanSandbox::start(&cell.podman, &cell.seal, spec).await.err().expect("refused");
    assert_eq!(
        (error.transient, error.message.as_str()),
        (false, "there is no sandbox image localhost/no-such-image: run `fleet sandbox build`")
    );
    assert!(containers(&cell.podman, "run-fail").await.is_empty());
    assert_eq!(doors(&cell), Vec::<String>::new());
}

#[tokio::test]
async fn helper_that_cannot_start_is_told_with_its_last_words() {
    let cell = Cell::new().await;
    let mut spec = cell.spec("run-words");
    // Too little for any interpreter, whoever enforces it.
    spec.limits = ContainerLimits { memory_mb: 1, ..spec.limits };
    let error = PodmanSandbox::start(&cell.podman, &cell.seal, spec).await.err().expect("refused");
    assert!(error.transient, "{error:?}");
    let ends = ["its helper ended before it answered (status ", "podman run failed (status "];
    assert!(ends.iter().any(|end| error.message.starts_with(end)), "{error:?}");
    assert!(containers(&cell.podman, "run-words").await.is_empty());
    assert_eq!(doors(&cell), Vec::<String>::new());
}

#[tokio::test]
async fn start_that_is_given_up_leaves_nothing() {
    let cell = Cell::new().await;
    let spec = cell.spec("run-given-up");
    let mut start = Box::pin(PodmanSandbox::start(&cell.podman, &cell.seal, spec));
    // Long enough for Podman to be at work, too short for a container.
    tokio::time::timeout(Duration::from_millis(30), &mut start).await.err().expect("not yet");
    drop(start);
    assert_eq!(doors(&cell), Vec::<String>::new());
    let until = Instant::now() + Duration::from_secs(10);
    while !containers(&cell.podman, "run-given-up").await.is_empty() {
        assert!(Instant::now() < until, "the container is still there");
    }
}

#[tokio::test]
async fn helper_that_does_not_obey_a_cancel_is_killed() {
    let cell = Cell::new().await;
    let sandbox = cell.start("run-frozen").await;
    let mut inspect = podman_command(&cell.seal.runtime);
    inspect.args(["inspect", "--format", "{{.State.Pid}}", sandbox.container()]);
    let pid = String::from_utf8(inspect.output().expect("podman runs").stdout).expect("a number");
    let pid = pid.trim().parse().ok().and_then(rustix::process::Pid::from_raw).expect("a process");
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).expect("it stops");
    let cancel = CancellationToken::new();
    let cancelling = async { cancel.cancel() };
    let (answer, ()) = tokio::join!(sandbox.call(bash("true"), &cancel), cancelling);
    assert!(matches!(answer, Err(CallError::Cancelled)), "{answer:?}");
    assert!(containers(&cell.podman, "run-frozen").await.is_empty());
    let answer = call(&sandbox, bash("true")).await;
    assert!(
        matches!(&answer, Err(CallError::Gone(reason)) if reason == "a cancelled call did not end"),
        "{answer:?}"
    );
}

#[tokio::test]
async fn runtime_that_was_not_probed_runs_nothing() {
    let cell = Cell::new().await;
    let mut spec = cell.spec("run-runtime");
    spec.runtime = Some("other".to_owned());
    let error = PodmanSandbox::start(&cell.podman, &cell.seal, spec).await.err().expect("refused");
    assert!(!error.transient && error.message.contains("not with other"), "{error:?}");
}

#[tokio::test]
async fn resources_and_files_are_answered() {
    let cell = Cell::new().await;
    let sandbox = cell.start("run-files").await;
    let write = Call::Write { path: "a/b.txt".into(), content: b"one two\n".to_vec() };
    let written = call(&sandbox, write).await.expect("written");
    let sha256 = crate::env::sandbox_double::hash(b"one two\n");
    assert_eq!(written, Reply::Written { size: 8, sha256, replaced: 0 });
    let edit = Call::Edit {
        path: "a/b.txt".into(),
        old: "two".into(),
        new: "three".into(),
        replace_all: false,
        expected_hash: None,
    };
    let sha256 = crate::env::sandbox_double::hash(b"one three\n");
    assert_eq!(
        call(&sandbox, edit).await.expect("edited"),
        Reply::Written { size: 10, sha256, replaced: 1 }
    );
    assert_eq!(std::fs::read(cell.path("ws/a/b.txt")).expect("file"), b"one three\n");
    let fetched = call(&sandbox, Call::Fetch { path: "a/b.txt".into(), max_bytes: 100 }).await;
    let Ok(Reply::Content(content)) = fetched else { panic!("{fetched:?}") };
    assert_eq!(content.bytes, b"one three\n");
    let names = call(&sandbox, Call::List { path: "a".into() }).await.expect("listed");
    assert_eq!(names, Reply::Names(vec!["b.txt".into()]));
    let stat = call(&sandbox, Call::Stat { path: "a".into() }).await.expect("there");
    assert!(matches!(&stat, Reply::Stat { kind, .. } if kind == "directory"), "{stat:?}");
    let missing = call(&sandbox, Call::Stat { path: "none".into() }).await;
    assert!(
        matches!(
            &missing,
            Err(CallError::Refused { kind: fleet::sandbox::EditError::NotFound, .. })
        ),
        "{missing:?}"
    );
    let used = call(&sandbox, Call::Resources).await.expect("answered");
    assert!(matches!(used, Reply::Resources(_)), "{used:?}");
    let cell_call = Call::Python {
        code: "x = 20\nx + 1".into(),
        timeout: Duration::from_secs(30),
        reset_kernel: false,
        return_vars: vec!["x".into()],
    };
    let Ok(Reply::Kernel(kernel)) = call(&sandbox, cell_call).await else { panic!("no kernel") };
    assert_eq!((kernel.value.as_deref(), kernel.error), (Some("21"), None));
    assert_eq!(kernel.vars, [("x".to_owned(), "20".to_owned())]);
    sandbox.close().await;
}

/// Doors of this state directory that are left in the runtime directory.
pub(super) fn doors(cell: &Cell) -> Vec<String> {
    let mut found = Vec::new();
    let runtime = std::env::var("XDG_RUNTIME_DIR").expect("XDG_RUNTIME_DIR is set");
    for dir in std::fs::read_dir(Path::new(&runtime).join("fleet")).expect("fleet's directory") {
        for entry in std::fs::read_dir(dir.expect("entry").path()).expect("list") {
            let path = entry.expect("entry").path();
            let mine = std::fs::read_to_string(&path).unwrap_or_default();
            if path.extension().is_some_and(|end| end == "owner")
                && mine.starts_with(&cell.state_label())
            {
                found.push(mine);
            }
        }
    }
    found
}
