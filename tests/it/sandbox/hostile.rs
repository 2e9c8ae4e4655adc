//! Model code that fights the helper: each call ends in time with a typed answer, and what did not end
//! well is never used again.

use std::time::Duration;

use fleet::sandbox::{
    Call, CallError, ContainerLimits, EditError, KernelOutput, PodmanSandbox, Reply, Sandbox,
};
use rustix::process::{Pid, Signal, kill_process};

use super::{bash, bash_within, call, ended, run, told};
use crate::env::sandbox::{Cell, containers, podman_command};

/// Limits under which a hog does no harm to the machine.
const SMALL: ContainerLimits =
    ContainerLimits { memory_mb: 128, cpus: 1.0, pids: 64, disk_mb: 16, nofile: 512 };

async fn small(cell: &Cell, run_id: &str) -> PodmanSandbox {
    let mut spec = cell.spec(run_id);
    spec.limits = SMALL;
    cell.start_spec(spec).await
}

async fn python(sandbox: &PodmanSandbox, code: &str) -> KernelOutput {
    let cell = Call::Python {
        code: code.to_owned(),
        timeout: Duration::from_secs(30),
        reset_kernel: false,
        return_vars: Vec::new(),
    };
    match call(sandbox, cell).await.expect("the cell is answered") {
        Reply::Kernel(output) => output,
        other => panic!("a cell was answered by {other:?}"),
    }
}

async fn lives(sandbox: &PodmanSandbox) {
    assert_eq!(told(sandbox, "echo alive").await, ended(0, "alive\n"));
}

/// The helper's process, as the host sees it.
fn helper(cell: &Cell, sandbox: &PodmanSandbox) -> Pid {
    let mut inspect = podman_command(&cell.seal.runtime);
    inspect.args(["inspect", "--format", "{{.State.Pid}}", sandbox.container()]);
    let pid = String::from_utf8(inspect.output().expect("podman runs").stdout).expect("a number");
    pid.trim().parse().ok().and_then(Pid::from_raw).expect("a process")
}

#[tokio::test]
async fn a_kill_of_every_process_costs_the_interpreter_and_nothing_else() {
    let cell = Cell::new().await;
    let sandbox = cell.start("run-kill-all").await;
    python(&sandbox, "x = 1").await;
    let (code, _) = told(&sandbox, "kill -9 -1; exit 7").await;
    assert_eq!(code, Some(7));
    // Told as it is found: dead before the cell, or in the middle of it.
    let after = python(&sandbox, "0").await;
    assert!(after.kernel_lost, "{after:?}");
    let again = python(&sandbox, "'x' in globals()").await;
    assert_eq!((again.value.as_deref(), again.kernel_lost), (Some("False"), false));
    lives(&sandbox).await;
    sandbox.close().await;
}

#[tokio::test]
async fn a_fork_bomb_ends_with_its_call() {
    let cell = Cell::new().await;
    let sandbox = small(&cell, "run-forks").await;
    let bomb = "bomb() { bomb | bomb & }; bomb; python3 -c 'import os\nwhile True:\n try: os.fork()\n except OSError: pass'";
    let reply = call(&sandbox, bash_within(bomb, 2)).await.expect("it is answered");
    assert!(matches!(&reply, Reply::Command(output) if output.timed_out), "{reply:?}");
    lives(&sandbox).await;
    assert_eq!(told(&sandbox, "ls -d /proc/[0-9]* | wc -l").await.0, Some(0));
    assert_eq!(python(&sandbox, "1 + 1").await.value.as_deref(), Some("2"));
    sandbox.close().await;
}

#[tokio::test]
async fn code_that_closes_its_descriptors_loses_its_own_only() {
    let cell = Cell::new().await;
    let sandbox = cell.start("run-close-fds").await;
    let (code, _) =
        told(&sandbox, "for fd in {0..255}; do eval \"exec $fd<&-\"; done; exit 5").await;
    assert_eq!(code, Some(5));
    let closed = python(&sandbox, "import os; os.closerange(0, 1000)").await;
    assert!(closed.error.is_some() && closed.kernel_lost, "{closed:?}");
    assert_eq!(python(&sandbox, "1 + 1").await.value.as_deref(), Some("2"));
    lives(&sandbox).await;
    sandbox.close().await;
}

