//! One attempt from its first request to its outcome: the round, and what the rounds share.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use crate::egress::Gate;
use crate::model::{StopReason, ToolSpec};
use crate::run::{CancelReason, EventKind, NativeTool, Outcome, OutcomeClass};
use crate::sandbox::{PendingSandbox, Sandbox, StartError};
use crate::secrets::Redactor;
use crate::tools::{self, ArtifactList, Memories, Plan};

use super::guard::{Guard, log_closed};
use super::history::History;
use super::ledger::Ledger;
use super::pressure::Pressure;
use super::repeat_guard::RepeatGuard;
use super::{AgentEnd, AgentInput, Completion, ContextPolicy, EventSink, ModelChoice};

/// Carries one attempt out. Every way through it ends in an outcome; dropping the future stops it.
pub async fn run(input: AgentInput) -> AgentEnd {
    let mut attempt = Attempt::new(input);
    let outcome = attempt.drive().await;
    attempt.end(outcome)
}

/// What the rounds of an attempt share. In its methods, `Err` is how the attempt ended.
pub(super) struct Attempt {
    pub(super) model: ModelChoice,
    pub(super) fallback: Option<ModelChoice>,
    pub(super) system: Arc<str>,
    pub(super) roster: Vec<NativeTool>,
    pub(super) offered: Arc<[ToolSpec]>,
    pub(super) history: History,
    pub(super) context_policy: ContextPolicy,
    pub(super) pressure: Pressure,
    pub(super) ledger: Ledger,
    pub(super) guard: Guard,
    pub(super) completion: Completion,
    pub(super) pending_sandbox: PendingSandbox,
    pub(super) sandbox: Option<Arc<dyn Sandbox>>,
    pub(super) egress: Option<Gate>,
    pub(super) workspace_path: String,
    pub(super) tool_timeout: Duration,
    pub(super) cell_timeout: Duration,
    pub(super) output_limit_bytes: usize,
    pub(super) redactor: Redactor,
    pub(super) plan: Mutex<Plan>,
    pub(super) artifacts: Mutex<ArtifactList>,
    pub(super) memories: Mutex<Memories>,
    /// Absent: a call may be repeated without end.
    pub(super) repeat: Option<RepeatGuard>,
    /// Tools that succeeded at least once.
    pub(super) succeeded: BTreeSet<NativeTool>,
    pub(super) enforcement_rounds: u32,
    pub(super) wind_down_fraction: f64,
    pub(super) wound_down: bool,
    pub(super) effects: bool,
    answer: Option<String>,
    /// What the model said when it stopped last.
    pub(super) last_words: String,
    /// What the output schema's gate accepted last.
    pub(super) output: Option<serde_json::Value>,
    /// How often the model was asked for another form of its answer.
    pub(super) corrections: u32,
    events: EventSink,
}

impl Attempt {
    fn new(input: AgentInput) -> Self {
        Attempt {
            model: input.model,
            fallback: input.fallback,
            system: input.system_prompt.into(),
            offered: offered(&input.tools),
            roster: input.tools,
            history: History::starting_with(input.user_prompt),
            context_policy: input.context,
            pressure: Pressure::default(),
            ledger: Ledger::new(input.limits, input.spent_before),
            guard: Guard {
                cancel: input.cancel,
                clock: input.clock,
                deadline: input.limits.wall_deadline,
            },
            completion: input.completion,
            pending_sandbox: input.sandbox,
            sandbox: None,
            egress: input.egress,
            workspace_path: input.workspace_path,
            tool_timeout: input.tool_timeout,
            cell_timeout: input
                .python_cell_timeout
                .map_or(input.tool_timeout, |cell| cell.min(input.tool_timeout)),
            output_limit_bytes: tools::output::clamp_limit(input.output_limit_bytes),
            redactor: input.redactor,
            plan: Mutex::default(),
            artifacts: Mutex::default(),
            memories: Mutex::new(input.memories),
            repeat: input.repeat_guard.then(RepeatGuard::default),
            succeeded: BTreeSet::new(),
            enforcement_rounds: 0,
            wind_down_fraction: input.wind_down_fraction,
            wound_down: false,
            effects: false,
            answer: None,
            last_words: String::new(),
            output: None,
            corrections: 0,
            events: input.events,
        }
    }

    async fn drive(&mut self) -> Outcome {
        if let Err(outcome) = self.check_required_tools_are_offered() {
            return outcome;
        }
        loop {
            if let Err(outcome) = self.round().await {
                return outcome;
            }
        }
    }

