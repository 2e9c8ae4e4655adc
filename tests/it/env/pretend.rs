//! A double of the sandbox: nothing is run. A script says how long each attempt takes on the simulated
//! clock and how it ends, and what was carried out when is written down.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fleet::clock::Rest;
use fleet::run::{Cancel, CancelReason, Outcome, OutcomeClass, RunId};
use fleet::runner::{Double, Execution};
use fleet::sandbox::SealReport;
use fleet::store::ClaimedRun;
use futures_util::FutureExt;
use jiff::Timestamp;
use tokio::sync::watch;

/// How an attempt goes.
pub struct Course {
    pub lasts: Duration,
    pub ends: Outcome,
}

/// An attempt that was carried out.
#[derive(Clone, Debug)]
pub struct Stretch {
    pub run: RunId,
    pub task: String,
    pub from: Timestamp,
    pub to: Timestamp,
}

type Script = Arc<dyn Fn(&ClaimedRun) -> Course + Send + Sync>;

/// The double. Clones share what they saw.
#[derive(Clone)]
pub struct Pretend {
    script: Script,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    /// What runs, and when it will end.
    open: Mutex<BTreeMap<RunId, (Timestamp, Cancel)>>,
    done: Mutex<Vec<Stretch>>,
    changed: watch::Sender<()>,
}

impl Pretend {
    pub fn new(script: impl Fn(&ClaimedRun) -> Course + Send + Sync + 'static) -> Self {
        Pretend { script: Arc::new(script), seen: Arc::default() }
    }

    /// Every attempt succeeds at once.
    pub fn success() -> Self {
        Pretend::new(|_| Course { lasts: Duration::ZERO, ends: Outcome::success() })
    }

    /// What the daemon is given.
    pub fn double(&self) -> Double {
        let pretend = self.clone();
        Arc::new(move |execution| pretend.carry_out(execution).boxed())
    }

    fn carry_out(&self, execution: &Execution) -> impl Future<Output = Outcome> + use<> {
        let Execution { context, claimed, cancel, .. } = execution;
        let (clock, cancel) = (context.clock.clone(), cancel.clone());
        let (run, task) = (claimed.run_id.clone(), claimed.task.to_string());
        let course = (self.script)(claimed);
        let from = clock.now();
        let end = from + course.lasts;
        let seen = self.seen.clone();
        lock(&seen.open).insert(run.clone(), (end, cancel.clone()));
        seen.changed.send_replace(());
        async move {
            let ended = tokio::select! {
                biased;
                () = clock.sleep_until(end) => course.ends,
                reason = cancel.cancelled() => cut_short(reason, cancel.wish()),
            };
            let to = clock.now();
            lock(&seen.open).remove(&run);
            lock(&seen.done).push(Stretch { run, task, from, to });
            seen.changed.send_replace(());
            ended
        }
    }

    /// When the next of what runs ends.
    pub fn next_end(&self) -> Option<Timestamp> {
        lock(&self.seen.open).values().map(|(end, _)| *end).min()
    }

    /// Whether all that the resting daemon awaits goes on beyond `now`.
    pub fn is_settled(&self, rest: Rest, now: Timestamp) -> bool {
        let open = lock(&self.seen.open);
        let goes_on = |(end, cancel): &(Timestamp, Cancel)| *end > now && cancel.reason().is_none();
        rest.until > now && rest.running == open.len() && open.values().all(goes_on)
    }

    /// Follows what begins and ends.
    pub fn changed(&self) -> watch::Receiver<()> {
        self.seen.changed.subscribe()
    }

    /// Every attempt that has ended, in the order of the ends.
    pub fn stretches(&self) -> Vec<Stretch> {
        lock(&self.seen.done).clone()
    }
}

fn cut_short(reason: CancelReason, wish: Option<&str>) -> Outcome {
    match reason {
        CancelReason::Operator => {
            Outcome::failed(OutcomeClass::Cancelled, wish.unwrap_or("cancelled"))
        }
        CancelReason::WallTimeout => Outcome::failed(OutcomeClass::WallTimeout, "took too long"),
        CancelReason::Shutdown | CancelReason::LeaseLost | CancelReason::StoreFailed => {
            Outcome::failed(OutcomeClass::Interrupted, "fleet was stopped during the run")
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The report of a seal that is never used.
pub fn seal() -> SealReport {
    serde_json::from_value(serde_json::json!({
        "limits": "enforced", "runtime": "none", "image_id": "none", "image_kind": "complete",
        "podman_version": "0", "boot": "none", "profile": "/nonexistent",
        "seccomp": "/nonexistent", "seccomp_sha256": "", "lines": []
    }))
    .expect("a seal report")
}
