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
pub use task_tracker::{ItemStatus, Plan, PlanItem};

use serde_json::Value;

use crate::run::NativeTool;

/// Whether what runs in the sandbox can reach beyond it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    Sealed,
    Open,
}

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

/// The tools that a run is offered, in their order. `remembers`: its task has a memory.
pub fn roster(network: Network, remembers: bool) -> Vec<NativeTool> {
    let offered = |tool: &NativeTool| match tool {
        NativeTool::WebFetch => network == Network::Open,
        NativeTool::Remember | NativeTool::Recall => remembers,
        _ => true,
    };
    let native = NativeTool::ALL.into_iter().filter(offered);
    #[cfg(feature = "fault-injection")]
    if stub_effect::service().is_some() {
        return native.chain([NativeTool::StubEffect]).collect();
    }
    native.collect()
}

/// Whether a tool may have effects outside the worktree: only code that the model wrote, and only
/// where the network is open. Memory, plan and artifact tools never do.
pub fn may_have_outside_effects(tool: NativeTool, network: Network) -> bool {
    match (tool, network) {
        (NativeTool::Bash | NativeTool::RunPython, Network::Open) => true,
        (NativeTool::Bash | NativeTool::RunPython, Network::Sealed)
        | (
            NativeTool::ViewFile
            | NativeTool::WriteFile
            | NativeTool::EditFile
            | NativeTool::TaskTracker
            | NativeTool::PublishArtifact
            | NativeTool::ConfirmAudit
            | NativeTool::Remember
            | NativeTool::Recall
            // GET has none, by its definition.
            | NativeTool::WebFetch,
            _,
        ) => false,
        #[cfg(feature = "fault-injection")]
        (NativeTool::StubEffect, _) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn web_fetch_is_offered_only_with_a_network_and_last() {
        let names = |network| {
            roster(network, false).into_iter().map(NativeTool::as_str).collect::<Vec<_>>()
        };
        assert!(!names(Network::Sealed).contains(&"web_fetch"));
        assert_eq!(names(Network::Open).last(), Some(&"web_fetch"));
    }

    #[test]
    fn only_model_written_code_with_an_open_network_reaches_outside() {
        let reaching: Vec<_> = NativeTool::ALL
            .into_iter()
            .filter(|tool| may_have_outside_effects(*tool, Network::Open))
            .collect();
        assert_eq!(reaching, [NativeTool::Bash, NativeTool::RunPython]);
        let sealed = NativeTool::ALL
            .into_iter()
            .filter(|tool| may_have_outside_effects(*tool, Network::Sealed));
        assert_eq!(sealed.count(), 0);
    }
}
