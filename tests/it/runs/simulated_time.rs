//! The daemon in this process, on a clock that the test moves.

use std::sync::Arc;
use std::time::Duration;

use fleet::clock::{Clock, Heartbeat, SimulatedClock};
use fleet::config::{Config, Overrides};
use fleet::run::RunState;
use fleet::runner::{BundleKeeper, Context, Service, Signal, Wake};
use fleet::secrets::Redactor;
use fleet::store::{RunFilter, RunRow};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::env::git;
use crate::env::world::{PATIENCE, World};

/// A daemon on a simulated clock.
pub struct Simulation {
    pub clock: SimulatedClock,
    pub context: Arc<Context>,
    stop: mpsc::Sender<Signal>,
    service: JoinHandle<()>,
    bundles: tokio::sync::watch::Receiver<fleet::runner::BundleState>,
    pub heartbeat: Heartbeat,
}

impl Simulation {
    pub async fn start(world: &World, at: &str) -> Self {
        let clock = SimulatedClock::starting_at(at.parse().expect("an instant"));
        let time = Clock::Simulated(clock.clone());
        let config =
            Config::read(Overrides { state: Some(world.state()) }).expect("the configuration");
        let keeper =
            BundleKeeper::start(&world.bundle(), &config.state, time.now()).expect("the bundle");
        let bundles = keeper.subscribe();
        let context = Context::open(config, time, Redactor::default()).await.expect("the context");
        let wake = Wake::watch(&context.config.state).expect("the wake file");
        let (stop, signals) = mpsc::channel(2);
        let heartbeat = Heartbeat::default();
        let service = Service::new(context.clone(), keeper, wake, signals, heartbeat.clone());
        let service =
            tokio::spawn(async move { service.run().await.expect("the daemon ends well") });
        // Only a daemon that has ticked once knows since when it is there.
        let mut look_again = tokio::time::interval(Duration::from_millis(10));
        while heartbeat.last().is_none() {
            look_again.tick().await;
        }
        Simulation { clock, context, stop, service, bundles, heartbeat }
    }

    /// Waits until `enough` holds of the list of runs.
    pub async fn runs(&self, enough: impl Fn(&[RunRow]) -> bool) -> Vec<RunRow> {
        let look = async {
            let mut look_again = tokio::time::interval(Duration::from_millis(20));
            loop {
                look_again.tick().await;
                let runs = self.context.store.runs(RunFilter::default()).await.expect("the runs");
                if enough(&runs) {
                    return runs;
                }
            }
        };
        match tokio::time::timeout(PATIENCE, look).await {
            Ok(runs) => runs,
            Err(_) => panic!(
                "it never came true of {:#?}",
                self.context.store.runs(RunFilter::default()).await
            ),
        }
    }

    /// Lets time pass, a minute at each look, until `enough` holds of the list of runs: whatever waits
    /// for a delay gets on, whenever it began to wait.
    pub async fn runs_in_time(&self, enough: impl Fn(&[RunRow]) -> bool) -> Vec<RunRow> {
        self.runs(|runs| {
            let done = enough(runs);
            if !done {
                self.clock.advance(Duration::from_secs(60));
            }
            done
        })
        .await
    }

    pub async fn end(self) {
        self.stop.send(Signal::Stop).await.expect("the daemon listens");
        self.service.await.expect("the daemon ends");
    }
}

fn report(text: &str) -> String {
    format!(
        "turns:
  - tool_calls:
      - name: bash
        arguments: {{command: 'echo {text} > report.md && git add -A && git commit -qm {text}'}}
      - name: publish_artifact
        arguments: {{path: report.md}}
  - text: {text}
"
    )
}

const TASK: (&str, &str) = (
    "tasks/report.yaml",
    "schedule: '0 6 * * *'\ntimezone: Europe/Berlin\nprompt: Write report.md.\ncompletion:\n  artifacts: [report.md]\n  shell: test -s report.md\n",
);

