//! `run_if`: a command in the run's sealed sandbox decides whether a scheduled run goes on, before
//! anything is asked of a model.

use tokio_util::sync::CancellationToken;

use crate::agent::EventSink;
use crate::bundle::{OnError, RunIf};
use crate::run::{Cancel, EventKind, Outcome, OutcomeClass};
use crate::sandbox::{Call, PendingSandbox, Reply};

/// Bytes of the command's output that the session log keeps.
const KEPT_OUTPUT: usize = 4096;

/// What the condition says.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    GoOn,
    /// The occurrence does not run.
    Skip,
    /// The condition itself failed, and the task wants that to be a failure.
    Fail(Outcome),
    /// The run was told to end meanwhile.
    Cancelled,
}

/// Runs the command and records what came of it.
pub async fn check(
    run_if: &RunIf,
    sandbox: PendingSandbox,
    events: &EventSink,
    cancel: &Cancel,
) -> Verdict {
    let token = CancellationToken::new();
    let verdict = tokio::select! {
        biased;
        _ = cancel.cancelled() => {
            token.cancel();
            return Verdict::Cancelled;
        }
        tried = attempt(run_if, sandbox, &token) => tried,
    };
    let (tried, verdict) = judge(run_if, verdict);
    let checked = EventKind::ConditionChecked {
        command: run_if.command.clone(),
        exit_code: tried.exit_code,
        output: tried.output,
        goes_on: verdict == Verdict::GoOn,
    };
    // A log that cannot be written cancels the run, which the caller sees.
    let _ = events.record(checked).await;
    verdict
}

/// What came of the command: its exit code, or why there is none.
struct Tried {
    exit_code: Option<i32>,
    output: String,
    failure: Option<String>,
}

async fn attempt(run_if: &RunIf, sandbox: PendingSandbox, token: &CancellationToken) -> Tried {
    let failed = |failure: String| Tried {
        exit_code: None,
        output: failure.clone(),
        failure: Some(failure),
    };
    let sandbox = match sandbox.await {
        Ok(sandbox) => sandbox,
        Err(error) => return failed(format!("the sandbox did not start: {error}")),
    };
    let command = run_if.command.clone();
    let call = Call::Bash { command, cwd: None, timeout: run_if.timeout };
    match sandbox.call(call, token).await {
        Ok(Reply::Command(done)) if done.timed_out => {
            failed(format!("it took longer than {} s", run_if.timeout.as_secs()))
        }
        Ok(Reply::Command(done)) => {
            let tail = done.output.len().saturating_sub(KEPT_OUTPUT);
            let output = String::from_utf8_lossy(&done.output[tail..]).into_owned();
            match done.exit_code {
                Some(code) => Tried { exit_code: Some(code), output, failure: None },
                None => failed("it ended without an exit code".to_owned()),
            }
        }
        Ok(_) => failed("the sandbox did not answer the call".to_owned()),
        Err(error) => failed(error.to_string()),
    }
}

fn judge(run_if: &RunIf, tried: Tried) -> (Tried, Verdict) {
    let verdict = match (&tried.failure, run_if.on_error) {
        (None, _) if tried.exit_code == Some(run_if.exit_code) => Verdict::GoOn,
        (None, _) | (Some(_), OnError::Skip) => Verdict::Skip,
        (Some(_), OnError::Run) => Verdict::GoOn,
        (Some(failure), OnError::Fail) => {
            let reason = format!("run_if could not be decided: {failure}");
            Verdict::Fail(Outcome::failed(OutcomeClass::Transient, reason))
        }
    };
    (tried, verdict)
}
