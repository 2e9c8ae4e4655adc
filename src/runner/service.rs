//! The daemon: ticks, claims, executes, cleans up, reloads, until it is told to stop.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tracing::{error, info, warn};

use super::agenda::{Agenda, plan};
use super::bundles::BundleKeeper;
use super::execute::{Execution, execute};
use super::wake::Wake;
use super::{Context, cleanup, lease, recover, sweep};
use crate::clock::Heartbeat;
use crate::run::{Cancel, CancelReason, CommitId, RunState, Trigger};
use crate::store::{ClaimRequest, NewOccurrence, StoreError};

/// How often orphans are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(3600);
/// How long the loop stands still at most, so that its watchers can tell that it lives.
const TURN_EVERY: Duration = Duration::from_secs(30);
/// How long interrupted runs may take to end after the grace.
const LAST_WORDS: Duration = Duration::from_secs(20);

/// What the daemon is told from outside. The second stop ends it at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    Stop,
}

/// The daemon's parts.
pub struct Service {
    context: Arc<Context>,
    bundles: BundleKeeper,
    agenda: Agenda,
    wake: Wake,
    signals: mpsc::Receiver<Signal>,
    heartbeat: Heartbeat,
    running: JoinSet<Result<RunState, StoreError>>,
    /// Cancels everything that runs.
    cancels: Vec<Cancel>,
    next_cleanup: Option<Timestamp>,
    next_sweep: Timestamp,
}

impl Service {
    /// A daemon over an open context and a loaded bundle.
    pub fn new(
        context: Arc<Context>,
        bundles: BundleKeeper,
        wake: Wake,
        signals: mpsc::Receiver<Signal>,
        heartbeat: Heartbeat,
    ) -> Self {
        let next_sweep = context.clock.now();
        Service {
            context,
            bundles,
            agenda: Agenda::default(),
            wake,
            signals,
            heartbeat,
            running: JoinSet::new(),
            cancels: Vec::new(),
            next_cleanup: None,
            next_sweep,
        }
    }

    /// Runs until stopped. Returns when nothing of it is left.
    pub async fn run(mut self) -> Result<(), StoreError> {
        recover::recover(&self.context, &self.bundles.current()).await?;
        self.start_agenda().await?;
        loop {
            self.turn().await?;
            let until = self.wake_at().await?;
            let clock = self.context.clock.clone();
            tokio::select! {
                () = clock.sleep_until(until) => {}
                () = self.wake.touched() => {}
                Some(ended) = self.running.join_next() => self.note_end(ended),
                commit = self.bundles.changed() => self.reload(commit).await?,
                _ = self.signals.recv() => return self.stop().await,
            }
        }
    }

    /// The agenda goes on from the last tick that was recorded: what was due since then was missed.
    async fn start_agenda(&mut self) -> Result<(), StoreError> {
        let now = self.context.clock.now();
        let since = self.context.store.last_tick().await?.unwrap_or(now).min(now);
        self.agenda = Agenda::new(&self.bundles.current(), since);
        self.record(Vec::new(), now).await
    }

    /// Everything that is to be done now.
    async fn turn(&mut self) -> Result<(), StoreError> {
        let now = self.context.clock.now();
        self.heartbeat.beat(now);
        self.tick(now).await?;
        self.claim().await?;
        self.next_cleanup = cleanup::run_due(&self.context).await?;
        if now >= self.next_sweep {
            self.next_sweep = now + SWEEP_EVERY;
            recover::sweep_containers(&self.context).await;
            sweep::sweep_worktrees(&self.context, &self.bundles.current()).await;
        }
        Ok(())
    }

    /// Inserts what is due.
    async fn tick(&mut self, now: Timestamp) -> Result<(), StoreError> {
        let due = self.agenda.take_due(now);
        if due.is_empty() {
            return Ok(());
        }
        let open = self.context.store.open_tasks().await?;
        let bundle = self.bundles.current();
        let mut occurrences = Vec::with_capacity(due.len());
        for ((due, task), skip) in plan(due, now, &open) {
            if let Some(reason) = skip {
                warn!(task.id = %task, occurrence.due = %due, reason = reason.as_str(), "due occurrence does not run");
            }
            let Ok(run_id) = self.context.new_run_id() else {
                error!(task.id = %task, "no random bytes for a run id: the tick is repeated");
                continue;
            };
            let tags = bundle.tasks.get(&task).map(|task| task.tags.clone()).unwrap_or_default();
            occurrences.push(NewOccurrence {
                run_id,
                task,
                due,
                trigger: Trigger::Schedule,
                skip,
                tags,
            });
        }
        self.record(occurrences, now).await
    }

