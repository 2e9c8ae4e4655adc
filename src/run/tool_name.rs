//! The names of fleet's own tools.

use serde::{Deserialize, Serialize};

/// A tool that fleet itself provides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NativeTool {
    Bash,
    RunPython,
    ViewFile,
    WriteFile,
    EditFile,
    TaskTracker,
    PublishArtifact,
    ConfirmAudit,
    /// Offered only to tasks with a memory.
    Remember,
    /// Offered only to tasks with a memory.
    Recall,
    /// Offered only where the task has a network.
    WebFetch,
    /// Has an effect that a test can count.
    #[cfg(feature = "fault-injection")]
    StubEffect,
}

impl NativeTool {
    /// Every native tool, in the order in which they are offered to the model.
    pub const ALL: [NativeTool; 11] = [
        NativeTool::Bash,
        NativeTool::RunPython,
        NativeTool::ViewFile,
        NativeTool::WriteFile,
        NativeTool::EditFile,
        NativeTool::TaskTracker,
        NativeTool::PublishArtifact,
        NativeTool::ConfirmAudit,
        NativeTool::Remember,
        NativeTool::Recall,
        NativeTool::WebFetch,
    ];

    /// The name by which the model calls it.
    pub fn as_str(self) -> &'static str {
        match self {
            NativeTool::Bash => "bash",
            NativeTool::RunPython => "run_python",
            NativeTool::ViewFile => "view_file",
            NativeTool::WriteFile => "write_file",
            NativeTool::EditFile => "edit_file",
            NativeTool::TaskTracker => "task_tracker",
            NativeTool::PublishArtifact => "publish_artifact",
            NativeTool::ConfirmAudit => "confirm_audit",
            NativeTool::Remember => "remember",
            NativeTool::Recall => "recall",
            NativeTool::WebFetch => "web_fetch",
            #[cfg(feature = "fault-injection")]
            NativeTool::StubEffect => "stub_effect",
        }
    }

    /// The tool of that name.
    pub fn parse(text: &str) -> Option<Self> {
        #[cfg(feature = "fault-injection")]
        if text == NativeTool::StubEffect.as_str() {
            return Some(NativeTool::StubEffect);
        }
        Self::ALL.into_iter().find(|tool| tool.as_str() == text)
    }
}
