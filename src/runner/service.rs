//! The daemon: ticks, claims, executes, cleans up, reloads, until it is told to stop.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio::task::{self, JoinError, JoinSet};
use tracing::{error, info, warn};

use super::agenda::Agenda;
use super::bundles::BundleKeeper;
use super::courier::Courier;
use super::execute::Execution;
use super::finish::{Ending, finish};
use super::housekeeping::Housekeeping;
use super::plan::{Planned, Planner};
use super::wake::Wake;
use super::{Context, damage, disk_guard, occurrence, recover};
use crate::bundle::Bundle;
use crate::clock::{Heartbeat, Rest};
use crate::fault;
use crate::run::{Alarm, Cancel, CancelReason, CommitId, RunId, RunState};
use crate::store::{ClaimedRun, NewOccurrence, StoreError};

/// How soon a failed store is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(5);
/// How long the loop stands still at most, so that its watchers can tell that it lives.
const TURN_EVERY: Duration = Duration::from_secs(30);
/// How long interrupted runs may take to end after the grace.
const LAST_WORDS: Duration = Duration::from_secs(20);
/// Due instants that are recorded in one transaction.
const PART: usize = 5_000;
/// Runs that are claimed in one transaction: the first need not wait for the last.
const CLAIMS: usize = 16;

/// What the daemon is told from outside. The second stop ends it at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    Stop,
}

/// How the task of a run ended.
type Ended = Result<(task::Id, Result<RunState, StoreError>), JoinError>;

