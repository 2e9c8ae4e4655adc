//! `confirm_audit`: the model says that the work is done and checked, or that it cannot be done. An abort
//! ends the run as a failure, whatever else holds.

use serde::Deserialize;

use super::context::{Change, ToolOutput};

/// Characters of a reason that are kept.
const MAX_REASON: usize = 1000;

/// The arguments of a call.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    status: Status,
    summary: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    Done,
    Abort,
}

/// Takes the model's word. What it says is checked by the gates, not believed.
pub(super) fn run(arguments: &Arguments) -> ToolOutput {
    let summary = arguments.summary.trim();
    if summary.is_empty() {
        return ToolOutput::error(
            "not executed: the summary is empty: say what was checked, or why not",
        );
    }
    match arguments.status {
        Status::Done => ToolOutput::text("noted; answer without a tool call to end the run"),
        Status::Abort => ToolOutput {
            change: Change::Abort { reason: summary.chars().take(MAX_REASON).collect() },
            ..ToolOutput::text("the run ends as a failure")
        },
    }
}