    /// Guard, request, then the calls, or the gates when the model made none.
    async fn round(&mut self) -> Result<(), Outcome> {
        self.guard.check()?;
        let turn = self.ask().await?;
        if !turn.answer.text.trim().is_empty() {
            self.answer = Some(turn.answer.text.clone());
        }
        if !turn.calls.is_empty() {
            return self.run_calls(turn).await;
        }
        self.last_words = turn.answer.text.clone();
        self.history.push_words(&turn.answer);
        self.ledger.check_overspent()?;
        match turn.answer.stop {
            StopReason::Length => self.send_back_cut_answer().await,
            StopReason::EndTurn | StopReason::ToolCalls | StopReason::Refused => {
                self.check_gates().await
            }
        }
    }

    fn end(self, outcome: Outcome) -> AgentEnd {
        let artifacts = self.artifacts.into_inner().unwrap_or_else(PoisonError::into_inner);
        AgentEnd {
            outcome,
            answer: self.answer,
            output: self.output,
            usage: self.ledger.spent(),
            artifacts: artifacts.as_slice().to_vec(),
            effects: self.effects,
        }
    }

    /// Waits until the sandbox answers.
    pub(super) async fn ready_sandbox(&mut self) -> Result<Arc<dyn Sandbox>, Outcome> {
        if let Some(sandbox) = &self.sandbox {
            return Ok(Arc::clone(sandbox));
        }
        let started = self.guard.or_drop(self.pending_sandbox.clone()).await?;
        self.keep_sandbox(started)
    }

    pub(super) fn keep_sandbox(
        &mut self,
        started: Result<Arc<dyn Sandbox>, StartError>,
    ) -> Result<Arc<dyn Sandbox>, Outcome> {
        match started {
            Ok(sandbox) => {
                self.sandbox = Some(Arc::clone(&sandbox));
                Ok(sandbox)
            }
            Err(error) => {
                // Whoever cancelled the run may have taken the start back.
                self.guard.check()?;
                let class =
                    if error.transient { OutcomeClass::Transient } else { OutcomeClass::Config };
                Err(Outcome::failed(class, error.to_string()))
            }
        }
    }

    /// The outcome of an attempt whose sandbox is gone. A disk limit ends here too: the next attempt
    /// starts from a fresh worktree, so it may fit.
    pub(super) fn sandbox_gone(&self, reason: &str) -> Outcome {
        match self.guard.check() {
            // Whoever cancelled the run may have closed the sandbox first.
            Err(outcome) => outcome,
            Ok(()) => {
                let reason = format!("the sandbox ended during the run: {reason}");
                Outcome::failed(OutcomeClass::Transient, reason)
            }
        }
    }

    /// Records an event, unless nothing more may be recorded.
    pub(super) async fn record(&self, kind: EventKind) -> Result<(), Outcome> {
        tokio::select! {
            biased;
            outcome = self.record_lost() => Err(outcome),
            recorded = self.events.record(kind) => recorded.map_err(log_closed),
        }
    }

    /// Waits until everything recorded so far is stored.
    pub(super) async fn flush(&self) -> Result<(), Outcome> {
        tokio::select! {
            biased;
            outcome = self.record_lost() => Err(outcome),
            stored = self.events.flush() => stored.map_err(log_closed),
        }
    }

    /// Waits for a cancellation after which nothing may be written.
    async fn record_lost(&self) -> Outcome {
        match self.guard.cancel.cancelled().await {
            CancelReason::LeaseLost | CancelReason::StoreFailed => match self.guard.check() {
                Err(outcome) => outcome,
                Ok(()) => std::future::pending().await,
            },
            CancelReason::Operator | CancelReason::Shutdown | CancelReason::WallTimeout => {
                std::future::pending().await
            }
        }
    }

    pub(super) fn millis_since(&self, began: Timestamp) -> u64 {
        let passed = self.guard.clock.now().duration_since(began).as_millis();
        u64::try_from(passed).unwrap_or(0)
    }
}

fn offered(roster: &[NativeTool]) -> Arc<[ToolSpec]> {
    tools::describe(roster)
        .into_iter()
        .map(|tool| ToolSpec {
            name: tool.name.to_owned(),
            description: tool.description.to_owned(),
            parameters: tool.parameters,
        })
        .collect()
}
