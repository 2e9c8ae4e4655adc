//! Runs a Podman verb that reads its work from standard input.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncWriteExt;

use super::BuildError;
use crate::sandbox::command::{self, Group};
use crate::sandbox::podman::Podman;

/// Runs one Podman verb with this standard input.
pub(super) async fn feed(
    podman: &Podman,
    args: &[&str],
    input: &[u8],
    patience: Duration,
) -> Result<(), BuildError> {
    let program = "podman";
    let failed = |error: std::io::Error| BuildError::Program { program, reason: error.to_string() };
    let mut command = podman.command(None);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    let group = Group::of(&child);
    let mut stdin = child.stdin.take().expect("standard input is piped");
    let writing = async move {
        // A child that ends early says why on standard error.
        let _ = stdin.write_all(input).await;
    };
    let waiting = async { tokio::join!(writing, child.wait_with_output()).1 };
    let output =
        tokio::time::timeout(patience, waiting).await.map_err(|_| BuildError::Program {
            program,
            reason: format!("it took longer than {} s", patience.as_secs()),
        })?;
    group.defuse();
    check(program, &output.map_err(failed)?)
}

/// Turns a program's failure into its last words.
pub(super) fn check(
    program: &'static str,
    output: &std::process::Output,
) -> Result<(), BuildError> {
    if output.status.success() {
        return Ok(());
    }
    let stderr = command::tail(&output.stderr);
    Err(BuildError::Failed { program, status: output.status.code().unwrap_or(-1), stderr })
}
