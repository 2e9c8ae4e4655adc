//! What `docs/what-happens-when.md` says of the scheduler, a test a heading: the daemon in this process
//! on a simulated clock, with a double in the place of the sandbox.

use std::time::Duration;

use fleet::run::{Outcome, OutcomeClass, TaskName};
use fleet::store::{ClaimedRun, RunFilter};
use jiff::{SignedDuration, Timestamp};
use tempfile::TempDir;

use crate::env::pretend::{Course, Pretend};
use crate::env::simulation::Simulation;
use crate::env::{commit_files, repository, sandbox, world};

/// A bundle of hourly tasks, and who carries their runs out.
struct Stage {
    dir: TempDir,
    pretend: Pretend,
}

fn minutes(minutes: u64) -> Course {
    Course { lasts: Duration::from_secs(60 * minutes), ends: Outcome::success() }
}

fn at(time: &str) -> Timestamp {
    format!("2026-05-04T{time}Z").parse().expect("an instant")
}

fn hourly(keys: &str) -> String {
    format!("schedule: '0 * * * *'\nprompt: x\ncompletion: {{shell: 'true'}}\n{keys}")
}

impl Stage {
    fn new(
        tasks: &[(&str, &str)],
        course: impl Fn(&ClaimedRun) -> Course + Send + Sync + 'static,
    ) -> Self {
        let dir = tempfile::tempdir().expect("scratch directory");
        repository(&dir.path().join("bundle"), world::BASE);
        let stage = Stage { dir, pretend: Pretend::new(course) };
        for (name, keys) in tasks {
            stage.commit(name, &hourly(keys));
        }
        stage
    }

    fn commit(&self, name: &str, task: &str) {
        let (task_file, script) = (format!("tasks/{name}.yaml"), format!("scripted/{name}.yaml"));
        let files = [(task_file.as_str(), task), (&script, "turns: [{text: done}]\n")];
        commit_files(&self.dir.path().join("bundle"), &files, "change");
    }

    async fn start(&self, time: &str) -> Simulation {
        let mut config = sandbox::config(&self.dir.path().join("state"));
        config.max_concurrent_runs = 16;
        Simulation::pretend(&self.dir.path().join("bundle"), config, at(time), &self.pretend).await
    }

    /// Lets time pass and gives every occurrence since the beginning, the oldest first.
    async fn pass(&self, simulation: &Simulation, time: &str) -> Vec<String> {
        simulation.pass(at(time), &self.pretend).await;
        seen(simulation).await
    }
}

/// Task, hour and end of each occurrence: its state, or why it did not run.
async fn seen(simulation: &Simulation) -> Vec<String> {
    let mut runs = simulation.context.store.runs(RunFilter::default()).await.expect("the runs");
    runs.sort_by(|a, b| (a.due, a.task.as_str()).cmp(&(b.due, b.task.as_str())));
    let told = runs.iter().map(|run| {
        let due = run.due.to_string();
        let end = match run.state {
            fleet::run::RunState::Skipped => run.reason.clone().unwrap_or_default(),
            state => state.as_str().to_owned(),
        };
        format!("{} {} {end}", run.task, &due[11..16])
    });
    told.collect()
}

#[tokio::test]
async fn nobody_was_there_at_the_due_time() {
    let stage = Stage::new(
        &[
            ("all", "misfire: {policy: all}\n"),
            ("latest", ""),
            ("skip", "misfire: {policy: skip}\n"),
        ],
        |_| minutes(1),
    );
    stage.start("00:30:00").await.end_in_time().await;
    let simulation = stage.start("02:30:00").await;
    assert_eq!(
        stage.pass(&simulation, "02:45:00").await,
        [
            "all 01:00 success",
            "latest 01:00 skipped_misfire",
            "skip 01:00 skipped_misfire",
            "all 02:00 success",
            "latest 02:00 success",
            "skip 02:00 skipped_misfire",
        ]
    );
    simulation.end().await;
}

#[tokio::test]
async fn a_run_takes_longer_than_the_pause_between_two_due_times() {
    let stage = Stage::new(
        &[
            ("allow", "overlap: allow\n"),
            ("cancel", "overlap: cancel_running\n"),
            ("queue", "overlap: queue\n"),
            ("skip", ""),
        ],
        |_| minutes(90),
    );
    let simulation = stage.start("00:30:00").await;
    assert_eq!(
        stage.pass(&simulation, "02:10:00").await,
        [
            "allow 01:00 running",
            "cancel 01:00 cancelled",
            "queue 01:00 running",
            "skip 01:00 running",
            "allow 02:00 running",
            "cancel 02:00 running",
            "queue 02:00 pending",
            "skip 02:00 skipped_overlap",
        ]
    );
    let ended = stage.pass(&simulation, "02:50:00").await;
    assert_eq!(ended[6], "queue 02:00 running");
    simulation.service.abort();
}

