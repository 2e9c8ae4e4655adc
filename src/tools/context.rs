//! What a tool is given, what it gives back, and how the sandbox's refusals read to the model.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::egress::Gate;
use crate::run::Artifact;
use crate::sandbox::{Call, CallError, EditError, Reply, Sandbox};
use crate::secrets::Redactor;

use super::{ArtifactList, Memories, Plan};

/// What one call may use.
pub struct ToolContext<'a> {
    pub sandbox: &'a Arc<dyn Sandbox>,
    /// The run's way out; absent: none.
    pub egress: Option<&'a Gate>,
    pub workspace_path: &'a str,
    /// Names the file that keeps output which the model does not see whole.
    pub call_id: &'a str,
    /// The ceiling for one command or cell.
    pub timeout: Duration,
    /// The ceiling for one Python cell: never above `timeout`.
    pub cell_timeout: Duration,
    /// Bytes of output that the model sees.
    pub output_limit_bytes: usize,
    /// Knows what must not be cut in two: the store masks it whole.
    pub redactor: &'a Redactor,
    pub plan: &'a Mutex<Plan>,
    pub artifacts: &'a Mutex<ArtifactList>,
    pub memories: &'a Mutex<Memories>,
    pub cancel: &'a CancellationToken,
}

/// What a call changed beyond the workspace's files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Change {
    #[default]
    Nothing,
    Artifact(Artifact),
    Plan {
        open: u32,
        done: u32,
    },
    /// A fact for later runs; `evicted` went for it.
    Memory {
        key: String,
        value: String,
        evicted: Option<String>,
    },
    /// The model gives the task up.
    Abort {
        reason: String,
    },
}

/// A call's end, as the model sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolOutput {
    pub text: String,
    pub is_error: bool,
    pub exit_code: Option<i32>,
    pub change: Change,
}

/// Why a call gave no output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolFailure {
    Cancelled,
    /// The sandbox is gone: the attempt cannot go on.
    SandboxGone(String),
}

impl ToolOutput {
    /// A success.
    pub fn text(text: impl Into<String>) -> Self {
        ToolOutput { text: text.into(), ..ToolOutput::default() }
    }

    /// A failure that the model can act on.
    pub fn error(text: impl Into<String>) -> Self {
        ToolOutput { text: text.into(), is_error: true, ..ToolOutput::default() }
    }
}

/// The reply, or what to tell the model instead.
pub(super) enum Asked {
    Reply(Reply),
    Refused(ToolOutput),
}

impl ToolContext<'_> {
    /// Makes one call into the sandbox. A refusal becomes an error that says what to do.
    pub(super) async fn ask(&self, call: Call) -> Result<Asked, ToolFailure> {
        match self.sandbox.call(call, self.cancel).await {
            Ok(reply) => Ok(Asked::Reply(reply)),
            Err(CallError::Refused { kind, message }) => {
                Ok(Asked::Refused(ToolOutput::error(format!("{message}; {}", way_out(kind)))))
            }
            Err(CallError::Cancelled) => Err(ToolFailure::Cancelled),
            Err(CallError::Gone(reason)) => Err(ToolFailure::SandboxGone(reason)),
        }
    }

    /// The time that a command may take: what was asked for, at most the ceiling.
    pub(super) fn timeout(&self, asked_seconds: Option<u64>) -> Duration {
        asked_seconds
            .map_or(self.timeout, |seconds| Duration::from_secs(seconds.max(1)))
            .min(self.timeout)
    }
}

/// A reply of another shape than the call's: the sandbox broke its contract, so nothing that it says
/// can be trusted.
pub(super) fn unexpected(reply: &Reply) -> ToolFailure {
    let kind = match reply {
        Reply::Command(_) => "command",
        Reply::Kernel(_) => "kernel",
        Reply::Content(_) => "content",
        Reply::Written { .. } => "written",
        Reply::Stat { .. } => "stat",
        Reply::Names(_) => "names",
        Reply::Git(_) => "git",
        Reply::Resources(_) => "resources",
    };
    ToolFailure::SandboxGone(format!("it answered with an unexpected reply ({kind})"))
}

fn way_out(kind: EditError) -> &'static str {
    match kind {
        EditError::NotFound => "check the path with bash: ls",
        EditError::IsDirectory => "name a file",
        EditError::Ambiguous => {
            "`old` must occur exactly once: view the file and include more lines around it, or set \
             replace_all"
        }
        EditError::Stale => "the file has changed: view it again and use its new sha256",
        EditError::NoChange => "`old` and `new` are equal: nothing to do",
        EditError::Unsafe => "use a regular file beneath the workspace, without links in its path",
        EditError::TooLarge => "work on a part of it",
        EditError::Io => "nothing was changed",
    }
}
