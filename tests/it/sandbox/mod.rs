//! The sandbox, against real Podman.

mod closing;
mod faults;
mod git;
mod hostile;
mod leaks;
mod life;
mod namespace;
mod preflight;
mod runtimes;
mod seal;
mod seccomp;

use std::time::Duration;

use fleet::sandbox::{Call, CallError, CommandOutput, PodmanSandbox, Reply, Sandbox};
use tokio_util::sync::CancellationToken;

/// A command, with a time that no good command needs, even on an emulated machine.
fn bash(command: &str) -> Call {
    bash_within(command, 120)
}

fn bash_within(command: &str, seconds: u64) -> Call {
    Call::Bash { command: command.to_owned(), cwd: None, timeout: Duration::from_secs(seconds) }
}

async fn call(sandbox: &PodmanSandbox, call: Call) -> Result<Reply, CallError> {
    sandbox.call(call, &CancellationToken::new()).await
}

/// Runs a command; how it ended.
async fn run(sandbox: &PodmanSandbox, command: &str) -> CommandOutput {
    match call(sandbox, bash(command)).await.expect("the command is answered") {
        Reply::Command(output) => output,
        other => panic!("a command was answered by {other:?}"),
    }
}

/// Runs a command; its exit status and its output.
async fn told(sandbox: &PodmanSandbox, command: &str) -> (Option<i32>, String) {
    let CommandOutput { exit_code, output, .. } = run(sandbox, command).await;
    (exit_code, String::from_utf8_lossy(&output).into_owned())
}

fn ended(code: i32, output: &str) -> (Option<i32>, String) {
    (Some(code), output.to_owned())
}
