//! `run_python`: one cell in the run's one interpreter.

use serde::Deserialize;

use crate::sandbox::{Call, KernelOutput, Reply};

use super::context::{Asked, ToolContext, ToolFailure, ToolOutput, unexpected};
use super::output::{self, Raw};

/// The arguments of a call.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    code: String,
    timeout_seconds: Option<u64>,
    reset_kernel: Option<bool>,
    return_vars: Option<Vec<String>>,
}

/// Runs the cell.
pub(super) async fn run(
    arguments: Arguments,
    context: &ToolContext<'_>,
) -> Result<ToolOutput, ToolFailure> {
    let timeout = context.timeout(arguments.timeout_seconds).min(context.cell_timeout);
    let call = Call::Python {
        code: arguments.code,
        timeout,
        reset_kernel: arguments.reset_kernel.unwrap_or(false),
        return_vars: arguments.return_vars.unwrap_or_default(),
    };
    let done = match context.ask(call).await? {
        Asked::Reply(Reply::Kernel(done)) => done,
        Asked::Reply(other) => return Err(unexpected(&other)),
        Asked::Refused(error) => return Ok(error),
    };
    let whole = transcript(&done);
    let raw = Raw {
        bytes: &whole,
        dropped_bytes: done.dropped_bytes,
        spill_path: done.spill_path.as_deref(),
    };
    let is_error = done.error.is_some() || done.timed_out || done.oom_killed;
    let text = output::show(raw, &verdict(&done, timeout.as_secs()), context).await?;
    Ok(ToolOutput { text, is_error, ..ToolOutput::default() })
}

/// What the cell printed, then its value and the variables that were asked for, then its error.
fn transcript(done: &KernelOutput) -> Vec<u8> {
    let mut whole = done.output.clone();
    let mut line = |text: String| {
        if !whole.is_empty() && whole.last() != Some(&b'\n') {
            whole.push(b'\n');
        }
        whole.extend_from_slice(text.as_bytes());
    };
    if let Some(value) = &done.value {
        line(value.clone());
    }
    for (name, value) in &done.vars {
        line(format!("{name} = {value}"));
    }
    if let Some(error) = &done.error {
        line(error.clone());
    }
    whole
}

/// The last lines: what the model must know about the cell's end.
fn verdict(done: &KernelOutput, timeout_secs: u64) -> String {
    let mut lines = Vec::new();
    if !done.figures.is_empty() {
        lines.push(format!("[figures: {}]", done.figures.join(", ")));
    }
    if done.timed_out {
        lines.push(format!("[timed out after {timeout_secs} s; the cell was stopped]"));
    }
    if done.oom_killed {
        lines.push(output::OUT_OF_MEMORY.to_owned());
    }
    if done.kernel_lost {
        lines.push("[the interpreter was started anew: its variables are lost]".to_owned());
    }
    if lines.is_empty() {
        let end = if done.error.is_some() { "[failed]" } else { "[ok]" };
        lines.push(end.to_owned());
    }
    lines.join("\n")
}