    async fn record(
        &self,
        occurrences: Vec<NewOccurrence>,
        tick: Timestamp,
    ) -> Result<(), StoreError> {
        self.context.store.insert_occurrences(occurrences, Some(tick)).await.map(drop)
    }

    /// Claims and starts as many runs as there is room for.
    async fn claim(&mut self) -> Result<(), StoreError> {
        while self.running.len() < self.context.config.max_concurrent_runs as usize {
            let now = self.context.clock.now();
            let request = ClaimRequest {
                holder: self.context.holder.holder().clone(),
                now,
                lease_until: now + lease::LEASE,
                only: None,
            };
            let Some(claimed) = self.context.store.claim_next(request).await? else { break };
            let cancel = Cancel::default();
            self.cancels.retain(Cancel::is_shared);
            self.cancels.push(cancel.clone());
            let execution = Execution {
                context: self.context.clone(),
                bundle: self.bundles.current(),
                claimed,
                cancel,
            };
            self.running.spawn(execute(execution));
        }
        Ok(())
    }

    fn note_end(&self, ended: Result<Result<RunState, StoreError>, tokio::task::JoinError>) {
        match ended {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => {
                error!(error = %error, "a run could not be recorded: it is resolved when its lease ends")
            }
            Err(error) => error!(
                panicked = error.is_panic(),
                "a run ended without a record: it is resolved at the next start"
            ),
        }
    }

    /// What is due by the old bundle is recorded before the new one counts.
    async fn reload(&mut self, commit: CommitId) -> Result<(), StoreError> {
        let now = self.context.clock.now();
        self.tick(now).await?;
        if self.bundles.reload(commit, now).await {
            self.agenda = Agenda::new(&self.bundles.current(), now);
            self.record(Vec::new(), now).await?;
        }
        Ok(())
    }

    /// When there is something to do without any event.
    async fn wake_at(&self) -> Result<Timestamp, StoreError> {
        let full = self.running.len() >= self.context.config.max_concurrent_runs as usize;
        // Without room a retry whose time has come waits for the end of a run.
        let retry = if full { None } else { self.context.store.next_retry().await? };
        let turn = self.context.clock.now() + TURN_EVERY;
        let times = [self.agenda.next_due(), retry, self.next_cleanup, Some(self.next_sweep)];
        Ok(times.into_iter().flatten().fold(turn, Timestamp::min))
    }

    /// Waits for what runs, at most the grace, then interrupts it. A second signal ends the wait.
    async fn stop(mut self) -> Result<(), StoreError> {
        let grace = self.context.config.shutdown_grace;
        info!(
            running = self.running.len(),
            grace_secs = grace.as_secs(),
            "stopping: nothing new is claimed"
        );
        let clock = self.context.clock.clone();
        let deadline = clock.now() + grace;
        while !self.running.is_empty() {
            tokio::select! {
                Some(ended) = self.running.join_next() => self.note_end(ended),
                () = clock.sleep_until(deadline) => break,
                _ = self.signals.recv() => {
                    warn!(running = self.running.len(), "told twice to stop: ending at once, the next start resolves what ran");
                    return Ok(());
                }
            }
        }
        self.interrupt().await;
        cleanup::run_due(&self.context).await?;
        info!("stopped");
        Ok(())
    }

    async fn interrupt(&mut self) {
        for cancel in &self.cancels {
            cancel.cancel(CancelReason::Shutdown);
        }
        let clock = self.context.clock.clone();
        let deadline = clock.now() + LAST_WORDS;
        while !self.running.is_empty() {
            tokio::select! {
                Some(ended) = self.running.join_next() => self.note_end(ended),
                () = clock.sleep_until(deadline) => {
                    error!(running = self.running.len(), "interrupted runs did not end: the next start resolves them");
                    return;
                }
                _ = self.signals.recv() => return,
            }
        }
    }
}
