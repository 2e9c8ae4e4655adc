//! `write_file`: creates or replaces a file.

use serde::Deserialize;

use crate::sandbox::{Call, Reply};

use super::context::{Asked, ToolContext, ToolFailure, ToolOutput, unexpected};

/// The arguments of a call.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    path: String,
    content: String,
}

/// Writes the file.
pub(super) async fn run(
    arguments: Arguments,
    context: &ToolContext<'_>,
) -> Result<ToolOutput, ToolFailure> {
    let Arguments { path, content } = arguments;
    let call = Call::Write { path: path.clone(), content: content.into_bytes() };
    match context.ask(call).await? {
        Asked::Reply(Reply::Written { size, sha256, .. }) => {
            Ok(ToolOutput::text(format!("wrote {path}: {size} bytes, sha256 {sha256}")))
        }
        Asked::Reply(other) => Err(unexpected(&other)),
        Asked::Refused(error) => Ok(error),
    }
}