#[tokio::test]
async fn two_tasks_must_not_run_at_the_same_time() {
    let key = "serialization_key: ledger\n";
    let urgent = format!("{key}priority: 5\n");
    let stage = Stage::new(&[("a", key), ("b", &urgent)], |_| minutes(90));
    let simulation = stage.start("00:30:00").await;
    assert_eq!(
        stage.pass(&simulation, "02:05:00").await,
        [
            "a 01:00 pending",
            "b 01:00 running",
            "a 02:00 skipped_serialization",
            "b 02:00 skipped_overlap",
        ]
    );
    assert_eq!(stage.pass(&simulation, "02:31:00").await[0], "a 01:00 running");
    simulation.service.abort();
}

#[tokio::test]
async fn the_clock_is_set() {
    let stage = Stage::new(&[("a", "")], |_| minutes(1));
    let simulation = stage.start("00:30:00").await;
    // Forward: what it passed over was missed. Back: what it passes again was there already.
    simulation.clock.set(at("03:10:00"));
    simulation.settle(&stage.pretend).await;
    let missed = ["a 01:00 skipped_misfire", "a 02:00 skipped_misfire", "a 03:00 success"];
    assert_eq!(stage.pass(&simulation, "03:20:00").await, missed);
    simulation.clock.set(at("01:30:00"));
    assert_eq!(stage.pass(&simulation, "03:30:00").await, missed);
    assert_eq!(stage.pass(&simulation, "04:10:00").await[3], "a 04:00 success");
    simulation.end().await;
}

#[tokio::test]
async fn a_task_is_paused() {
    let stage = Stage::new(&[("a", "")], |_| minutes(1));
    let simulation = stage.start("00:30:00").await;
    let (store, a) = (&simulation.context.store, || TaskName::new("a"));
    let until = Some(at("02:30:00"));
    store.pause_task(a(), at("00:30:00"), until, "stock-taking".into()).await.expect("paused");
    stage.pass(&simulation, "03:10:00").await;
    store.pause_task(a(), at("03:10:00"), None, "again".into()).await.expect("paused");
    stage.pass(&simulation, "04:10:00").await;
    store.resume_task(a()).await.expect("resumed").expect("it was paused");
    assert_eq!(
        stage.pass(&simulation, "05:10:00").await,
        [
            "a 01:00 skipped_paused",
            "a 02:00 skipped_paused",
            "a 03:00 success",
            "a 04:00 skipped_paused",
            "a 05:00 success",
        ]
    );
    simulation.end().await;
}

#[tokio::test]
async fn a_task_fails_again_and_again() {
    let broken = || Outcome::failed(OutcomeClass::Config, "no such model");
    let stage =
        Stage::new(&[("a", "park_after: 2\n")], move |_| Course { ends: broken(), ..minutes(1) });
    let simulation = stage.start("00:30:00").await;
    stage.pass(&simulation, "03:10:00").await;
    let held = simulation.context.store.held_tasks().await.expect("the tasks");
    let reason = held[&TaskName::new("a")].park_reason.clone();
    assert_eq!(reason.as_deref(), Some("2 runs in a row failed for good"));
    let resumed = simulation.context.store.resume_task(TaskName::new("a")).await;
    resumed.expect("resumed").expect("it was parked");
    assert_eq!(
        stage.pass(&simulation, "04:10:00").await,
        [
            "a 01:00 dead_lettered",
            "a 02:00 dead_lettered",
            "a 03:00 skipped_paused",
            "a 04:00 dead_lettered",
        ]
    );
    simulation.end().await;
}

#[tokio::test]
async fn somebody_cancels_a_run() {
    let stage = Stage::new(&[("a", "overlap: queue\n")], |_| minutes(90));
    let simulation = stage.start("00:30:00").await;
    stage.pass(&simulation, "02:10:00").await;
    // The one that waits ends at once, the one that runs is told.
    for hour in ["02:00:00", "01:00:00"] {
        let runs = simulation.context.store.runs(RunFilter::default()).await.expect("the runs");
        let run = runs.iter().find(|run| run.due == at(hour)).expect("the run").run_id.clone();
        let store = &simulation.context.store;
        store.cancel_run(run, at("02:10:00"), "no need".into()).await.expect("cancelled");
    }
    let later = simulation.clock.now() + SignedDuration::from_secs(30);
    simulation.clock.set(later);
    simulation.settle(&stage.pretend).await;
    assert_eq!(
        stage.pass(&simulation, "03:10:00").await,
        ["a 01:00 cancelled", "a 02:00 cancelled", "a 03:00 running"]
    );
    simulation.service.abort();
}

#[tokio::test]
async fn a_commit_changes_a_task() {
    let stage = Stage::new(&[("a", ""), ("b", "overlap: queue\n")], |_| minutes(85));
    let mut simulation = stage.start("00:30:00").await;
    stage.pass(&simulation, "02:10:00").await;
    stage.commit("a", &hourly("").replace("'0 * *", "'30 * *"));
    simulation.bundles.changed().await.expect("the keeper lives");
    stage.commit("b", &hourly("enabled: false\n"));
    simulation.bundles.changed().await.expect("the keeper lives");
    // What runs goes on; what was due by the old schedule has its row; what waited does not begin.
    assert_eq!(
        stage.pass(&simulation, "03:10:00").await,
        [
            "a 01:00 success",
            "b 01:00 success",
            "a 02:00 skipped_overlap",
            "b 02:00 skipped_disabled_by_reload",
            "a 02:30 running",
        ]
    );
    simulation.service.abort();
}
