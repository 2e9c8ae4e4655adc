//! `bash`: one command in a new shell.

use serde::Deserialize;

use crate::sandbox::{Call, CommandOutput, Reply};

use super::context::{Asked, ToolContext, ToolFailure, ToolOutput, unexpected};
use super::output::{self, Raw};

/// The arguments of a call.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    command: String,
    timeout_seconds: Option<u64>,
}

/// Runs the command.
pub(super) async fn run(
    arguments: Arguments,
    context: &ToolContext<'_>,
) -> Result<ToolOutput, ToolFailure> {
    let timeout = context.timeout(arguments.timeout_seconds);
    let call = Call::Bash { command: arguments.command, cwd: None, timeout };
    let done = match context.ask(call).await? {
        Asked::Reply(Reply::Command(done)) => done,
        Asked::Reply(other) => return Err(unexpected(&other)),
        Asked::Refused(error) => return Ok(error),
    };
    let verdict = verdict(&done, timeout.as_secs());
    let raw = Raw {
        bytes: &done.output,
        dropped_bytes: done.dropped_bytes,
        spill_path: done.spill_path.as_deref(),
    };
    let shown = output::show(raw, &verdict, context).await?;
    Ok(ToolOutput {
        text: shown,
        is_error: done.exit_code != Some(0) || done.timed_out || done.oom_killed,
        exit_code: done.exit_code,
        ..ToolOutput::default()
    })
}

/// The last line: how the command ended.
fn verdict(done: &CommandOutput, timeout_secs: u64) -> String {
    let mut verdict = match done.exit_code {
        Some(code) => format!("[exit {code}]"),
        None => "[no exit code]".to_owned(),
    };
    if done.timed_out {
        verdict.push_str(&format!("\n[timed out after {timeout_secs} s; it was killed]"));
    }
    if done.oom_killed {
        verdict.push('\n');
        verdict.push_str(output::OUT_OF_MEMORY);
    }
    verdict
}
