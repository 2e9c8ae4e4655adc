//! Runs the calls of one answer and gives each exactly one result, whatever happens.

use futures_util::future::join_all;
use jiff::Timestamp;
use serde_json::Value;

use crate::fault;
use crate::model::{CallRequest, StopReason, ToolResult};
use crate::run::{EventKind, NativeTool, Outcome, OutcomeClass};
use crate::tools::{self, Change, Network, ToolCall, ToolContext, ToolFailure, ToolOutput};

use super::attempt::Attempt;
use super::containment::{Incident, contain};
use super::history;
use super::repeat_guard::{MAX_IDENTICAL, Verdict};
use super::request::Turn;

/// A call after its checks.
enum Checked {
    Run(NativeTool, ToolCall),
    Refused(String),
}

/// How a call ended.
enum Ran {
    Output(ToolOutput),
    Failed(ToolFailure),
    Panicked(Incident),
    /// The attempt ended meanwhile.
    Ended(Outcome),
}

impl Attempt {
    /// Runs the calls: beside each other when all only look, in order otherwise. The exchange enters
    /// the history whole, also when the attempt ends in the middle of it.
    pub(super) async fn run_calls(&mut self, turn: Turn) -> Result<(), Outcome> {
        let (results, ended) = match self.why_none_may_run(&turn).await {
            Some((why, ended)) => (self.refuse_all(&turn.calls, &why).await?, ended),
            None => {
                let checked: Vec<_> = turn.calls.iter().map(|call| self.check(call)).collect();
                let all_look = checked
                    .iter()
                    .all(|checked| matches!(checked, Checked::Run(_, call) if call.is_read_only()));
                if all_look {
                    self.run_together(&turn.calls, checked).await?
                } else {
                    self.run_in_order(&turn.calls, checked).await?
                }
            }
        };
        self.history.push_exchange(&turn.answer, &turn.calls, results);
        ended.map_or(Ok(()), Err)
    }

    /// Why no call of this answer may run, and the outcome when that ends the attempt.
    async fn why_none_may_run(&mut self, turn: &Turn) -> Option<(String, Option<Outcome>)> {
        if let Err(outcome) = self.ledger.check_overspent() {
            return Some((format!("not executed: {}", outcome.reason), Some(outcome)));
        }
        match turn.answer.stop {
            StopReason::EndTurn | StopReason::ToolCalls => {}
            StopReason::Length => {
                let why = "not executed: your answer was cut off by the length limit, so the call \
                           may be incomplete; send it again, in smaller parts";
                return Some((why.to_owned(), None));
            }
            StopReason::Refused => {
                let why = "not executed: the answer was stopped by the provider's content filter";
                return Some((why.to_owned(), None));
            }
        }
        match self.ready_sandbox().await {
            Ok(_) => None,
            Err(outcome) => Some((format!("not executed: {}", outcome.reason), Some(outcome))),
        }
    }

    async fn refuse_all(
        &self,
        calls: &[CallRequest],
        why: &str,
    ) -> Result<Vec<ToolResult>, Outcome> {
        let mut results = Vec::with_capacity(calls.len());
        for call in calls {
            results.push(self.refuse(call, why.to_owned()).await?);
        }
        Ok(results)
    }

    /// Parses a call and passes it through the roster and the repeat guard.
    fn check(&mut self, call: &CallRequest) -> Checked {
        let offered = NativeTool::parse(&call.name).filter(|tool| self.roster.contains(tool));
        let Some(tool) = offered else {
            let names: Vec<_> = self.roster.iter().map(|tool| tool.as_str()).collect();
            return Checked::Refused(format!(
                "there is no tool {:?}; the tools are: {}",
                history::stored_name(&call.name),
                names.join(", ")
            ));
        };
        let parsed = tools::parse_arguments(&call.arguments)
            .and_then(|arguments| Ok((arguments.clone(), ToolCall::parse(tool, arguments)?)));
        match parsed {
            Ok((arguments, parsed)) => self.check_repetition(tool, &arguments, parsed),
            Err(error) => Checked::Refused(format!("not executed: {error}")),
        }
    }

