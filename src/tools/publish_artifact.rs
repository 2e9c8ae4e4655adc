//! `publish_artifact`: names a file of the workspace as a result of the run. The bytes are copied
//! when the work is collected.

use std::sync::PoisonError;

use serde::Deserialize;

use crate::run::Artifact;
use crate::sandbox::{Call, Reply};

use super::context::{Asked, Change, ToolContext, ToolFailure, ToolOutput, unexpected};

/// The most files that one run publishes.
pub const MAX_ARTIFACTS: usize = 50;
/// The largest file that can be published: it is copied out of the sandbox whole.
pub const MAX_ARTIFACT_BYTES: u64 = 64 * 1024 * 1024;
/// The longest name, as of a file.
const MAX_NAME_BYTES: usize = 255;

/// The arguments of a call.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    path: String,
    name: Option<String>,
    description: Option<String>,
}

/// What an attempt has published, in the order of first publishing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArtifactList(Vec<Artifact>);

impl ArtifactList {
    /// The artifacts.
    pub fn as_slice(&self) -> &[Artifact] {
        &self.0
    }

    /// Whether a file of that path or name is published.
    pub fn find(&self, path_or_name: &str, workspace: &str) -> Option<&Artifact> {
        let path = workspace_relative(path_or_name, workspace);
        self.0
            .iter()
            .find(|artifact| artifact.name == path_or_name || Some(&artifact.path) == path.as_ref())
    }

    /// Adds an artifact, or replaces that of the same path. False when the list is full.
    fn publish(&mut self, artifact: Artifact) -> bool {
        if let Some(known) = self.0.iter_mut().find(|known| known.path == artifact.path) {
            *known = artifact;
            return true;
        }
        if self.0.len() >= MAX_ARTIFACTS {
            return false;
        }
        self.0.push(artifact);
        true
    }
}

/// The path relative to the workspace, in its plain form; `None` when it is not beneath it.
pub fn workspace_relative(path: &str, workspace: &str) -> Option<String> {
    let path = match path.strip_prefix('/') {
        None => path,
        Some(_) => path.strip_prefix(workspace.trim_end_matches('/'))?.strip_prefix('/')?,
    };
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    (!parts.is_empty()).then(|| parts.join("/"))
}

/// Publishes the file.
pub(super) async fn run(
    arguments: Arguments,
    context: &ToolContext<'_>,
) -> Result<ToolOutput, ToolFailure> {
    let Some(path) = workspace_relative(&arguments.path, context.workspace_path) else {
        return Ok(ToolOutput::error(format!(
            "{} is not a file beneath the workspace {}",
            arguments.path, context.workspace_path
        )));
    };
    let size = match context.ask(Call::Stat { path: path.clone() }).await? {
        Asked::Reply(Reply::Stat { kind, size }) if kind == "file" => size,
        Asked::Reply(Reply::Stat { kind, .. }) => {
            return Ok(ToolOutput::error(format!(
                "{path} is a {kind}; only regular files can be published"
            )));
        }
        Asked::Reply(other) => return Err(unexpected(&other)),
        Asked::Refused(error) => return Ok(error),
    };
    if size > MAX_ARTIFACT_BYTES {
        return Ok(ToolOutput::error(format!(
            "{path} has {size} bytes; at most {MAX_ARTIFACT_BYTES} can be published: compress or split it"
        )));
    }
    let name = name_of(arguments.name, &path);
    if name.len() > MAX_NAME_BYTES {
        return Ok(ToolOutput::error(format!(
            "the name has {} bytes; at most {MAX_NAME_BYTES} are allowed",
            name.len()
        )));
    }
    let artifact = Artifact {
        name,
        path: path.clone(),
        description: arguments.description.filter(|text| !text.trim().is_empty()),
        size,
        sha256: None,
    };
    let mut artifacts = context.artifacts.lock().unwrap_or_else(PoisonError::into_inner);
    if !artifacts.publish(artifact.clone()) {
        return Ok(ToolOutput::error(format!(
            "{MAX_ARTIFACTS} files are published already, which is the most; put more into an archive"
        )));
    }
    Ok(ToolOutput {
        text: format!("published {path} as {} ({size} bytes)", artifact.name),
        change: Change::Artifact(artifact),
        ..ToolOutput::default()
    })
}

/// The name that was given, else the path's last part.
fn name_of(given: Option<String>, path: &str) -> String {
    given
        .filter(|name| !name.trim().is_empty())
        .unwrap_or_else(|| path.rsplit('/').next().unwrap_or(path).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_brought_beneath_the_workspace_or_refused() {
        let relative = |path| workspace_relative(path, "/w/t");
        assert_eq!(relative("out/./a.md").as_deref(), Some("out/a.md"));
        assert_eq!(relative("/w/t/a.md").as_deref(), Some("a.md"));
        assert_eq!(relative("x/../a.md").as_deref(), Some("a.md"));
        for outside in ["../a.md", "/etc/passwd", "/w/tother/a", "", ".", "/w/t", "a/../../b"] {
            assert_eq!(relative(outside), None, "{outside}");
        }
    }
}
