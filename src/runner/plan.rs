//! Decides for each due instant whether it runs, and if not, why not (design §5). Pure.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::agenda::{Agenda, Due};
use crate::bundle::{Bundle, MisfirePolicy, Overlap, Task};
use crate::run::{SkipReason, TaskName};
use crate::store::{HeldTask, OpenTask};

/// What is later than that was missed.
pub const ON_TIME: Duration = Duration::from_secs(60);
/// How many occurrences of a task may wait under `overlap: queue`.
pub const QUEUE_LIMIT: u32 = 100;

/// A due instant and the reason for which it does not run; `None`: it runs.
pub type Planned = (Due, Option<SkipReason>);

/// Decides over the instants of one tick, which may come in parts.
pub struct Planner<'p> {
    now: Timestamp,
    bundle: &'p Bundle,
    /// The open scheduled runs by task, before the tick.
    open: HashMap<TaskName, OpenTask>,
    /// The tasks that are paused or parked.
    held: HashMap<TaskName, HeldTask>,
    /// How many instants of this tick run, by task.
    let_run: HashMap<TaskName, u32>,
    /// Tasks of which missed instants run one after another.
    catching_up: HashSet<TaskName>,
}

impl<'p> Planner<'p> {
    /// A tick at `now`.
    pub fn new(
        now: Timestamp,
        bundle: &'p Bundle,
        open: HashMap<TaskName, OpenTask>,
        held: HashMap<TaskName, HeldTask>,
    ) -> Self {
        let (let_run, catching_up) = (HashMap::new(), HashSet::new());
        Planner { now, bundle, open, held, let_run, catching_up }
    }

    /// Decides over instants in order of time, and counts those that run. Those that lie beyond the end
    /// of their schedule (`schedule_count`) or whose task is gone are not due: they are left out.
    pub fn plan(&mut self, due: Vec<Due>, agenda: &mut Agenda) -> Vec<Planned> {
        let planned = due.into_iter().filter_map(|due| {
            let skip = self.decide(&due, agenda)?;
            if skip.is_none() {
                *self.let_run.entry(due.task.clone()).or_default() += 1;
                agenda.count(&due.task);
            }
            Some((due, skip))
        });
        planned.collect()
    }

    /// `None`: it is not due.
    fn decide(&mut self, due: &Due, agenda: &Agenda) -> Option<Option<SkipReason>> {
        let task = self.bundle.tasks.get(&due.task)?.as_ref();
        if agenda.has_ended(&due.task) {
            return None;
        }
        if self.is_held(due) {
            return Some(Some(SkipReason::SkippedPaused));
        }
        if self.is_missed(task, due, agenda) {
            return Some(Some(SkipReason::SkippedMisfire));
        }
        Some(self.overlap(task))
    }

    /// A task that is held now does not run what it missed before.
    fn is_held(&self, due: &Due) -> bool {
        let held = self.held.get(&due.task);
        held.is_some_and(|held| held.holds(due.at) || held.holds(self.now))
    }

    fn is_missed(&mut self, task: &Task, due: &Due, agenda: &Agenda) -> bool {
        let delay = self.now.duration_since(due.at);
        let late = delay > signed(ON_TIME);
        let too_late = delay > signed(task.misfire.max_delay);
        match task.misfire.policy {
            MisfirePolicy::Skip => late,
            MisfirePolicy::Latest => too_late || self.has_later(due, agenda),
            MisfirePolicy::All => {
                if late && !too_late {
                    self.catching_up.insert(due.task.clone());
                }
                too_late
            }
        }
    }

    /// Whether a later instant of the task is due too and not held.
    fn has_later(&self, due: &Due, agenda: &Agenda) -> bool {
        let held = self.held.get(&due.task);
        let mut later = agenda.later(&due.task, due.at, self.now);
        later.any(|at| !held.is_some_and(|held| held.holds(at)))
    }

    fn overlap(&self, task: &Task) -> Option<SkipReason> {
        let open = self.open.get(&task.name).copied().unwrap_or_default();
        let let_run = self.let_run.get(&task.name).copied().unwrap_or(0);
        // What was missed waits for its turn, however the task stands to overlaps.
        let has_turn = let_run == 0 || self.catching_up.contains(&task.name);
        match task.overlap {
            Overlap::Allow | Overlap::CancelRunning => None,
            Overlap::Queue if open.runs + let_run <= QUEUE_LIMIT => None,
            Overlap::Skip if open.runs == 0 && has_turn => None,
            Overlap::Skip if open.waits_for_key => Some(SkipReason::SkippedSerialization),
            Overlap::Queue | Overlap::Skip => Some(SkipReason::SkippedOverlap),
        }
    }
}

fn signed(duration: Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}
