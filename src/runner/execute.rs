//! Carries out one claimed run: worktree, container, agent, collection, terminal transaction. The one
//! path of `fleet serve`, `fleet task run` and replays.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use jiff::Timestamp;
use tokio::sync::OnceCell;
use tracing::{error, info};

use super::attached::Attached;
use super::collect::{Collector, Lost, Work};
use super::condition::{self, Verdict};
use super::finish::{Ending, finish};
use super::models::TaskModels;
use super::outlet::Outlet;
use super::prompt;
use super::roster::Roster;
use super::session_log::SessionLog;
use super::{Context, cleanup, lease, sla, workspace};
use crate::agent::{self, AgentEnd, AgentInput, Completion, ContextPolicy, EventSink, Limits};
use crate::bundle::{Bundle, Task};
use crate::egress::Gate;
use crate::fault;
use crate::run::{
    Cancel, CancelReason, EventKind, Memory, Outcome, OutcomeClass, RunState, SkipReason, Trigger,
};
use crate::sandbox::{PendingSandbox, Sandbox, SandboxSpec};
use crate::store::{AttemptFacts, ClaimedRun, StoreError};
use crate::tools::{Memories, Network};
use crate::worktree::Checkout;

/// Events that may wait to be stored before the run has to.
const LOG_CAPACITY: usize = 256;
/// The longest that one command or cell may take.
const TOOL_TIMEOUT: Duration = Duration::from_secs(600);
/// Bytes of a tool's output that the model sees.
const OUTPUT_LIMIT_BYTES: usize = 64 * 1024;

/// A claimed run with what it needs.
pub struct Execution {
    pub context: Arc<Context>,
    pub bundle: Arc<Bundle>,
    pub claimed: ClaimedRun,
    pub cancel: Cancel,
}

/// Carries out the run's next attempt to its terminal transaction and cleans up behind it. Returns
/// the state in which it left the run. A panic on the way ends the run as `panic`.
pub async fn execute(execution: Execution) -> Result<RunState, StoreError> {
    let Execution { context, bundle, claimed, cancel } = execution;
    let task = bundle.tasks.get(&claimed.task).cloned();
    if is_disabled(task.as_deref(), &claimed) {
        let ending = Ending::skipped(SkipReason::SkippedDisabledByReload);
        return finish(&context, None, &claimed, None, ending).await;
    }
    let attempt = Attempt {
        context: &context,
        bundle: &bundle,
        claimed: &claimed,
        cancel: &cancel,
        checkout: OnceCell::new(),
    };
    let ended = AssertUnwindSafe(attempt.carry_out(task.as_ref())).catch_unwind().await;
    let mut ending = ended.unwrap_or_else(|_| {
        error!(run.id = %claimed.run_id, attempt = claimed.attempt, "the run panicked");
        let reason = "fleet itself failed while it carried out the run: see the daemon's log";
        Ending::bare(Outcome::failed(OutcomeClass::Panic, reason))
    });
    if let (OutcomeClass::Cancelled, Some(wish)) = (ending.outcome.class, cancel.wish()) {
        ending.outcome.reason = wish.to_owned();
    }
    // However the attempt ended: a worktree that was made is cleaned up.
    let checkout = attempt.checkout.into_inner();
    if cancel.reason() == Some(CancelReason::LeaseLost) {
        return Err(StoreError::LeaseLost(claimed.run_id.clone()));
    }
    let state = finish(&context, task.as_deref(), &claimed, checkout.as_ref(), ending).await?;
    if state == RunState::Scheduled {
        cleanup::of_run(&context, &claimed.run_id).await?;
    }
    Ok(state)
}

/// Whether a commit since the due instant took the task off its schedule. Who asks for a run by hand
/// gets it, or the reason.
pub(super) fn is_disabled(task: Option<&Task>, claimed: &ClaimedRun) -> bool {
    claimed.trigger == Trigger::Schedule && !task.is_some_and(|task| task.enabled)
}

/// One attempt under way.
struct Attempt<'a> {
    context: &'a Arc<Context>,
    bundle: &'a Arc<Bundle>,
    claimed: &'a ClaimedRun,
    cancel: &'a Cancel,
    /// Set once the worktree exists.
    checkout: OnceCell<Checkout>,
}

