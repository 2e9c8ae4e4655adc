//! `edit_file`: replaces text in a file.

use serde::Deserialize;

use crate::sandbox::{Call, Reply};

use super::context::{Asked, ToolContext, ToolFailure, ToolOutput, unexpected};

/// The arguments of a call.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    path: String,
    old: String,
    new: String,
    replace_all: Option<bool>,
    expected_hash: Option<String>,
}

/// Edits the file.
pub(super) async fn run(
    arguments: Arguments,
    context: &ToolContext<'_>,
) -> Result<ToolOutput, ToolFailure> {
    let path = arguments.path;
    if arguments.old.is_empty() {
        let text = "`old` is empty; name the text to replace, or use write_file for a new file";
        return Ok(ToolOutput::error(text));
    }
    let call = Call::Edit {
        path: path.clone(),
        old: arguments.old,
        new: arguments.new,
        replace_all: arguments.replace_all.unwrap_or(false),
        expected_hash: arguments.expected_hash,
    };
    match context.ask(call).await? {
        Asked::Reply(Reply::Written { size, sha256, replaced }) => Ok(ToolOutput::text(format!(
            "edited {path}: {replaced} replaced, {size} bytes, sha256 {sha256}"
        ))),
        Asked::Reply(other) => Err(unexpected(&other)),
        Asked::Refused(error) => Ok(error),
    }
}
