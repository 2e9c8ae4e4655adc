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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::bundle::{Revision, load};
    use SkipReason::{SkippedMisfire, SkippedOverlap, SkippedPaused, SkippedSerialization};

    const MANIFEST: &str = "version: 1\nname: b\nproviders:\n  - {name: s, type: scripted}\n\
                            defaults: {model: s/m}\n";

    /// A bundle of one hourly task `t` with these keys besides.
    fn bundle(keys: &str) -> std::sync::Arc<Bundle> {
        let dir = tempfile::tempdir().expect("a directory");
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            std::fs::write(path, text).expect("written");
        };
        write("manifest.yaml", MANIFEST);
        write("scripted/t.yaml", "turns: [{text: done}]\n");
        let task = "schedule: '@hourly'\nprompt: x\ncompletion: {shell: 'true'}\n";
        write("tasks/t.yaml", &format!("{task}{keys}"));
        let loaded = load(Path::new(dir.path()), &Revision::Worktree).expect("read");
        loaded.bundle.unwrap_or_else(|| panic!("{:?}", loaded.problems))
    }

    fn at(text: &str) -> Timestamp {
        format!("2026-01-01T{text}Z").parse().expect("an instant")
    }

    fn task() -> TaskName {
        TaskName::new("t")
    }

    /// The reasons of everything that is due from midnight, which is not, until `now`.
    fn reasons_of(
        keys: &str,
        now: &str,
        open: Option<OpenTask>,
        held: Option<HeldTask>,
        used: u64,
    ) -> Vec<Option<SkipReason>> {
        let bundle = bundle(keys);
        let mut agenda = Agenda::new(&bundle, at("00:00:00"), &HashMap::from([(task(), used)]));
        let open = open.map(|open| (task(), open)).into_iter().collect();
        let held = held.map(|held| (task(), held)).into_iter().collect();
        let mut planner = Planner::new(at(now), &bundle, open, held);
        let mut reasons = Vec::new();
        loop {
            let due = agenda.take_due(at(now), 2);
            if due.is_empty() {
                return reasons;
            }
            reasons.extend(planner.plan(due, &mut agenda).into_iter().map(|(_, skip)| skip));
        }
    }

    fn reasons(keys: &str, now: &str) -> Vec<Option<SkipReason>> {
        reasons_of(keys, now, None, None, 0)
    }

    fn running(waits_for_key: bool) -> Option<OpenTask> {
        Some(OpenTask { runs: 1, waits_for_key })
    }

    #[test]
    fn of_several_missed_instants_only_the_latest_runs() {
        let missed = Some(SkippedMisfire);
        assert_eq!(reasons("", "03:20:00"), [missed, missed, None]);
    }

    #[test]
    fn instant_that_is_later_than_max_delay_is_recorded_as_missed() {
        let keys = "misfire: {max_delay: 30m}\n";
        assert_eq!(reasons(keys, "01:30:00"), [None]);
        assert_eq!(reasons(keys, "01:30:01"), [Some(SkippedMisfire)]);
    }

    #[test]
    fn policy_skip_runs_only_what_is_at_most_a_minute_late() {
        let keys = "misfire: {policy: skip}\n";
        assert_eq!(reasons(keys, "01:01:00"), [None]);
        assert_eq!(reasons(keys, "01:01:01"), [Some(SkippedMisfire)]);
        assert_eq!(reasons(keys, "02:00:10"), [Some(SkippedMisfire), None]);
    }

    #[test]
    fn policy_all_runs_each_within_max_delay_one_after_another() {
        let keys = "misfire: {policy: all, max_delay: 2h}\n";
        assert_eq!(
            reasons(keys, "04:10:00"),
            [Some(SkippedMisfire), Some(SkippedMisfire), None, None]
        );
    }

    #[test]
    fn open_run_makes_the_next_instant_an_overlap() {
        let due = |keys, open| reasons_of(keys, "01:00:00", open, None, 0);
        assert_eq!(due("", running(false)), [Some(SkippedOverlap)]);
        assert_eq!(due("", running(true)), [Some(SkippedSerialization)]);
        for keys in ["overlap: queue\n", "overlap: allow\n", "overlap: cancel_running\n"] {
            assert_eq!(due(keys, running(false)), [None], "{keys}");
        }
    }

    #[test]
    fn full_queue_takes_no_more() {
        let open = |runs| Some(OpenTask { runs, waits_for_key: false });
        let due = |runs| reasons_of("overlap: queue\n", "01:00:00", open(runs), None, 0);
        assert_eq!(due(QUEUE_LIMIT), [None]);
        assert_eq!(due(QUEUE_LIMIT + 1), [Some(SkippedOverlap)]);
    }

    #[test]
    fn paused_task_records_what_it_does_not_run() {
        let held = |paused_at: &str, until: Option<&str>| {
            Some(HeldTask {
                paused_at: Some(at(paused_at)),
                paused_until: until.map(at),
                ..HeldTask::default()
            })
        };
        let due = |now, held| reasons_of("", now, None, held, 0);
        let paused = Some(SkippedPaused);
        assert_eq!(due("01:00:00", held("00:30:00", None)), [paused]);
        // It ended by itself: what was due in it stays paused, what was due after it runs.
        assert_eq!(due("03:00:00", held("00:30:00", Some("02:30:00"))), [paused, paused, None]);
        // What was missed before it began does not run while it holds.
        assert_eq!(due("02:10:00", held("01:30:00", None)), [paused, paused]);
        // The latest that is not held runs late.
        let ended = held("01:30:00", Some("02:05:00"));
        assert_eq!(due("02:10:00", ended), [None, paused]);
    }

    #[test]
    fn parked_task_runs_nothing() {
        let held = HeldTask { parked_at: Some(at("00:10:00")), ..HeldTask::default() };
        assert_eq!(reasons_of("", "01:00:00", None, Some(held), 0), [Some(SkippedPaused)]);
    }

    #[test]
    fn schedule_ends_after_its_count_of_runs() {
        let keys = "schedule_count: 3\nmisfire: {policy: all}\n";
        assert_eq!(reasons(keys, "05:00:00"), [None, None, None]);
        assert_eq!(reasons_of(keys, "05:00:00", None, None, 2), [None]);
        assert_eq!(reasons_of(keys, "05:00:00", None, None, 3), []);
        // What does not run is not counted.
        let held = HeldTask {
            paused_at: Some(at("00:10:00")),
            paused_until: Some(at("02:30:00")),
            ..HeldTask::default()
        };
        let paused = Some(SkippedPaused);
        assert_eq!(
            reasons_of(keys, "05:00:00", None, Some(held), 0),
            [paused, paused, None, None, None]
        );
    }
}