impl Attempt<'_> {
    async fn carry_out(&self, task: Option<&Arc<Task>>) -> Ending {
        let Some(task) = task else {
            let reason =
                format!("task {} is not in bundle {}", self.claimed.task, self.bundle.commit);
            return Ending::bare(Outcome::failed(OutcomeClass::Config, reason));
        };
        let _lease = Attached(tokio::spawn(lease::keep(
            self.context.store.clone(),
            self.context.clock.clone(),
            self.claimed.run_id.clone(),
            self.claimed.token,
            self.cancel.clone(),
        )));
        let _sla = self.watch_duration(task);
        let (events, requests) = EventSink::channel(LOG_CAPACITY);
        let log = tokio::spawn(self.session_log().persist(requests));
        let ended = self.attempt(task, events).await;
        // Every sender is dropped by now: the log ends once all is stored.
        if log.await.is_err() {
            self.cancel.cancel(CancelReason::StoreFailed);
        }
        ended.unwrap_or_else(Ending::bare)
    }

    fn session_log(&self) -> SessionLog {
        SessionLog {
            store: self.context.store.clone(),
            clock: self.context.clock.clone(),
            run: self.claimed.run_id.clone(),
            token: self.claimed.token,
            attempt: self.claimed.attempt,
            cancel: self.cancel.clone(),
        }
    }

    async fn attempt(&self, task: &Task, events: EventSink) -> Result<Ending, Outcome> {
        info!(run.id = %self.claimed.run_id, task.id = %task.name, attempt = self.claimed.attempt, bundle.commit = %self.bundle.commit, "claimed run");
        let started = EventKind::AttemptStarted {
            bundle_commit: self.bundle.commit.as_str().to_owned(),
            holder_pid: self.context.holder.holder().pid,
        };
        events.record(started).await.map_err(|_| interrupted())?;
        self.clear_earlier_attempt().await?;
        let deadline = self.wall_deadline(task);
        let _wall = deadline.map(|deadline| self.watch_wall_time(deadline));
        let served_faults = self.served_faults().await?;
        let models = self.context.models.of_task(self.bundle, task, served_faults)?;
        let model_name = models.main.display_name.clone();
        let began = std::time::Instant::now();
        let checkout = workspace::create(self.context, task, self.claimed).await?;
        fault::point("after_worktree");
        let checkout = self.checkout.get_or_init(|| async { checkout }).await;
        let _ = events.record(worktree_ready(checkout, began.elapsed())).await;
        self.record_facts(checkout, model_name).await?;
        let memories = self.memories(task).await?;
        let rendered =
            prompt::render(self.context, task, self.claimed, checkout, memories.as_deref())?;
        let spec = workspace::spec(self.context, self.bundle, Some(task), self.claimed, checkout);
        let outlet = Outlet::open(self.context, task, events.clone());
        let egress = outlet.as_ref().map(|outlet| outlet.gate().clone());
        // What collects the work later has no way out.
        let with_egress = SandboxSpec { egress: egress.clone(), ..spec.clone() };
        let sandbox = workspace::start(self.context, with_egress, events.clone());
        if let Some(ending) = self.condition(task, &sandbox, &events).await {
            self.close_later(sandbox.await.ok());
            return Ok(ending);
        }
        let network = if egress.is_some() { Network::Open } else { Network::Sealed };
        let roster = Roster::of(task, network);
        roster.record(task, &events).await;
        let input = self.agent_input(
            task,
            checkout,
            models,
            rendered,
            deadline,
            sandbox.clone(),
            egress,
            roster,
            memories.unwrap_or_default(),
            events.clone(),
        );
        let end = agent::run(input).await;
        if let Some(outlet) = outlet {
            outlet.close().await;
        }
        let collector = Collector {
            context: self.context,
            checkout,
            spec,
            run: self.claimed.run_id.as_str(),
            attempt: self.claimed.attempt,
            events,
        };
        let (sandbox, work) = self.collect(collector, sandbox, end.artifacts.clone()).await;
        self.close_later(sandbox);
        Ok(ending(task, end, work))
    }

    /// Asks `run_if`, once for each scheduled run. Returns the attempt's end when it does not go on.
    async fn condition(
        &self,
        task: &Task,
        sandbox: &PendingSandbox,
        events: &EventSink,
    ) -> Option<Ending> {
        let run_if = task.run_if.as_ref()?;
        if self.claimed.trigger == Trigger::Manual || self.claimed.attempt > 1 {
            return None;
        }
        match condition::check(run_if, sandbox.clone(), events, self.cancel).await {
            // A run that was told to end is ended by the agent, which says why.
            Verdict::GoOn | Verdict::Cancelled => None,
            Verdict::Skip => Some(Ending::skipped(SkipReason::SkippedRunIf)),
            Verdict::Fail(outcome) => Some(Ending::bare(outcome)),
        }
    }

    /// What an earlier attempt of this run may have left: its container must be gone before its
    /// overlay is made anew.
    async fn clear_earlier_attempt(&self) -> Result<(), Outcome> {
        if self.claimed.attempt == 1 {
            return Ok(());
        }
        let failed = |message: String| Outcome::failed(OutcomeClass::Transient, message);
        cleanup::of_run(self.context, &self.claimed.run_id)
            .await
            .map_err(|error| failed(error.to_string()))?;
        self.context
            .podman
            .remove_run(self.claimed.run_id.as_str())
            .await
            .map_err(|error| failed(error.to_string()))
    }

    /// What earlier runs remembered, for tasks with a memory.
    async fn memories(&self, task: &Task) -> Result<Option<Vec<Memory>>, Outcome> {
        if !task.remembers {
            return Ok(None);
        }
        let facts = self.context.store.memories(task.name.clone()).await;
        let failed =
            |error: StoreError| Outcome::failed(OutcomeClass::Transient, error.to_string());
        facts.map(Some).map_err(failed)
    }

    /// How many model requests failed in earlier attempts.
    async fn served_faults(&self) -> Result<u32, Outcome> {
        if self.claimed.attempt == 1 {
            return Ok(0);
        }
        let run = self.claimed.run_id.clone();
        let events = self.context.store.events_after(run, 0, u32::MAX).await;
        let events =
            events.map_err(|error| Outcome::failed(OutcomeClass::Transient, error.to_string()))?;
        let failed =
            events.iter().filter(|row| matches!(row.event.kind, EventKind::ModelFailed { .. }));
        Ok(u32::try_from(failed.count()).unwrap_or(u32::MAX))
    }

    /// min(task, FLEET_TASK_WALL_TIMEOUT), from now.
    fn wall_deadline(&self, task: &Task) -> Option<Timestamp> {
        let ceilings = [task.limits.wall_timeout, self.context.config.task_wall_timeout];
        let ceiling = ceilings.into_iter().flatten().min()?;
        Some(self.context.clock.now().saturating_add(ceiling).unwrap_or(Timestamp::MAX))
    }

    fn watch_wall_time(&self, deadline: Timestamp) -> Attached {
        let (clock, cancel) = (self.context.clock.clone(), self.cancel.clone());
        Attached(tokio::spawn(async move {
            clock.sleep_until(deadline).await;
            cancel.cancel(CancelReason::WallTimeout);
        }))
    }

    fn watch_duration(&self, task: &Arc<Task>) -> Option<Attached> {
        let (context, claimed) = (self.context.clone(), self.claimed.clone());
        let sla = task.sla?;
        Some(Attached(tokio::spawn(sla::watch(context, task.clone(), sla, claimed))))
    }

    async fn record_facts(&self, checkout: &Checkout, model: String) -> Result<(), Outcome> {
        let seal = self.context.seal_under(self.bundle.sandbox.runtime.as_deref()).await;
        let seal = seal.map_err(|error| {
            let reason = format!("no sandbox: {}", crate::runner::with_causes(&error));
            Outcome::failed(OutcomeClass::Config, reason)
        })?;
        let facts = AttemptFacts {
            bundle_commit: Some(self.bundle.commit.clone()),
            repo: Some(checkout.repo_root.display().to_string()),
            worktree: Some(checkout.path.display().to_string()),
            branch: checkout.branch.clone(),
            base_commit: Some(checkout.base_commit.clone()),
            container: None,
            model: Some(model),
            limits: Some(seal.limits.clone()),
            seal: serde_json::to_value(&seal).ok(),
        };
        let stored = self
            .context
            .store
            .set_attempt_facts(self.claimed.run_id.clone(), self.claimed.token, facts)
            .await;
        stored.map_err(|error| {
            error!(run.id = %self.claimed.run_id, error = %error, "cannot record the attempt: the run ends");
            self.cancel.cancel(match error {
                StoreError::LeaseLost(_) => CancelReason::LeaseLost,
                _ => CancelReason::StoreFailed,
            });
            interrupted()
        })
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the loop's input is assembled here and nowhere else"
    )]
    fn agent_input(
        &self,
        task: &Task,
        checkout: &Checkout,
        models: TaskModels,
        rendered: prompt::Rendered,
        deadline: Option<Timestamp>,
        sandbox: PendingSandbox,
        egress: Option<Gate>,
        roster: Roster,
        memories: Vec<Memory>,
        events: EventSink,
    ) -> AgentInput {
        AgentInput {
            model: models.main,
            fallback: models.fallback,
            system_prompt: rendered.system,
            user_prompt: rendered.user,
            memories: Memories::new(memories.into_iter().map(|fact| (fact.key, fact.value))),
            tools: roster.offered,
            repeat_guard: task.repeat_guard,
            limits: Limits {
                max_cost: task.limits.max_cost,
                max_total_tokens: task.limits.max_total_tokens,
                max_iterations: task.limits.max_iterations,
                wall_deadline: deadline,
            },
            wind_down_fraction: self.context.config.budget_winddown_fraction,
            spent_before: self.claimed.spent,
            completion: Completion {
                artifacts: task.completion.artifacts.clone(),
                shell: task.completion.shell.clone(),
                required_tools: task.completion.required_tools.clone(),
                output_schema: task.output_schema.clone(),
            },
            context: ContextPolicy {
                warn_fraction: self.context.config.context_warn_fraction,
                compact_fraction: self.context.config.context_compact_fraction,
                auto_compact: task.auto_compact.unwrap_or(self.context.config.auto_compact),
            },
            sandbox,
            egress,
            workspace_path: checkout.path.display().to_string(),
            tool_timeout: TOOL_TIMEOUT,
            python_cell_timeout: self.context.config.python_cell_timeout,
            output_limit_bytes: OUTPUT_LIMIT_BYTES,
            redactor: self.context.redactor.clone(),
            events,
            clock: self.context.clock.clone(),
            cancel: self.cancel.clone(),
        }
    }

    /// Ends the container beside the terminal transaction. The clean-up job of that transaction
    /// removes what this leaves, whatever happens to this process.
    fn close_later(&self, sandbox: Option<Arc<dyn Sandbox>>) {
        if let Some(sandbox) = sandbox {
            self.context.sandboxes.close_later(sandbox);
        }
    }

    /// Collects, unless the run may not be written any more.
    async fn collect(
        &self,
        collector: Collector<'_>,
        sandbox: PendingSandbox,
        published: Vec<crate::run::Artifact>,
    ) -> (Option<Arc<dyn Sandbox>>, Work) {
        let sandbox = sandbox.await.ok();
        let ownerless = matches!(
            self.cancel.reason(),
            Some(CancelReason::LeaseLost | CancelReason::StoreFailed)
        );
        if ownerless || sandbox.is_none() {
            return (sandbox, Work::default());
        }
        let work = collector.collect(sandbox.clone(), published).await;
        (sandbox, work)
    }
}

