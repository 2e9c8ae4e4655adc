//! Runs the git program on a repository's object store: no working tree, no hook, no user or system
//! configuration, no prompt; bounded in time, memory and output.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal};

use super::WorktreeError;
use crate::fault;

/// Output beyond this is read and dropped.
const MAX_OUTPUT: usize = 64 * 1024;
/// Anonymous memory of each git process, in bytes.
const MAX_MEMORY: u64 = 2 << 30;

/// How long git may take to end when asked.
const GRACE: Duration = Duration::from_secs(2);

/// Settings that take precedence over the repository's own.
const SETTINGS: [&str; 16] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    "core.packedGitWindowSize=32m",
    "core.bigFileThreshold=16m",
    "protocol.allow=never",
    "protocol.file.allow=always",
    "transfer.fsckObjects=true",
    "fetch.fsckObjects=true",
    // A pack stays a pack: unpacked objects could be far larger than the bundle was.
    "fetch.unpackLimit=1",
    "fetch.writeCommitGraph=false",
    "fetch.recurseSubmodules=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "diff.external=",
    "pack.threads=1",
];

/// git on one repository.
pub(super) struct Git<'a> {
    pub git_dir: &'a Path,
    /// A directory of fleet's own.
    pub cwd: &'a Path,
    pub timeout: Duration,
}

impl Git<'_> {
    /// Runs git and gives its standard output; any exit but 0 is an error with git's own words.
    pub fn run(&self, args: &[&OsStr]) -> Result<String, WorktreeError> {
        let verb = args.first().map(|verb| verb.to_string_lossy().into_owned());
        let verb = verb.unwrap_or_default();
        let mut child = self.command(args).spawn().map_err(|error| WorktreeError::Git {
            verb: verb.clone(),
            message: format!("cannot start it: {error}"),
        })?;
        let group = Pid::from_child(&child);
        // The limit is inherited by what git starts. When it cannot be set, git has just ended.
        let limit = Rlimit { current: Some(MAX_MEMORY), maximum: Some(MAX_MEMORY) };
        let _ = rustix::process::prlimit(Some(group), Resource::Data, limit);
        fault::point("mid_git");
        let out = read_in_background(child.stdout.take());
        let err = read_in_background(child.stderr.take());
        let deadline = Instant::now() + self.timeout;
        let (Ok(out), Ok(err)) = (wait_for(&out, deadline), wait_for(&err, deadline)) else {
            end(group, &mut child, &[out, err]);
            return Err(WorktreeError::GitTimeout { verb, timeout: self.timeout });
        };
        let status = child.wait().map_err(|error| WorktreeError::Git {
            verb: verb.clone(),
            message: format!("cannot wait for it: {error}"),
        })?;
        if status.success() {
            return Ok(String::from_utf8_lossy(&out).into_owned());
        }
        let said = String::from_utf8_lossy(&err).trim().replace('\n', "; ");
        Err(WorktreeError::GitExit { verb, code: status.code(), said })
    }

    fn command(&self, args: &[&OsStr]) -> Command {
        let mut command = Command::new("git");
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into()))
            .env("HOME", "/dev/null")
            .env("LC_ALL", "C")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_ATTR_NOSYSTEM", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_DIR", self.git_dir)
            .current_dir(self.cwd)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        for setting in SETTINGS {
            command.arg("-c").arg(setting);
        }
        command.args(args);
        command
    }
}

/// Ends git and what it started: asks first, so that it takes its lock files away.
fn end(group: Pid, child: &mut Child, pipes: &[Receiver<Vec<u8>>]) {
    // Already gone is as good.
    let _ = rustix::process::kill_process_group(group, Signal::TERM);
    let deadline = Instant::now() + GRACE;
    for pipe in pipes {
        let _ = wait_for(pipe, deadline);
    }
    let _ = rustix::process::kill_process_group(group, Signal::KILL);
    let _ = child.wait();
}

/// Reads a pipe to its end on a thread that ends with the pipe.
fn read_in_background(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (done, receiver) = mpsc::sync_channel(1);
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        if let Some(mut pipe) = pipe {
            let limit = MAX_OUTPUT as u64;
            // A broken pipe ends the output; the exit status tells the rest.
            let _ = pipe.by_ref().take(limit).read_to_end(&mut kept);
            let _ = std::io::copy(&mut pipe, &mut std::io::sink().by_ref());
        }
        // Nobody waits any more after a timeout.
        let _ = done.send(kept);
    });
    receiver
}

fn wait_for(from: &Receiver<Vec<u8>>, deadline: Instant) -> Result<Vec<u8>, RecvTimeoutError> {
    from.recv_timeout(deadline.saturating_duration_since(Instant::now()))
}
