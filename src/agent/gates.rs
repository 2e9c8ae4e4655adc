//! What must hold when the model stops. A gate that fails sends the loop round with a message, at
//! most [`MAX_ENFORCEMENT_ROUNDS`] times. Success means that a check of the task passed.

use std::sync::PoisonError;

use crate::run::{EventKind, NativeTool, Outcome, OutcomeClass};
use crate::sandbox::{Call, CallError, CommandOutput, Reply};
use crate::secrets::Redactor;
use crate::tools::output::{self, Raw};

use super::attempt::Attempt;
use super::containment::contain;

/// How often the model is sent back to work after it stopped.
const MAX_ENFORCEMENT_ROUNDS: u32 = 20;
/// How often the model may correct the form of its answer.
const MAX_CORRECTIONS: u32 = 2;
/// Bytes of a failed check's output that the model sees.
const SHOWN_BYTES: usize = 4096;

/// A gate that does not hold.
struct Failure {
    gate: &'static str,
    /// The outcome when the model never makes it hold.
    class: OutcomeClass,
    /// What is missing, for the model and for the outcome's reason.
    message: String,
    /// More for the model: the check's output.
    detail: String,
}

impl Attempt {
    /// A required tool that the run does not offer can never succeed: it ends before it spends.
    pub(super) fn check_required_tools_are_offered(&self) -> Result<(), Outcome> {
        let offered = |name: &&String| {
            NativeTool::parse(name).is_some_and(|tool| self.roster.contains(&tool))
        };
        match self.completion.required_tools.iter().find(|name| !offered(name)) {
            None => Ok(()),
            Some(name) => Err(Outcome::failed(
                OutcomeClass::DeniedTool,
                format!("completion.required_tools names {name:?}, which this run may not use"),
            )),
        }
    }

    /// Checks the gates in order. `Ok` is another round.
    pub(super) async fn check_gates(&mut self) -> Result<(), Outcome> {
        if let Some(failure) = self.first_failure().await? {
            return self.send_back(failure).await;
        }
        let completion = &self.completion;
        let checked = completion.shell.is_some()
            || !completion.artifacts.is_empty()
            || !completion.required_tools.is_empty()
            || completion.output_schema.is_some();
        Err(if checked {
            Outcome::success()
        } else {
            Outcome::failed(
                OutcomeClass::Unverified,
                "the model stopped, but the task has no completion check (artifacts, shell, \
                 required_tools or an output_schema), so nothing verified its work",
            )
        })
    }

    /// An answer that was cut off is no end: the model is asked to go on.
    pub(super) async fn send_back_cut_answer(&mut self) -> Result<(), Outcome> {
        self.send_back(Failure {
            gate: "length",
            class: OutcomeClass::EnforcementRounds,
            message: "the answer was cut off by the length limit; go on, in smaller parts"
                .to_owned(),
            detail: String::new(),
        })
        .await
    }

    async fn first_failure(&mut self) -> Result<Option<Failure>, Outcome> {
        if let Some(failure) = self.plan_gate() {
            return Ok(Some(failure));
        }
        if let Some(failure) = self.required_tools_gate().await? {
            return Ok(Some(failure));
        }
        if let Some(failure) = self.artifacts_gate().await? {
            return Ok(Some(failure));
        }
        if let Some(failure) = self.shell_gate().await? {
            return Ok(Some(failure));
        }
        self.output_gate().await
    }

    /// The last answer is valid by the task's schema. Of the model's last words only: what it said
    /// before is no result.
    async fn output_gate(&mut self) -> Result<Option<Failure>, Outcome> {
        let Some(schema) = self.completion.output_schema.clone() else { return Ok(None) };
        let wrong = match schema.check(&self.last_words) {
            Ok(value) => {
                self.output = Some(value);
                self.passed("output_schema").await?;
                return Ok(None);
            }
            Err(wrong) => wrong,
        };
        let message = format!("the answer is not valid by the output schema: {wrong}");
        if self.corrections >= MAX_CORRECTIONS {
            let (gate, passed) = ("output_schema".to_owned(), false);
            self.record(EventKind::GateChecked { gate, passed, message: message.clone() }).await?;
            let reason = format!("{message} (after {MAX_CORRECTIONS} corrections)");
            return Err(Outcome::failed(OutcomeClass::StructuredOutput, reason));
        }
        self.corrections += 1;
        Ok(Some(Failure {
            gate: "output_schema",
            class: OutcomeClass::StructuredOutput,
            message,
            detail: " Answer with one JSON value and nothing around it.".to_owned(),
        }))
    }

    async fn send_back(&mut self, failure: Failure) -> Result<(), Outcome> {
        let Failure { gate, class, message, detail } = failure;
        self.record(EventKind::GateChecked {
            gate: gate.to_owned(),
            passed: false,
            message: message.clone(),
        })
        .await?;
        if self.enforcement_rounds >= MAX_ENFORCEMENT_ROUNDS {
            let reason =
                format!("{gate}: {message} (after {MAX_ENFORCEMENT_ROUNDS} enforcement rounds)");
            return Err(Outcome::failed(class, reason));
        }
        self.enforcement_rounds += 1;
        self.history.push_user(format!("The run is not finished: {message}.{detail}"));
        Ok(())
    }