#[tokio::test]
async fn code_that_fills_memory_tmp_and_files_is_stopped_and_the_helper_answers() {
    let cell = Cell::new().await;
    let sandbox = small(&cell, "run-full").await;
    let hog = python(&sandbox, "b = bytearray(10**10)").await;
    // A control group kills the interpreter; a limit of each process refuses it the memory.
    let refused = hog.error.as_deref().is_some_and(|error| error.contains("MemoryError"));
    assert!(refused || (hog.oom_killed && hog.kernel_lost), "{hog:?}");
    let (code, output) =
        told(&sandbox, "for n in {1..20}; do head -c 8M /dev/zero > /tmp/full$n || exit 1; done")
            .await;
    assert!(code != Some(0) && output.contains("No space left"), "{output}");
    lives(&sandbox).await;
    let content = vec![b'x'; 17 * 1024 * 1024];
    let write = call(&sandbox, Call::Write { path: "big".into(), content }).await;
    assert!(
        matches!(&write, Err(CallError::Refused { kind: EditError::TooLarge, .. })),
        "{write:?}"
    );
    assert_eq!(told(&sandbox, "ls -A; rm /tmp/full*").await, ended(0, ""));
    sandbox.close().await;
}

#[tokio::test]
async fn a_helper_that_is_killed_ends_its_calls_and_its_container() {
    let cell = Cell::new().await;
    let sandbox = cell.start("run-killed").await;
    let pid = helper(&cell, &sandbox);
    let waiting = call(&sandbox, bash("sleep 60"));
    let killing = async { kill_process(pid, Signal::KILL).expect("it is killed") };
    let (answer, ()) = tokio::join!(waiting, killing);
    assert!(
        matches!(&answer, Err(CallError::Gone(reason)) if reason == "its connection ended"),
        "{answer:?}"
    );
    assert!(containers(&cell.podman, "run-killed").await.is_empty());
    let later = call(&sandbox, bash("true")).await;
    assert!(matches!(&later, Err(CallError::Gone(_))), "{later:?}");
}

#[tokio::test]
async fn a_helper_that_stands_still_is_given_up_at_the_call_s_time() {
    let cell = Cell::new().await;
    let sandbox = cell.start("run-still").await;
    kill_process(helper(&cell, &sandbox), Signal::STOP).expect("it stops");
    let began = std::time::Instant::now();
    let answer = call(&sandbox, bash_within("true", 1)).await;
    let reason = "a call was not answered within 11 s";
    assert!(matches!(&answer, Err(CallError::Gone(said)) if said == reason), "{answer:?}");
    assert!(began.elapsed() < Duration::from_secs(25), "{:?}", began.elapsed());
    assert!(containers(&cell.podman, "run-still").await.is_empty());
}

#[tokio::test]
async fn nothing_is_linked_moved_or_made_across_the_workspace_s_edge() {
    let cell = Cell::new().await;
    std::fs::create_dir_all(cell.path("ws")).expect("workspace");
    std::fs::write(cell.path("secret"), "of the host").expect("a file beside the workspace");
    let sandbox = cell.start("run-links").await;
    let beside = cell.path("secret").display().to_string();
    let attempts = format!(
        "for from in /fleet/token /fleet/helper/server.py /etc/passwd /usr/bin/env {beside} ../secret; do \
           ln $from hard 2>/dev/null && echo linked $from; done; \
         mknod dev c 1 3 2>/dev/null && echo device; mknod block b 8 0 2>/dev/null && echo block; \
         cp /usr/bin/env suid && chmod 4755 suid && [ $(stat -c %a suid) = 4755 ] && ./suid true && echo ran; \
         ln /tmp/none x 2>/dev/null; touch /tmp/t && ln /tmp/t t 2>/dev/null && echo tmp; ls -A"
    );
    // A setuid bit may be set and means nothing: no new privileges.
    assert_eq!(told(&sandbox, &attempts).await, ended(0, "ran\nsuid\n"));
    let output =
        run(&sandbox, "cat /proc/self/mountinfo | grep -c ' /fleet .*ro'; echo x > /fleet/x").await;
    assert!(output.exit_code != Some(0), "{output:?}");
    sandbox.close().await;
}
