//! What the model may call: a closed enum with a file per tool. Owns argument parsing, the calls into
//! the sandbox and the bounding of output; refuses to run anything on the host, where only `web_fetch`
//! does its work.

mod arguments;
mod bash;
mod catalog;
mod confirm_audit;
mod context;
mod edit_file;
mod memory;
pub mod output;
mod publish_artifact;
mod roster;
mod run_python;
#[cfg(feature = "fault-injection")]
mod stub_effect;
mod task_tracker;
mod view_file;
mod web_fetch;
mod write_file;

pub use arguments::{ArgumentError, parse_arguments};
pub use catalog::{ToolDescription, describe};
pub use context::{Change, ToolContext, ToolFailure, ToolOutput};
pub use memory::Memories;
pub use publish_artifact::{ArtifactList, MAX_ARTIFACT_BYTES, MAX_ARTIFACTS, workspace_relative};
pub use roster::{Network, may_have_outside_effects, roster};
pub use task_tracker::{ItemStatus, Plan, PlanItem};

use serde_json::Value;

use crate::run::NativeTool;

/// A call whose arguments are valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolCall {
    Bash(bash::Arguments),
    RunPython(run_python::Arguments),
    ViewFile(view_file::Arguments),
    WriteFile(write_file::Arguments),
    EditFile(edit_file::Arguments),
    TaskTracker(task_tracker::Arguments),
    PublishArtifact(publish_artifact::Arguments),
    ConfirmAudit(confirm_audit::Arguments),
    Remember(memory::RememberArguments),
    Recall(memory::RecallArguments),
    WebFetch(web_fetch::Arguments),
    #[cfg(feature = "fault-injection")]
    StubEffect(stub_effect::Arguments),
}

impl ToolCall {
    /// Checks the arguments of a call. Unknown arguments are refused by name.
    pub fn parse(tool: NativeTool, arguments: Value) -> Result<Self, ArgumentError> {
        Ok(match tool {
            NativeTool::Bash => ToolCall::Bash(arguments::decode(tool, arguments)?),
            NativeTool::RunPython => ToolCall::RunPython(arguments::decode(tool, arguments)?),
            NativeTool::ViewFile => ToolCall::ViewFile(arguments::decode(tool, arguments)?),
            NativeTool::WriteFile => ToolCall::WriteFile(arguments::decode(tool, arguments)?),
            NativeTool::EditFile => ToolCall::EditFile(arguments::decode(tool, arguments)?),
            NativeTool::TaskTracker => ToolCall::TaskTracker(arguments::decode(tool, arguments)?),
            NativeTool::PublishArtifact => {
                ToolCall::PublishArtifact(arguments::decode(tool, arguments)?)
            }
            NativeTool::ConfirmAudit => ToolCall::ConfirmAudit(arguments::decode(tool, arguments)?),
            NativeTool::Remember => ToolCall::Remember(arguments::decode(tool, arguments)?),
            NativeTool::Recall => ToolCall::Recall(arguments::decode(tool, arguments)?),
            NativeTool::WebFetch => ToolCall::WebFetch(arguments::decode(tool, arguments)?),
            #[cfg(feature = "fault-injection")]
            NativeTool::StubEffect => ToolCall::StubEffect(arguments::decode(tool, arguments)?),
        })
    }

    /// Whether the call changes nothing, so that it may run beside others.
    pub fn is_read_only(&self) -> bool {
        match self {
            ToolCall::ViewFile(_) | ToolCall::WebFetch(_) | ToolCall::Recall(_) => true,
            ToolCall::TaskTracker(arguments) => arguments.is_view(),
            ToolCall::Bash(_)
            | ToolCall::RunPython(_)
            | ToolCall::WriteFile(_)
            | ToolCall::EditFile(_)
            | ToolCall::PublishArtifact(_)
            | ToolCall::ConfirmAudit(_)
            | ToolCall::Remember(_) => false,
            #[cfg(feature = "fault-injection")]
            ToolCall::StubEffect(_) => false,
        }
    }

    /// Runs the call. On cancellation it returns as soon as what it started has been killed.
    pub async fn run(self, context: &ToolContext<'_>) -> Result<ToolOutput, ToolFailure> {
        match self {
            ToolCall::Bash(arguments) => bash::run(arguments, context).await,
            ToolCall::RunPython(arguments) => run_python::run(arguments, context).await,
            ToolCall::ViewFile(arguments) => view_file::run(arguments, context).await,
            ToolCall::WriteFile(arguments) => write_file::run(arguments, context).await,
            ToolCall::EditFile(arguments) => edit_file::run(arguments, context).await,
            ToolCall::TaskTracker(arguments) => task_tracker::run(arguments, context),
            ToolCall::PublishArtifact(arguments) => publish_artifact::run(arguments, context).await,
            ToolCall::ConfirmAudit(arguments) => Ok(confirm_audit::run(&arguments)),
            ToolCall::Remember(arguments) => Ok(memory::remember(&arguments, context)),
            ToolCall::Recall(arguments) => memory::recall(&arguments, context).await,
            ToolCall::WebFetch(arguments) => web_fetch::run(arguments, context).await,
            #[cfg(feature = "fault-injection")]
            ToolCall::StubEffect(arguments) => stub_effect::run(arguments, context).await,
        }
    }
}