    fn check_repetition(&mut self, tool: NativeTool, arguments: &Value, call: ToolCall) -> Checked {
        let guard = self.repeat.as_mut();
        match guard.map(|guard| guard.admit(tool, arguments, call.is_read_only())) {
            None | Some(Verdict::Run) => Checked::Run(tool, call),
            Some(Verdict::Refuse) => Checked::Refused(format!(
                "not executed: this very call was made {MAX_IDENTICAL} times already and nothing \
                 has changed since; do something else"
            )),
        }
    }

    async fn run_together(
        &mut self,
        calls: &[CallRequest],
        checked: Vec<Checked>,
    ) -> Result<(Vec<ToolResult>, Option<Outcome>), Outcome> {
        let began = self.guard.clock.now();
        let mut runnable = Vec::with_capacity(calls.len());
        for (call, checked) in calls.iter().zip(checked) {
            if let Checked::Run(tool, parsed) = checked {
                self.begin(call, tool).await?;
                runnable.push((call, tool, parsed));
            }
        }
        let running = runnable.into_iter().map(|(call, tool, parsed)| {
            let attempt = &*self;
            async move { (call, tool, attempt.execute(call, parsed).await) }
        });
        let all = join_all(running).await;
        let mut results = Vec::with_capacity(all.len());
        let mut ended = None;
        for (call, tool, ran) in all {
            let (result, outcome) = self.settle(call, tool, ran, began).await?;
            results.push(result);
            ended = ended.or(outcome);
        }
        Ok((results, ended))
    }

    async fn run_in_order(
        &mut self,
        calls: &[CallRequest],
        checked: Vec<Checked>,
    ) -> Result<(Vec<ToolResult>, Option<Outcome>), Outcome> {
        let mut results = Vec::with_capacity(calls.len());
        let mut ended: Option<Outcome> = None;
        for (call, checked) in calls.iter().zip(checked) {
            ended = ended.or_else(|| self.guard.check().err());
            let result = match (checked, &ended) {
                (_, Some(outcome)) => {
                    self.refuse(call, format!("not executed: {}", outcome.reason)).await?
                }
                (Checked::Refused(why), None) => self.refuse(call, why).await?,
                (Checked::Run(tool, parsed), None) => {
                    let began = self.guard.clock.now();
                    self.begin(call, tool).await?;
                    fault::point("before_tool_call");
                    let ran = self.execute(call, parsed).await;
                    fault::point("after_tool_result");
                    let (result, outcome) = self.settle(call, tool, ran, began).await?;
                    ended = outcome;
                    result
                }
            };
            results.push(result);
        }
        Ok((results, ended))
    }

    /// Records that a tool begins; what may reach outside is on disk before it runs.
    async fn begin(&mut self, call: &CallRequest, tool: NativeTool) -> Result<(), Outcome> {
        let effects = self.reaches_outside(tool);
        let (call_id, tool) = (call.id.clone(), tool.as_str().to_owned());
        self.record(EventKind::ToolStarted { call_id, tool, effects }).await?;
        if effects {
            self.effects = true;
            self.flush().await?;
        }
        Ok(())
    }

    async fn execute(&self, call: &CallRequest, parsed: ToolCall) -> Ran {
        let Some(sandbox) = &self.sandbox else {
            return Ran::Failed(ToolFailure::SandboxGone("it never started".to_owned()));
        };
        let token = self.guard.cancel.token().child_token();
        let context = ToolContext {
            sandbox,
            egress: self.egress.as_ref(),
            workspace_path: &self.workspace_path,
            call_id: &call.id,
            timeout: self.tool_timeout,
            cell_timeout: self.cell_timeout,
            output_limit_bytes: self.output_limit_bytes,
            redactor: &self.redactor,
            plan: &self.plan,
            artifacts: &self.artifacts,
            memories: &self.memories,
            cancel: &token,
        };
        match self.guard.or_cancel(&token, contain(parsed.run(&context))).await {
            Ok(Ok(Ok(output))) => Ran::Output(output),
            Ok(Ok(Err(failure))) => Ran::Failed(failure),
            Ok(Err(incident)) => Ran::Panicked(incident),
            Err(outcome) => Ran::Ended(outcome),
        }
    }

