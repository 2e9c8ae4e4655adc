//! A sandbox without a container: files in memory, commands with scripted ends. It keeps the same
//! contract as the real one, and records every call.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use fleet::sandbox::{
    Call, CallError, CommandOutput, EditError, FileContent, KernelOutput, PendingSandbox, Reply,
    Resources, Sandbox, StartError,
};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sha2::{Digest, Sha256};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// How a command ends.
#[derive(Clone, Debug)]
pub enum CommandEnd {
    Output(CommandOutput),
    /// Exits with 0 and leaves a file removed.
    Removes(&'static str),
    /// Runs until it is cancelled.
    Hangs,
    /// The double itself panics, with these words.
    Panics(&'static str),
    /// The container dies, for this reason.
    Dies(&'static str),
}

/// The double. Clones share everything.
#[derive(Clone, Debug, Default)]
pub struct SandboxDouble {
    state: Arc<Mutex<State>>,
    calls_made: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct State {
    files: BTreeMap<String, Vec<u8>>,
    commands: BTreeMap<String, CommandEnd>,
    cells: BTreeMap<String, KernelOutput>,
    calls: Vec<Call>,
    closed: bool,
}

/// A command's plain end.
pub fn exits(code: i32, output: &str) -> CommandEnd {
    CommandEnd::Output(CommandOutput {
        exit_code: Some(code),
        output: output.as_bytes().to_vec(),
        ..CommandOutput::default()
    })
}

impl SandboxDouble {
    /// A workspace that holds `files`.
    pub fn with_files(files: &[(&str, &str)]) -> Self {
        let double = SandboxDouble::default();
        for (path, content) in files {
            double.put(path, content.as_bytes());
        }
        double
    }

    /// Puts a file into the workspace.
    pub fn put(&self, path: &str, content: &[u8]) {
        self.lock().files.insert(path.to_owned(), content.to_vec());
    }

    /// The content of a file.
    pub fn file(&self, path: &str) -> Option<Vec<u8>> {
        self.lock().files.get(path).cloned()
    }

    /// Says how `command` ends; others exit with 0 and say nothing.
    pub fn on_command(&self, command: &str, end: CommandEnd) {
        self.lock().commands.insert(command.to_owned(), end);
    }

    /// Says how the cell `code` ends; others say nothing.
    pub fn on_cell(&self, code: &str, end: KernelOutput) {
        self.lock().cells.insert(code.to_owned(), end);
    }

    /// Every call so far.
    pub fn calls(&self) -> Vec<Call> {
        self.lock().calls.clone()
    }

    /// Returns once that many calls were made.
    pub async fn wait_for_calls(&self, number: usize) {
        let mut seen = self.calls_made.subscribe();
        seen.wait_for(|made| *made >= number).await.expect("the double lives");
    }

    /// The double as a sandbox that has started.
    pub fn started(&self) -> PendingSandbox {
        let sandbox: Arc<dyn Sandbox> = Arc::new(self.clone());
        futures_util::future::ready(Ok(sandbox)).boxed().shared()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    async fn answer(&self, call: Call, cancel: &CancellationToken) -> Result<Reply, CallError> {
        {
            let mut state = self.lock();
            if state.closed {
                return Err(CallError::Gone("it was closed".to_owned()));
            }
            state.calls.push(call.clone());
            self.calls_made.send_modify(|made| *made += 1);
        }
        match call {
            Call::Bash { command, .. } => self.command(&command, cancel).await,
            Call::Python { code, .. } => {
                Ok(Reply::Kernel(self.lock().cells.get(&code).cloned().unwrap_or_default()))
            }
            Call::Read { path, offset, limit } => self.read(&path, offset, limit),
            Call::Write { path, content } => {
                let reply = written(&content, 0);
                self.lock().files.insert(path, content);
                Ok(reply)
            }
            Call::Edit { path, old, new, replace_all, expected_hash } => {
                self.edit(&path, (&old, &new), replace_all, expected_hash)
            }
            Call::Stat { path } => match self.lock().files.get(&path) {
                Some(content) => {
                    Ok(Reply::Stat { kind: "file".to_owned(), size: content.len() as u64 })
                }
                None => Err(refused(EditError::NotFound, &path)),
            },
            Call::List { .. } => Ok(Reply::Names(self.lock().files.keys().cloned().collect())),
            Call::Fetch { path, .. } => self.read(&path, 0, u64::MAX),
            Call::CollectGit { .. } => Ok(Reply::Git(fleet::sandbox::GitBundle::default())),
            Call::Resources => Ok(Reply::Resources(Resources::default())),
        }
    }

    async fn command(&self, command: &str, cancel: &CancellationToken) -> Result<Reply, CallError> {
        let end = self.lock().commands.get(command).cloned().unwrap_or_else(|| exits(0, ""));
        match end {
            CommandEnd::Output(output) => Ok(Reply::Command(output)),
            CommandEnd::Removes(path) => {
                self.lock().files.remove(path);
                Ok(Reply::Command(CommandOutput { exit_code: Some(0), ..Default::default() }))
            }
            CommandEnd::Hangs => {
                cancel.cancelled().await;
                Err(CallError::Cancelled)
            }
            CommandEnd::Panics(words) => panic!("{words}"),
            CommandEnd::Dies(reason) => {
                self.lock().closed = true;
                Err(CallError::Gone(reason.to_owned()))
            }
        }
    }

    fn read(&self, path: &str, offset: u64, limit: u64) -> Result<Reply, CallError> {
        let state = self.lock();
        let content = state.files.get(path).ok_or_else(|| refused(EditError::NotFound, path))?;
        let start = (offset as usize).min(content.len());
        let end = start.saturating_add(limit as usize).min(content.len());
        Ok(Reply::Content(FileContent {
            bytes: content[start..end].to_vec(),
            size: content.len() as u64,
            sha256: hash(content),
        }))
    }

    fn edit(
        &self,
        path: &str,
        (old, new): (&str, &str),
        replace_all: bool,
        expected_hash: Option<String>,
    ) -> Result<Reply, CallError> {
        let mut state = self.lock();
        let content = state.files.get(path).ok_or_else(|| refused(EditError::NotFound, path))?;
        if expected_hash.is_some_and(|expected| expected != hash(content)) {
            return Err(refused(EditError::Stale, path));
        }
        let text = String::from_utf8_lossy(content).into_owned();
        let found = text.matches(old).count();
        if found == 0 || (found > 1 && !replace_all) {
            return Err(refused(EditError::Ambiguous, path));
        }
        let edited = text.replace(old, new).into_bytes();
        let reply = written(&edited, found as u64);
        state.files.insert(path.to_owned(), edited);
        Ok(reply)
    }
}

/// A sandbox that does not start.
pub fn never_starts(message: &str, transient: bool) -> PendingSandbox {
    let error = StartError { message: message.to_owned(), transient };
    futures_util::future::ready(Err(error)).boxed().shared()
}

/// Lower-case hexadecimal SHA-256.
pub fn hash(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn written(content: &[u8], replaced: u64) -> Reply {
    Reply::Written { size: content.len() as u64, sha256: hash(content), replaced }
}

fn refused(kind: EditError, path: &str) -> CallError {
    CallError::Refused { kind, message: format!("{path}: {kind:?}").to_lowercase() }
}

impl Sandbox for SandboxDouble {
    fn call<'a>(
        &'a self,
        call: Call,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Reply, CallError>> {
        self.answer(call, cancel).boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.lock().closed = true;
        futures_util::future::ready(()).boxed()
    }
}
