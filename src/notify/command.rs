//! Runs a program of the bundle's author on the host: no shell, a minimal environment, the notice on
//! standard input, and nothing of it left afterwards.

use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

use super::SendError;
use super::message::Message;
use crate::bundle::HostCommand;
use crate::secrets::Redactor;

/// How long its last output is waited for once it has ended.
pub(super) const LAST_WORDS: Duration = Duration::from_secs(2);
/// Bytes of its error output that are kept.
const KEPT: usize = 1024;
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The process group of a program; killed when dropped, so that no child outlives it.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // Mostly nobody is left in it.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Runs the program to its end, which must be 0, or to its timeout.
pub(super) async fn run(
    command: &HostCommand,
    message: &Message<'_>,
    redactor: &Redactor,
) -> Result<String, SendError> {
    let program = command.program.clone();
    let mut child = spawn(command).map_err(|error| SendError::NotStarted {
        program: program.clone(),
        why: error.to_string(),
    })?;
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    let group = Group(pid);
    let heard = child.stderr.take().map(|stderr| tokio::spawn(tail(stderr)));
    let ended = tokio::time::timeout(command.timeout, feed(&mut child, &message.json)).await;
    drop(group);
    let Ok(ended) = ended else {
        // Killed with its group: it only has to be reaped.
        let _ = tokio::time::timeout(LAST_WORDS, child.wait()).await;
        return Err(SendError::Killed { program, limit: command.timeout });
    };
    match ended {
        Ok(status) if status.success() => Ok(format!("the command {program} ended with 0")),
        Ok(status) => {
            let said = match heard {
                Some(heard) => tokio::time::timeout(LAST_WORDS, heard).await,
                None => return Err(failed(program, &status.to_string(), "", redactor)),
            };
            let said = said.ok().and_then(Result::ok).unwrap_or_default();
            Err(failed(program, &status.to_string(), &said, redactor))
        }
        Err(error) => Err(failed(program, &error.to_string(), "", redactor)),
    }
}

fn failed(program: String, status: &str, said: &str, redactor: &Redactor) -> SendError {
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = match redactor.redact(&said) {
        said if said.is_empty() => String::new(),
        said => format!(": {said}"),
    };
    SendError::Failed { program, status: status.to_owned(), said }
}

fn spawn(command: &HostCommand) -> std::io::Result<Child> {
    let mut spawned = Command::new(&command.program);
    spawned
        .args(&command.arguments)
        .env_clear()
        .env("PATH", PATH)
        .env("LANG", "C.UTF-8")
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    if let Some(home) = std::env::var_os("HOME") {
        spawned.env("HOME", home);
    }
    spawned.spawn()
}

async fn feed(child: &mut Child, json: &str) -> std::io::Result<std::process::ExitStatus> {
    if let Some(mut input) = child.stdin.take() {
        // A program need not read it.
        let _ = input.write_all(format!("{json}\n").as_bytes()).await;
    }
    child.wait().await
}

/// The end of what it says, however much that is.
async fn tail(mut output: impl AsyncRead + Unpin) -> String {
    let mut kept = Vec::new();
    let mut buffer = [0_u8; 1024];
    while let Ok(read @ 1..) = output.read(&mut buffer).await {
        kept.extend_from_slice(&buffer[..read]);
        kept.drain(..kept.len().saturating_sub(KEPT));
    }
    String::from_utf8_lossy(&kept).into_owned()
}