/// The daemon's parts.
pub struct Service {
    context: Arc<Context>,
    bundles: BundleKeeper,
    agenda: Agenda,
    wake: Wake,
    signals: mpsc::Receiver<Signal>,
    heartbeat: Heartbeat,
    running: JoinSet<Result<RunState, StoreError>>,
    /// What runs, by the id of its task.
    active: HashMap<task::Id, (RunId, Cancel)>,
    /// Runs ended without their terminal transaction: the store failed.
    unrecorded: bool,
    /// What is due may have been lost to a failed write: the agenda is read anew.
    agenda_is_stale: bool,
    last_turn: Timestamp,
    /// The store's version when all that it holds had been looked at; `None`: it must be looked at.
    looked_at: Option<u64>,
    /// When the next retry may begin.
    next_retry: Option<Timestamp>,
    housekeeping: Housekeeping,
    courier: Courier,
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
        let housekeeping = Housekeeping::new(context.clock.now());
        let courier = Courier::start(context.clone(), bundles.subscribe());
        Service {
            context,
            bundles,
            agenda: Agenda::default(),
            wake,
            signals,
            heartbeat,
            running: JoinSet::new(),
            active: HashMap::new(),
            unrecorded: false,
            agenda_is_stale: true,
            last_turn: Timestamp::MIN,
            looked_at: None,
            next_retry: None,
            housekeeping,
            courier,
        }
    }

    /// Runs until stopped. Returns when nothing of it is left. A store that fails is tried again: what
    /// was due meanwhile is not lost.
    pub async fn run(mut self) -> Result<(), StoreError> {
        recover::recover(&self.context, &self.bundles.current()).await?;
        loop {
            let turned = self.turn().await;
            let rest = match turned {
                Ok(rest) => rest,
                Err(failure) if failure.is_damage() => {
                    damage::note(&self.context, &failure);
                    self.at_once()
                }
                Err(failure) => {
                    error!(error = %failure, "the store failed: tried again in {} s", TRY_AGAIN.as_secs());
                    self.agenda_is_stale = true;
                    self.looked_at = None;
                    let until = self.context.clock.now() + TRY_AGAIN;
                    Rest { until, next: Some(until), running: self.running.len() }
                }
            };
            let until = rest.until;
            self.heartbeat.rest(Some(rest));
            let clock = self.context.clock.clone();
            tokio::select! {
                () = clock.sleep_until(until) => {}
                () = self.wake.touched() => {
                    self.housekeeping.wanted();
                    self.looked_at = None;
                    self.context.promised.notify_one();
                }
                // A wall clock that is put back does not hold up the loop.
                () = clock.sleep(TURN_EVERY) => {}
                () = self.housekeeping.done() => {}
                Some(ended) = self.running.join_next_with_id() => self.note_ends(ended),
                commit = self.bundles.changed() => self.reload(commit).await,
                _ = self.signals.recv() => return self.stop().await,
            }
        }
    }

    /// The agenda goes on from the last tick that was recorded: what was due since then is due now.
    async fn read_agenda(&mut self, now: Timestamp) -> Result<(), StoreError> {
        let last = self.context.store.last_tick().await?;
        if last.is_none() {
            // The first start: nothing was due before it.
            self.record(Vec::new(), now).await?;
        }
        let used = self.context.store.scheduled_runs().await?;
        self.agenda = Agenda::new(&self.bundles.current(), last.unwrap_or(now).min(now), &used);
        self.agenda_is_stale = false;
        Ok(())
    }

    /// Everything that is to be done now. Returns what is waited for, any event apart.
    async fn turn(&mut self) -> Result<Rest, StoreError> {
        self.heartbeat.rest(None);
        let now = self.context.clock.now();
        if self.context.alarms.is_raised(Alarm::StoreDamage) {
            self.heartbeat.beat(now);
            let until = now + TURN_EVERY;
            return Ok(Rest { until, next: None, running: self.running.len() });
        }
        if self.agenda_is_stale || now < self.last_turn {
            // A clock that was set back: what it passes again is recorded already.
            self.read_agenda(now).await?;
        }
        self.last_turn = now;
        self.tick(now).await?;
        if self.unrecorded {
            let active = self.active.values().map(|(run, _)| run.clone()).collect();
            recover::recover_own(&self.context, &self.bundles.current(), &active).await?;
            self.unrecorded = false;
        }
        self.look(now).await?;
        self.housekeeping.start(&self.context, &self.bundles.current());
        self.heartbeat.beat(now);
        Ok(self.rest(now))
    }

    /// Does what the store asks for, when it may ask for something: somebody wrote to it since the last
    /// look, or a retry's time has come. An idle turn costs no query.
    async fn look(&mut self, now: Timestamp) -> Result<(), StoreError> {
        let retries = self.next_retry.is_some_and(|at| at <= now);
        let version = self.context.store.version()?;
        if self.looked_at == Some(version) && !retries && self.wake.is_watching() {
            return Ok(());
        }
        self.looked_at = None;
        if self.bundles.current().has_counted_schedules() {
            // A run that was skipped or cancelled before it began is not counted.
            let used = self.context.store.scheduled_runs().await?;
            self.agenda.recount(&self.bundles.current(), now, &used);
        }
        self.pass_on_wishes().await?;
        self.claim().await?;
        let is_short = self.context.alarms.is_raised(Alarm::DiskSpace);
        let full = self.running.len() >= self.context.config.max_concurrent_runs as usize;
        // Without room a retry whose time has come waits for the end of a run, or for the next turn.
        let waits = full || is_short;
        self.next_retry = if waits { None } else { self.context.store.next_retry().await? };
        // Whatever was written since then, by itself too, is looked at in the next turn.
        self.looked_at = (!is_short).then_some(version);
        Ok(())
    }

    /// Inserts what is due, in parts: what was missed in a long time may be much.
    async fn tick(&mut self, now: Timestamp) -> Result<(), StoreError> {
        if self.agenda.next_due().is_none_or(|next| next > now) {
            return Ok(());
        }
        let bundle = self.bundles.current();
        let open = self.context.store.open_tasks().await?;
        let held = self.context.store.held_tasks().await?;
        let mut planner = Planner::new(now, &bundle, open, held);
        loop {
            let due = self.agenda.take_due(now, PART);
            let (Some(last), is_last) = (due.last().map(|due| due.at), due.len() < PART) else {
                return Ok(());
            };
            let planned = planner.plan(due, &mut self.agenda);
            tell_skipped(&planned);
            self.insert(planned, &bundle, now, if is_last { now } else { last }).await?;
            if is_last {
                return Ok(());
            }
        }
    }

    async fn insert(
        &mut self,
        planned: Vec<Planned>,
        bundle: &Bundle,
        now: Timestamp,
        tick: Timestamp,
    ) -> Result<(), StoreError> {
        let mut occurrences = Vec::with_capacity(planned.len());
        let mut counted = HashMap::new();
        for (due, skip) in planned {
            let Ok(run_id) = self.context.new_run_id() else {
                let message = "no random bytes for a run id".to_owned();
                return Err(StoreError::Failed(message));
            };
            let Some(task) = bundle.tasks.get(&due.task) else { continue };
            if skip.is_none() {
                counted.insert(run_id.clone(), due.task);
            }
            occurrences.push(occurrence::scheduled(task, run_id, due.at, now, skip));
        }
        for run in self.record(occurrences, tick).await? {
            counted.remove(&run);
        }
        fault::point("after_occurrence_insert");
        // What is left was recorded before.
        for task in counted.into_values() {
            self.agenda.take_back(&task);
        }
        Ok(())
    }

    async fn record(
        &self,
        occurrences: Vec<NewOccurrence>,
        tick: Timestamp,
    ) -> Result<Vec<RunId>, StoreError> {
        self.context.store.insert_occurrences(occurrences, Some(tick)).await
    }

    /// Tells running runs that somebody wants them to end.
    async fn pass_on_wishes(&self) -> Result<(), StoreError> {
        if self.active.is_empty() {
            return Ok(());
        }
        for (run, wish) in self.context.store.cancel_requests().await? {
            if let Some((_, cancel)) = self.active.values().find(|(active, _)| *active == run) {
                cancel.ask(wish);
            }
        }
        Ok(())
    }

    /// Claims and starts as many runs as there is room for.
    async fn claim(&mut self) -> Result<(), StoreError> {
        loop {
            if !disk_guard::admits(&self.context) {
                return Ok(());
            }
            let room = self.context.config.max_concurrent_runs as usize;
            let limit = room.saturating_sub(self.running.len()).min(CLAIMS);
            if limit == 0 {
                return Ok(());
            }
            let claimed = self.context.store.claim_some(self.context.claim(None), limit).await?;
            if !claimed.is_empty() {
                fault::point("after_claim");
            }
            let were_all = claimed.len() < limit;
            for claimed in claimed {
                if let Err(failure) = self.begin(claimed).await {
                    // It is claimed and not under way; the others are begun all the same.
                    self.unrecorded = true;
                    error!(error = %failure, "the store failed: a claimed run is resolved as interrupted");
                }
            }
            if were_all {
                return Ok(());
            }
        }
    }

    async fn begin(&mut self, claimed: ClaimedRun) -> Result<(), StoreError> {
        let bundle = match self.bundles.for_run(&claimed).await {
            Ok(bundle) => bundle,
            Err(outcome) => {
                finish(&self.context, None, &claimed, None, Ending::bare(outcome)).await?;
                return Ok(());
            }
        };
        let cancel = Cancel::default();
        let active = (claimed.run_id.clone(), cancel.clone());
        let execution = Execution { context: self.context.clone(), bundle, claimed, cancel };
        let started = self.running.spawn(self.context.executor.clone().carry_out(execution));
        self.active.insert(started.id(), active);
        Ok(())
    }

    /// Notes what has ended: all of it, for each turn costs the same.
    fn note_ends(&mut self, first: Ended) {
        let mut ended = Some(first);
        while let Some(run) = ended {
            self.note_end(run);
            ended = self.running.try_join_next_with_id();
        }
    }

    fn note_end(&mut self, ended: Ended) {
        let id = match &ended {
            Ok((id, _)) => *id,
            Err(error) => error.id(),
        };
        let Some((run, _)) = self.active.remove(&id) else { return };
        if self.context.executor.leaves_something() {
            self.housekeeping.wanted();
        }
        self.looked_at = None;
        let failure = match ended {
            Ok((_, Ok(_))) => return,
            Ok((_, Err(error))) => {
                damage::note(&self.context, &error);
                error.to_string()
            }
            Err(error) => error.to_string(),
        };
        error!(run.id = %run, error = failure, "a run ended without its record: it is resolved as interrupted");
        self.unrecorded = true;
    }

    /// What is due by the old bundle is recorded before the new one counts.
    async fn reload(&mut self, commit: CommitId) {
        self.heartbeat.rest(None);
        let now = self.context.clock.now();
        let recorded = self.tick(now).await;
        if !self.bundles.reload(commit, now).await {
            return;
        }
        fault::point("mid_reload");
        let ticked = match recorded {
            Ok(()) => self.record(Vec::new(), now).await.map(drop),
            Err(failure) => Err(failure),
        };
        if let Err(failure) = ticked {
            error!(error = %failure, "the store failed during a reload: tried again");
        }
        // The new bundle's agenda is read at the next turn, from the tick that was just recorded.
        self.agenda_is_stale = true;
    }

    fn rest(&self, now: Timestamp) -> Rest {
        let next = [self.agenda.next_due(), self.next_retry].into_iter().flatten().min();
        let times = [next, self.housekeeping.next()];
        let until = times.into_iter().flatten().fold(now + TURN_EVERY, Timestamp::min);
        Rest { until, next, running: self.running.len() }
    }

    /// There is something to do now.
    fn at_once(&self) -> Rest {
        let now = self.context.clock.now();
        Rest { until: now, next: Some(now), running: self.running.len() }
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
                Some(ended) = self.running.join_next_with_id() => self.note_end(ended),
                () = clock.sleep_until(deadline) => break,
                _ = self.signals.recv() => {
                    warn!(running = self.running.len(), "told twice to stop: ending at once, the next start resolves what ran");
                    return Ok(());
                }
            }
        }
        self.interrupt().await;
        self.context.sandboxes.close().await;
        tokio::join!(self.housekeeping.finish(&self.context), self.courier.finish());
        info!("stopped");
        Ok(())
    }

    async fn interrupt(&mut self) {
        for (_, cancel) in self.active.values() {
            cancel.cancel(CancelReason::Shutdown);
        }
        // After the cancels, so that a start that is taken back is not taken for a failed one.
        self.context.sandboxes.refuse();
        let clock = self.context.clock.clone();
        let deadline = clock.now() + LAST_WORDS;
        while !self.running.is_empty() {
            tokio::select! {
                Some(ended) = self.running.join_next_with_id() => self.note_end(ended),
                () = clock.sleep_until(deadline) => {
                    error!(running = self.running.len(), "interrupted runs did not end: the next start resolves them");
                    return;
                }
                _ = self.signals.recv() => return,
            }
        }
    }
}

/// A line for each task and reason, however many occurrences it is about.
fn tell_skipped(planned: &[Planned]) {
    let mut skipped: BTreeMap<_, (Timestamp, u32)> = BTreeMap::new();
    for (due, reason) in planned {
        let Some(reason) = reason else { continue };
        skipped.entry((&due.task, reason.as_str())).or_insert((due.at, 0)).1 += 1;
    }
    for ((task, reason), (first, number)) in skipped {
        warn!(task.id = %task, occurrence.due = %first, number, reason, "due occurrences do not run");
    }
}