fn worktree_ready(checkout: &Checkout, took: Duration) -> EventKind {
    EventKind::WorktreeReady {
        path: checkout.path.display().to_string(),
        branch: checkout.branch.clone(),
        base_commit: checkout.base_commit.clone(),
        duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
    }
}

/// A run whose work could not be collected, or whose required artifact could not be kept, did not
/// succeed, whatever its checks said.
fn ending(task: &Task, end: AgentEnd, work: Work) -> Ending {
    let outcome = match end.outcome.class {
        OutcomeClass::Success => verdict_on_work(task, &work).unwrap_or(end.outcome),
        _ => end.outcome,
    };
    Ending {
        outcome,
        usage: end.usage,
        answer: end.answer,
        output: end.output,
        work,
        skipped: None,
    }
}

fn verdict_on_work(task: &Task, work: &Work) -> Option<Outcome> {
    if let Some(lost) = &work.lost {
        let reason = format!("the work was not collected: {}", lost.message());
        let class = match lost {
            Lost::Refused(_) => OutcomeClass::CompletionFailed,
            Lost::Failed(_) => OutcomeClass::Transient,
        };
        return Some(Outcome::failed(class, reason));
    }
    let kept = |wanted: &String| {
        work.artifacts.iter().any(|artifact| artifact.path == *wanted || artifact.name == *wanted)
    };
    let missing = task.completion.artifacts.iter().find(|wanted| !kept(wanted))?;
    let reason = format!(
        "the required artifact {missing} was published and could not be kept: see the log's warnings"
    );
    Some(Outcome::failed(OutcomeClass::CompletionFailed, reason))
}

fn interrupted() -> Outcome {
    Outcome::failed(OutcomeClass::Interrupted, "the session log could not be written")
}