    async fn passed(&self, gate: &str) -> Result<(), Outcome> {
        let message = String::new();
        self.record(EventKind::GateChecked { gate: gate.to_owned(), passed: true, message }).await
    }

    fn plan_gate(&self) -> Option<Failure> {
        let plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        let open: Vec<_> =
            plan.open_items().map(|item| format!("{} ({})", item.id, item.title)).collect();
        if open.is_empty() {
            return None;
        }
        Some(Failure {
            gate: "plan",
            class: OutcomeClass::EnforcementRounds,
            message: format!("the plan has {} open items: {}", open.len(), open.join(", ")),
            detail: " Do them, then set each to done; or set it to cancelled and say why."
                .to_owned(),
        })
    }

    async fn required_tools_gate(&self) -> Result<Option<Failure>, Outcome> {
        let required = &self.completion.required_tools;
        if required.is_empty() {
            return Ok(None);
        }
        let succeeded =
            |name: &&String| NativeTool::parse(name).is_some_and(|t| self.succeeded.contains(&t));
        let missing: Vec<_> =
            required.iter().filter(|name| !succeeded(name)).map(String::as_str).collect();
        if missing.is_empty() {
            self.passed("required_tools").await?;
            return Ok(None);
        }
        Ok(Some(completion_failure(
            "required_tools",
            format!("these tools must succeed at least once: {}", missing.join(", ")),
        )))
    }

    async fn artifacts_gate(&mut self) -> Result<Option<Failure>, Outcome> {
        let wanted = self.completion.artifacts.clone();
        if wanted.is_empty() {
            return Ok(None);
        }
        let mut missing = Vec::new();
        for name in wanted {
            if !self.is_published(&name).await? {
                missing.push(name);
            }
        }
        if missing.is_empty() {
            self.passed("artifacts").await?;
            return Ok(None);
        }
        Ok(Some(completion_failure(
            "artifacts",
            format!(
                "these files must exist and be published with publish_artifact: {}",
                missing.join(", ")
            ),
        )))
    }

    /// Published, and still a regular file.
    async fn is_published(&mut self, path_or_name: &str) -> Result<bool, Outcome> {
        let path = {
            let artifacts = self.artifacts.lock().unwrap_or_else(PoisonError::into_inner);
            match artifacts.find(path_or_name, &self.workspace_path) {
                Some(artifact) => artifact.path.clone(),
                None => return Ok(false),
            }
        };
        match self.gate_call(Call::Stat { path }).await? {
            Some(Reply::Stat { kind, .. }) => Ok(kind == "file"),
            _ => Ok(false),
        }
    }

    async fn shell_gate(&mut self) -> Result<Option<Failure>, Outcome> {
        let Some(command) = self.completion.shell.clone() else {
            return Ok(None);
        };
        let call = Call::Bash { command: command.clone(), cwd: None, timeout: self.tool_timeout };
        let done = match self.gate_call(call).await? {
            Some(Reply::Command(done)) => done,
            _ => {
                let message = format!("the check `{command}` could not be run");
                return Ok(Some(completion_failure("shell", message)));
            }
        };
        if done.exit_code == Some(0) && !done.timed_out {
            self.passed("shell").await?;
            return Ok(None);
        }
        Ok(Some(Failure {
            detail: format!(" Its output:\n{}", check_output(&done, &self.redactor)),
            ..completion_failure("shell", format!("the check `{command}` {}", check_end(&done)))
        }))
    }

    /// A gate's own call. `None`: refused, or it failed inside fleet.
    async fn gate_call(&mut self, call: Call) -> Result<Option<Reply>, Outcome> {
        let sandbox = self.ready_sandbox().await?;
        let token = self.guard.cancel.token().child_token();
        let answered = self
            .guard
            .or_cancel(&token, contain(async { sandbox.call(call, &token).await }))
            .await?;
        match answered {
            Ok(Ok(reply)) => Ok(Some(reply)),
            Ok(Err(CallError::Refused { .. })) => Ok(None),
            Ok(Err(CallError::Cancelled)) => Err(self.sandbox_gone("it cancelled a check")),
            Ok(Err(CallError::Gone(reason))) => Err(self.sandbox_gone(&reason)),
            Err(incident) => {
                tracing::error!(incident = incident.id, "a finish gate panicked");
                Ok(None)
            }
        }
    }
}

fn completion_failure(gate: &'static str, message: String) -> Failure {
    Failure { gate, class: OutcomeClass::CompletionFailed, message, detail: String::new() }
}

fn check_end(done: &CommandOutput) -> String {
    match done.exit_code {
        _ if done.timed_out => "timed out".to_owned(),
        Some(code) => format!("exited with {code}"),
        None => "ended without an exit code".to_owned(),
    }
}

fn check_output(done: &CommandOutput, redactor: &Redactor) -> String {
    let raw = Raw {
        bytes: &done.output,
        dropped_bytes: done.dropped_bytes,
        spill_path: done.spill_path.as_deref(),
    };
    output::bounded(&output::clean(raw.bytes), &raw, "", SHOWN_BYTES, redactor)
}
