//! What can be asked of a sandbox, and what it answers. The real container and the double of the
//! tests both answer these.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, Shared};
use tokio_util::sync::CancellationToken;

/// One request to the helper. Paths are relative to the workspace or absolute beneath it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// Runs `bash -c command` in its own process group, in `cwd` (default: the workspace).
    Bash { command: String, cwd: Option<String>, timeout: Duration },
    /// Runs one cell in the run's one interpreter.
    Python { code: String, timeout: Duration, reset_kernel: bool, return_vars: Vec<String> },
    /// Reads `limit` bytes from `offset` (at most 128 KiB).
    Read { path: String, offset: u64, limit: u64 },
    /// Replaces a file atomically, making its parent directories.
    Write { path: String, content: Vec<u8> },
    /// Replaces `old` by `new`; `old` must occur once unless `replace_all`.
    Edit {
        path: String,
        old: String,
        new: String,
        replace_all: bool,
        expected_hash: Option<String>,
    },
    /// Size and kind of one path, links not followed.
    Stat { path: String },
    /// Names in a directory, at most 10,000.
    List { path: String },
    /// Reads a whole regular file for collection, at most `max_bytes`.
    Fetch { path: String, max_bytes: u64 },
    /// Commits what is uncommitted as a marked commit, leaving out fleet's own directories, and
    /// packs `base..HEAD` as a git bundle of at most `max_bytes`.
    CollectGit { base: String, message: String, max_bytes: u64 },
    /// Reads memory events and peaks.
    Resources,
}

/// A command's end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandOutput {
    /// Exit status, or 128 + signal. Absent when the time was over.
    pub exit_code: Option<i32>,
    /// Standard output and error as they came, head and tail kept within the helper's cap.
    pub output: Vec<u8>,
    /// Bytes dropped between head and tail.
    pub dropped_bytes: u64,
    /// Where the whole output is kept in the workspace, when some was dropped.
    pub spill_path: Option<String>,
    pub timed_out: bool,
    /// The kernel killed a process of the container for want of memory during the call.
    pub oom_killed: bool,
}

/// A cell's end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelOutput {
    pub output: Vec<u8>,
    pub dropped_bytes: u64,
    pub spill_path: Option<String>,
    /// `repr` of the last expression.
    pub value: Option<String>,
    /// Traceback without colour codes.
    pub error: Option<String>,
    /// `return_vars` that exist, by name, as JSON or `repr`.
    pub vars: Vec<(String, String)>,
    /// Workspace-relative paths of figures.
    pub figures: Vec<String>,
    pub timed_out: bool,
    /// The interpreter had to be started anew: its state is lost.
    pub kernel_lost: bool,
    /// The kernel killed a process of the container for want of memory meanwhile.
    pub oom_killed: bool,
}

/// Part of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileContent {
    pub bytes: Vec<u8>,
    /// The whole file's size in bytes.
    pub size: u64,
    /// Lower-case hexadecimal SHA-256 of the whole file.
    pub sha256: String,
}

/// The agent's work as a git bundle. Hostile until git has verified it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GitBundle {
    /// Absent when there is nothing between the base and HEAD.
    pub bytes: Option<Vec<u8>>,
    /// The tip that the helper says it packed.
    pub head: Option<String>,
    /// A marked commit holds what the agent left uncommitted.
    pub salvaged: bool,
}

/// What the container consumed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    pub oom_kills: u64,
    /// Bytes, where cgroups tell.
    pub memory_peak: Option<u64>,
}

/// The answer to a [`Call`], of the same shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    Command(CommandOutput),
    Kernel(KernelOutput),
    Content(FileContent),
    /// Size and hash after a write or an edit; `replaced` counts an edit's replacements.
    Written {
        size: u64,
        sha256: String,
        replaced: u64,
    },
    Stat {
        kind: String,
        size: u64,
    },
    Names(Vec<String>),
    Git(GitBundle),
    Resources(Resources),
}

/// Why a file call was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditError {
    NotFound,
    IsDirectory,
    /// `old` occurs more than once, or not at all.
    Ambiguous,
    /// The content is not what `expected_hash` says.
    Stale,
    NoChange,
    /// A link, a special file, or a path that leaves the workspace.
    Unsafe,
    TooLarge,
    /// Disk full, permission denied and the like.
    Io,
}

/// Why a call gave no reply.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CallError {
    /// The call itself was refused; the sandbox is well.
    #[error("{message}")]
    Refused { kind: EditError, message: String },
    /// The caller cancelled; what ran was killed.
    #[error("the call was cancelled")]
    Cancelled,
    /// The container is gone or was retired: no further call will be answered.
    #[error("the sandbox ended: {0}")]
    Gone(String),
}

/// Why a sandbox did not start.
#[derive(Clone, Debug, thiserror::Error)]
#[error("sandbox did not start: {message}")]
pub struct StartError {
    /// What failed and the way out.
    pub message: String,
    /// Another attempt may succeed.
    pub transient: bool,
}

/// A sealed place in which the model's code runs.
pub trait Sandbox: Send + Sync {
    /// Makes one call. On cancellation or timeout, what the call started is killed before this
    /// returns; if that is not possible the whole sandbox is.
    fn call<'a>(
        &'a self,
        call: Call,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Reply, CallError>>;

    /// Ends the sandbox and waits until nothing of it is left. May be called more than once.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// A sandbox that may still be starting while the model thinks; cheap to clone.
pub type PendingSandbox = Shared<BoxFuture<'static, Result<Arc<dyn Sandbox>, StartError>>>;