    /// Turns how a call ended into its one result, recorded, and the outcome if the attempt is over.
    async fn settle(
        &mut self,
        call: &CallRequest,
        tool: NativeTool,
        ran: Ran,
        began: Timestamp,
    ) -> Result<(ToolResult, Option<Outcome>), Outcome> {
        let (output, ended) = match ran {
            Ran::Output(output) => (output, None),
            Ran::Panicked(incident) => (panicked(tool, call, &incident), None),
            Ran::Failed(ToolFailure::SandboxGone(reason)) => {
                let outcome = self.sandbox_gone(&reason);
                (possibly_executed(&outcome.reason), Some(outcome))
            }
            Ran::Failed(ToolFailure::Cancelled) => {
                let outcome = self.guard.check().err().unwrap_or_else(|| {
                    Outcome::failed(OutcomeClass::Transient, "the sandbox cancelled a call")
                });
                (possibly_executed(&outcome.reason), Some(outcome))
            }
            Ran::Ended(outcome) => (possibly_executed(&outcome.reason), Some(outcome)),
        };
        if !output.is_error {
            self.succeeded.insert(tool);
        }
        let ended = ended.or_else(|| match &output.change {
            Change::Abort { reason } => {
                let reason = format!("the model gave the task up: {reason}");
                Some(Outcome::failed(OutcomeClass::AuditAbort, reason))
            }
            Change::Nothing | Change::Artifact(_) | Change::Plan { .. } | Change::Memory { .. } => {
                None
            }
        });
        let duration_ms = self.millis_since(began);
        let result = self.finish(call, output, self.reaches_outside(tool), duration_ms).await?;
        Ok((result, ended))
    }

    /// Whether a call of the tool may have effects that a later attempt must know of.
    fn reaches_outside(&self, tool: NativeTool) -> bool {
        let network = if self.egress.is_some() { Network::Open } else { Network::Sealed };
        tools::may_have_outside_effects(tool, network)
    }

    async fn refuse(&self, call: &CallRequest, why: String) -> Result<ToolResult, Outcome> {
        self.finish(call, ToolOutput::error(why), false, 0).await
    }

    /// Records a result and what it changed.
    async fn finish(
        &self,
        call: &CallRequest,
        output: ToolOutput,
        effects: bool,
        duration_ms: u64,
    ) -> Result<ToolResult, Outcome> {
        let tool = history::stored_name(&call.name);
        self.record(EventKind::ToolFinished {
            call_id: call.id.clone(),
            tool: tool.clone(),
            is_error: output.is_error,
            output: output.text.clone(),
            exit_code: output.exit_code,
            duration_ms,
            effects,
        })
        .await?;
        match output.change {
            Change::Nothing | Change::Abort { .. } => {}
            Change::Artifact(artifact) => {
                self.record(EventKind::ArtifactPublished { artifact }).await?;
            }
            Change::Memory { key, value, evicted } => {
                self.record(EventKind::MemoryChanged { key, value, evicted }).await?;
                // What the model is told that is kept is kept.
                self.flush().await?;
            }
            Change::Plan { open, done } => {
                self.record(EventKind::PlanChanged { open, done }).await?;
            }
        }
        Ok(ToolResult {
            call_id: call.id.clone(),
            name: tool,
            content: output.text,
            is_error: output.is_error,
        })
    }
}

fn possibly_executed(reason: &str) -> ToolOutput {
    ToolOutput::error(format!("stopped, possibly executed: {reason}"))
}

fn panicked(tool: NativeTool, call: &CallRequest, incident: &Incident) -> ToolOutput {
    tracing::error!(
        tool.name = tool.as_str(),
        tool.call_id = call.id,
        incident = incident.id,
        "a tool panicked; the run goes on"
    );
    ToolOutput::error(format!(
        "the tool failed inside fleet (incident {}); possibly executed: check before you repeat it",
        incident.id
    ))
}