#[tokio::test(flavor = "multi_thread")]
async fn scheduled_occurrence_ends_with_success_a_branch_and_an_artifact() {
    let world = World::new(&[TASK, ("scripted/report.yaml", &report("first"))]);
    let simulation = Simulation::start(&world, "2026-07-01T03:59:59Z").await;
    simulation.runs(<[RunRow]>::is_empty).await;

    // 06:00 in Berlin in summer.
    simulation.clock.set("2026-07-01T04:00:00Z".parse().expect("an instant"));
    let runs = simulation.runs(|runs| runs.iter().any(|run| run.state.is_terminal())).await;
    assert_eq!(runs.len(), 1);
    assert_eq!(
        (runs[0].state, runs[0].due.to_string().as_str()),
        (RunState::Success, "2026-07-01T04:00:00Z")
    );

    let whole = simulation.context.store.run_detail(runs[0].run_id.clone()).await.expect("the run");
    assert_eq!(whole.artifacts[0].path, "report.md");
    let repo = whole.attempt_list[0].repo.clone().expect("a repository");
    let branch = runs[0].branch.clone().expect("a branch");
    assert_eq!(git(repo.as_ref(), &["show", &format!("{branch}:report.md")]), "first");
    simulation.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commit_changes_the_next_run_and_not_the_running_one() {
    let waits = report("first").replace("turns:\n", "turns:\n  - delay: 1h\n    tool_calls:\n      - name: bash\n        arguments: {command: 'true'}\n");
    let world = World::new(&[TASK, ("scripted/report.yaml", &waits)]);
    let mut simulation = Simulation::start(&world, "2026-07-01T03:59:59Z").await;
    let old = simulation.bundles.borrow_and_update().bundle.commit.clone();
    simulation.clock.set("2026-07-01T04:00:00Z".parse().expect("an instant"));
    simulation
        .runs(|runs| {
            runs.iter().any(|run| run.state == RunState::Running && run.bundle_commit.is_some())
        })
        .await;

    world.commit(&[("scripted/report.yaml", &report("second"))], "change");
    simulation.bundles.changed().await.expect("the keeper lives");
    let new = simulation.bundles.borrow_and_update().bundle.commit.clone();
    assert_ne!(old, new);

    // The first run's delay passes; a day later the next one is due.
    let runs = simulation.runs_in_time(|runs| runs.iter().any(|run| run.state.is_terminal())).await;
    assert_eq!(
        (runs[0].state, runs[0].bundle_commit.as_deref()),
        (RunState::Success, Some(old.as_str()))
    );
    simulation.clock.set("2026-07-02T04:00:00Z".parse().expect("an instant"));
    let runs = simulation
        .runs(|runs| runs.len() == 2 && runs.iter().all(|run| run.state.is_terminal()))
        .await;
    assert_eq!(
        (runs[0].state, runs[0].bundle_commit.as_deref()),
        (RunState::Success, Some(new.as_str()))
    );
    let answer =
        simulation.context.store.run_detail(runs[0].run_id.clone()).await.expect("the run").answer;
    assert_eq!(answer.as_deref(), Some("second"));
    simulation.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn occurrences_missed_while_the_daemon_was_down_have_rows_and_the_latest_runs() {
    let hourly = (
        "tasks/report.yaml",
        "schedule: '@hourly'\nprompt: Write report.md.\ncompletion:\n  artifacts: [report.md]\n",
    );
    let world = World::new(&[hourly, ("scripted/report.yaml", &report("late"))]);
    let simulation = Simulation::start(&world, "2026-07-01T00:30:00Z").await;
    simulation.end().await;

    let simulation = Simulation::start(&world, "2026-07-01T04:10:00Z").await;
    let runs = simulation
        .runs(|runs| runs.len() == 4 && runs.iter().all(|run| run.state.is_terminal()))
        .await;
    let seen: Vec<_> =
        runs.iter().map(|run| (run.due.to_string(), run.state, run.reason.clone())).collect();
    let missed =
        |due: &str| (due.to_owned(), RunState::Skipped, Some("skipped_misfire".to_owned()));
    assert_eq!(
        seen,
        [
            ("2026-07-01T04:00:00Z".to_owned(), RunState::Success, None),
            missed("2026-07-01T03:00:00Z"),
            missed("2026-07-01T02:00:00Z"),
            missed("2026-07-01T01:00:00Z"),
        ]
    );
    simulation.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn task_that_a_commit_disabled_after_its_due_time_is_skipped_with_the_reason() {
    let waits = report("first").replace("turns:\n", "turns:\n  - delay: 1h\n    tool_calls:\n      - name: bash\n        arguments: {command: 'true'}\n");
    let world = World::new(&[
        TASK,
        ("scripted/report.yaml", &waits),
        ("tasks/second.yaml", &TASK.1.replace("prompt:", "max_retries: 0\nprompt:")),
        ("scripted/second.yaml", &report("second")),
    ]);
    let config = world.state().join("fleet.toml");
    let text = std::fs::read_to_string(&config).expect("fleet.toml");
    std::fs::write(&config, format!("{text}\n[serve]\nmax_concurrent_runs = 1\n"))
        .expect("fleet.toml");
    let mut simulation = Simulation::start(&world, "2026-07-01T03:59:59Z").await;
    simulation.bundles.borrow_and_update();
    simulation.clock.set("2026-07-01T04:00:00Z".parse().expect("an instant"));
    // One runs, the other one waits for room.
    let runs = simulation
        .runs(|runs| runs.len() == 2 && runs.iter().any(|run| run.state == RunState::Running))
        .await;
    let waiting =
        runs.iter().find(|run| run.state == RunState::Pending).expect("one waits").clone();

    let task = format!("tasks/{}.yaml", waiting.task);
    world.commit(&[(&task, &format!("enabled: false\n{}", TASK.1))], "disable it");
    simulation.bundles.changed().await.expect("the keeper lives");
    let runs = simulation.runs_in_time(|runs| runs.iter().all(|run| run.state.is_terminal())).await;
    let skipped = runs.iter().find(|run| run.run_id == waiting.run_id).expect("it is listed");
    assert_eq!(
        (skipped.state, skipped.outcome.as_deref(), skipped.reason.as_deref()),
        (RunState::Skipped, None, Some("skipped_disabled_by_reload"))
    );
    simulation.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_daemon_turns_its_loop_each_half_minute() {
    let world = World::new(&[TASK, ("scripted/report.yaml", &report("first"))]);
    let simulation = Simulation::start(&world, "2026-07-01T05:00:00Z").await;
    let mut look_again = tokio::time::interval(Duration::from_millis(10));
    for _ in 0..4 {
        let seen = simulation.heartbeat.last();
        simulation.clock.advance(Duration::from_secs(31));
        while simulation.heartbeat.last() == seen {
            look_again.tick().await;
        }
    }
    simulation.end().await;
}
