//! One child process with a deadline and bounded output. It runs in a process group of its own and
//! with nothing of this process's environment; when the caller gives up, the group is killed.

use std::ffi::OsString;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};

/// The most that is kept of each output.
const KEPT: usize = 1024 * 1024;
/// The most that an error shows of standard error.
const SHOWN: usize = 2000;

/// How a child ended.
#[derive(Debug)]
pub(super) struct Finished {
    pub code: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

impl Finished {
    /// The end of standard error, as one line.
    pub fn stderr_tail(&self) -> String {
        tail(&self.stderr)
    }
}

/// Why a child gave no result.
#[derive(Debug, thiserror::Error)]
pub(super) enum ChildError {
    #[error("cannot start it: {0}")]
    Spawn(std::io::Error),
    #[error("cannot wait for it: {0}")]
    Wait(std::io::Error),
    #[error("it took longer than {} s and was killed", .0.as_secs())]
    Timeout(Duration),
}

/// The end of a text that a program wrote, on one line.
pub(super) fn tail(bytes: &[u8]) -> String {
    let start = bytes.len().saturating_sub(SHOWN);
    let text = String::from_utf8_lossy(&bytes[start..]);
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}

/// A command with exactly this environment, in a group of its own.
pub(super) fn command(program: &std::path::Path, env: &[(OsString, OsString)]) -> Command {
    let mut command = Command::new(program);
    command.env_clear().envs(env.iter().cloned()).process_group(0).kill_on_drop(true);
    command.stdin(Stdio::null()).current_dir("/");
    command
}

/// Runs a command to its end.
pub(super) async fn finish(
    mut command: Command,
    timeout: Duration,
) -> Result<Finished, ChildError> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(ChildError::Spawn)?;
    let guard = Group::of(&child);
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let all = async {
        let (stdout, stderr, status) =
            tokio::join!(read_bounded(stdout), read_bounded(stderr), child.wait());
        status.map(|status| Finished { code: status.code(), stdout, stderr })
    };
    let ended = tokio::time::timeout(timeout, all).await;
    match ended {
        Ok(finished) => {
            guard.defuse();
            finished.map_err(ChildError::Wait)
        }
        Err(_) => Err(ChildError::Timeout(timeout)),
    }
}

/// Reads to the end and keeps the first [`KEPT`] bytes.
async fn read_bounded<R: AsyncRead + Unpin>(stream: Option<R>) -> Vec<u8> {
    let Some(mut stream) = stream else { return Vec::new() };
    let mut kept = Vec::new();
    let mut chunk = vec![0_u8; 16 * 1024];
    // A broken pipe ends the output like its end does.
    while let Ok(n) = stream.read(&mut chunk).await {
        if n == 0 {
            break;
        }
        let room = KEPT.saturating_sub(kept.len()).min(n);
        kept.extend_from_slice(&chunk[..room]);
    }
    kept
}

/// Kills a child's process group unless it is defused.
pub(super) struct Group(Option<Pid>);

impl Group {
    /// The group that `child` leads.
    pub fn of(child: &Child) -> Self {
        Group(child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw))
    }

    /// The child was waited for: its number may belong to another process by now.
    pub fn defuse(mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // The group may be gone already.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}
