//! What the daemon tidies beside its work: the runs of processes that died (`fleet task run` among
//! them), promised clean-up, the store's log, and hourly the orphans and what is too old to keep. One
//! round at a time, in a task of its own, so that nothing due waits for it.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::task::JoinHandle;
use tracing::{info, warn};

use super::{Context, cleanup, damage, disk_guard, recover, retention, sweep};
use crate::bundle::Bundle;
use crate::run::Alarm;
use crate::store::{StoreError, WalState};

/// How often orphans are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(3600);

/// How often the runs of dead processes are looked for.
const ROUND_EVERY: Duration = Duration::from_secs(30);

/// How long a stop waits for clean-up, which the next start would go on with.
const LAST_TIDYING: Duration = Duration::from_secs(5);

/// What a round found.
#[derive(Clone, Copy, Default)]
struct Found {
    next_cleanup: Option<Timestamp>,
    /// Something may be to be done though nobody writes to the store: another process may die, or a
    /// look failed.
    watch: bool,
}

/// The rounds of tidying.
pub(super) struct Housekeeping {
    round: Option<JoinHandle<Found>>,
    /// What the last round found.
    found: Found,
    /// The store's version at the last round.
    version: Option<u64>,
    next_cleanup: Option<Timestamp>,
    next_sweep: Timestamp,
    next_round: Timestamp,
    is_due: bool,
}

impl Housekeeping {
    /// Nothing is under way; the first round sweeps.
    pub(super) fn new(now: Timestamp) -> Self {
        Housekeeping {
            round: None,
            found: Found::default(),
            version: None,
            next_cleanup: None,
            next_sweep: now,
            next_round: now,
            is_due: true,
        }
    }

    /// Something ended that leaves something behind: a round is due.
    pub(super) fn wanted(&mut self) {
        self.is_due = true;
    }

    /// Begins a round when one is due and none is under way.
    pub(super) fn start(&mut self, context: &Arc<Context>, bundle: &Arc<Bundle>) {
        let now = context.clock.now();
        if self.round.is_some() || !(self.is_due || self.is_due_by_time(context, now)) {
            return;
        }
        self.is_due = false;
        self.next_cleanup = None;
        self.next_round = now + ROUND_EVERY;
        self.version = context.store.version().ok();
        let mut sweeps = now >= self.next_sweep;
        if sweeps {
            self.next_sweep = now + SWEEP_EVERY;
            sweeps = context.executor.leaves_something();
        }
        let (context, bundle) = (context.clone(), bundle.clone());
        self.round = Some(tokio::spawn(async move {
            if sweeps {
                recover::sweep_containers(&context).await;
                sweep::sweep_worktrees(&context, &bundle).await;
            }
            let recovered = recover::recover(&context, &bundle).await;
            if let Err(failure) = &recovered {
                warn!(error = %failure, "the store failed while dead processes' runs were looked for: tried again");
                damage::note(&context, failure);
            }
            let next_cleanup = tidy(&context).await;
            if sweeps && let Err(failure) = retention::retain(&context).await {
                warn!(error = %failure, "the store failed while old runs were removed: tried again in an hour");
                damage::note(&context, &failure);
            }
            watch_log(&context).await;
            Found { next_cleanup, watch: recovered.unwrap_or(true) }
        }));
    }

    /// A round finds nothing new in a store that nobody has written to, unless there is something to
    /// watch.
    fn is_due_by_time(&mut self, context: &Context, now: Timestamp) -> bool {
        let is_late = |at: Timestamp| at <= now;
        if self.next_cleanup.is_some_and(is_late) || is_late(self.next_sweep) {
            return true;
        }
        // A clock that was put back does not hold the rounds up.
        let was_put_back = self.next_round > now + ROUND_EVERY;
        if !is_late(self.next_round) && !was_put_back {
            return false;
        }
        self.next_round = now + ROUND_EVERY;
        let version = context.store.version().ok();
        self.found.watch || version.is_none() || version != self.version
    }

    /// Returns when the round under way ends; never when there is none.
    pub(super) async fn done(&mut self) {
        let Some(round) = &mut self.round else { return std::future::pending().await };
        let next = round.await;
        self.round = None;
        self.found = next.unwrap_or(Found { next_cleanup: None, watch: true });
        self.next_cleanup = self.found.next_cleanup;
    }

    /// When the next round has something to do.
    pub(super) fn next(&self) -> Option<Timestamp> {
        // A round under way ends by itself.
        let idle = self.round.is_none();
        idle.then(|| self.next_cleanup.map_or(self.next_round, |at| at.min(self.next_round)))
    }

    /// Waits for the round under way and tidies what is left.
    pub(super) async fn finish(&mut self, context: &Context) {
        let tidied = async {
            if let Some(round) = self.round.take() {
                // Its failures were told; a round that panicked is made up for now.
                let _ = round.await;
            }
            tidy(context).await
        };
        tokio::select! {
            _ = tidied => {}
            () = context.clock.sleep(LAST_TIDYING) => {
                warn!("clean-up takes long: the next start goes on with it");
            }
        }
    }
}

async fn tidy(context: &Context) -> Option<Timestamp> {
    match cleanup::run_due(context).await {
        Ok(next) => next,
        Err(failure) => {
            warn!(error = %failure, "the store failed during clean-up: tried again");
            damage::note(context, &failure);
            None
        }
    }
}

/// The size from which the store's write-ahead log is shrunk, and told of when it cannot be.
const LARGE_LOG: u64 = 64 << 20;

/// Shrinks the store's log, and says so when something holds it.
async fn watch_log(context: &Context) {
    match context.store.shrink_wal(LARGE_LOG).await {
        Ok(WalState::Small) => {
            if context.alarms.clear(Alarm::WriteAheadLog) {
                info!("the store's log is small again");
            }
        }
        Ok(WalState::Held { bytes }) => {
            let size = disk_guard::size(bytes);
            let why = format!(
                "The store's log (fleet.db-wal) has {size} and cannot be shrunk: a program that reads \
                 the store holds it. It grows until that program ends."
            );
            if context.alarms.raise(Alarm::WriteAheadLog, why) {
                warn!(bytes, "the store's log cannot be shrunk: a reader holds it");
            }
        }
        Err(failure) => note_log_failure(context, &failure),
    }
}

fn note_log_failure(context: &Context, failure: &StoreError) {
    warn!(error = %failure, "the store's log could not be looked at: tried again");
    damage::note(context, failure);
}
