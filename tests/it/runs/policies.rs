//! Conditions, pauses, parking and cancellation of runs that really run.

use std::time::Duration;

use fleet::run::{EventKind, RunState};
use fleet::store::RunRow;
use serde_json::Value;

use crate::env::simulation::Simulation;
use crate::env::world::{World, eventually};

const CHECK: &str = "schedule: '0 6 * * *'\nprompt: x\ncompletion: {shell: 'true'}\n";
const SAYS_DONE: &str = "turns:\n  - text: Done.\n";
const WAITS: &str = "turns:\n  - tool_calls:\n      - name: bash\n        arguments: {command: 'sleep 600'}\n  - text: Done.\n";

/// What became of each task's only run.
async fn ends(files: &[(&str, &str)]) -> Vec<(String, RunState, Option<String>)> {
    let world = World::new(files);
    let simulation = Simulation::start(&world, "2026-07-01T05:59:59Z").await;
    simulation.clock.set("2026-07-01T06:00:00Z".parse().expect("an instant"));
    let number = files.len() / 2;
    let ended =
        |runs: &[RunRow]| runs.len() == number && runs.iter().all(|run| run.state.is_terminal());
    let mut runs = simulation.runs(ended).await;
    runs.sort_by(|a, b| a.task.as_str().cmp(b.task.as_str()));
    for run in &runs {
        let events = simulation.context.store.events_after(run.run_id.clone(), 0, 100).await;
        let asked = events
            .expect("the log")
            .into_iter()
            .any(|row| matches!(row.event.kind, EventKind::ConditionChecked { .. }));
        assert!(asked, "the condition of {} is in its log", run.task);
    }
    simulation.end().await;
    runs.into_iter().map(|run| (run.task.to_string(), run.state, run.reason)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn condition_decides_in_the_sandbox_whether_a_scheduled_run_goes_on() {
    let task = |run_if: &str| format!("{CHECK}run_if: {run_if}\n");
    // On the host nothing is known of /run/.containerenv.
    let inside = task("{command: 'test -e /run/.containerenv -o -e /.dockerenv -o -d /fleet'}");
    let no = task("{command: 'false'}");
    let three = task("{command: 'exit 3', exit_code: 3}");
    let ends = ends(&[
        ("tasks/a-holds.yaml", &inside),
        ("scripted/a-holds.yaml", SAYS_DONE),
        ("tasks/b-fails.yaml", &no),
        ("scripted/b-fails.yaml", SAYS_DONE),
        ("tasks/c-three.yaml", &three),
        ("scripted/c-three.yaml", SAYS_DONE),
    ])
    .await;
    let skipped = Some("skipped_run_if".to_owned());
    assert_eq!(
        ends,
        [
            ("a-holds".to_owned(), RunState::Success, None),
            ("b-fails".to_owned(), RunState::Skipped, skipped),
            ("c-three".to_owned(), RunState::Success, None),
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn condition_that_takes_too_long_fails_skips_or_runs_as_the_task_says() {
    let task = |on_error: &str| {
        format!("{CHECK}run_if: {{command: sleep 60, timeout: 1s, on_error: {on_error}}}\n")
    };
    let ends = ends(&[
        ("tasks/a-fail.yaml", &task("fail")),
        ("scripted/a-fail.yaml", SAYS_DONE),
        ("tasks/b-skip.yaml", &task("skip")),
        ("scripted/b-skip.yaml", SAYS_DONE),
        ("tasks/c-run.yaml", &task("run")),
        ("scripted/c-run.yaml", SAYS_DONE),
    ])
    .await;
    let reason = "run_if could not be decided: it took longer than 1 s";
    assert_eq!(
        ends,
        [
            ("a-fail".to_owned(), RunState::DeadLettered, Some(reason.to_owned())),
            ("b-skip".to_owned(), RunState::Skipped, Some("skipped_run_if".to_owned())),
            ("c-run".to_owned(), RunState::Success, None),
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn occurrence_that_replaces_its_elder_waits_for_its_end() {
    let task = CHECK.replace("'0 6 * * *'", "'@hourly'") + "overlap: cancel_running\n";
    let world = World::new(&[("tasks/t.yaml", &task), ("scripted/t.yaml", WAITS)]);
    let simulation = Simulation::start(&world, "2026-07-01T05:59:59Z").await;
    simulation.clock.set("2026-07-01T06:00:00Z".parse().expect("an instant"));
    let in_tool = |runs: &[RunRow], number: usize| {
        runs.len() == number
            && runs[0].state == RunState::Running
            && runs[0].bundle_commit.is_some()
    };
    simulation.runs(|runs| in_tool(runs, 1)).await;
    simulation.clock.set("2026-07-01T07:00:00Z".parse().expect("an instant"));
    let runs = simulation.runs(|runs| in_tool(runs, 2)).await;
    let reason = "replaced by the occurrence due 2026-07-01T07:00:00Z";
    assert_eq!((runs[1].state, runs[1].reason.as_deref()), (RunState::Cancelled, Some(reason)));
    let began = |run: &RunRow| run.started_at.expect("it began");
    assert!(began(&runs[0]) >= runs[1].finished_at.expect("it ended"));
    simulation
        .context
        .store
        .cancel_run(runs[0].run_id.clone(), simulation.context.clock.now(), "enough".to_owned())
        .await
        .expect("cancelled");
    simulation.context.config.state.wake().expect("woken");
    simulation.runs(|runs| runs.iter().all(|run| run.state.is_terminal())).await;
    simulation.end().await;
}

const BY_HAND: &[(&str, &str)] = &[
    ("tasks/slow.yaml", "prompt: x\ncompletion: {shell: 'true'}\n"),
    ("scripted/slow.yaml", WAITS),
];

fn in_a_tool(world: &World) -> Value {
    eventually("a run is in its tool", || {
        let run = world.runs().into_iter().next()?;
        let whole = world.run(&run["run_id"]);
        let events = whole["events"].as_array().expect("events");
        events.iter().any(|event| event["type"] == "tool_started").then_some(whole)
    })
}

fn assert_cancelled(world: &World, id: &Value) {
    let run = world.run(id);
    assert_eq!(
        (&run["state"], &run["outcome"], &run["reason"]),
        (
            &Value::from("cancelled"),
            &Value::from("cancelled"),
            &Value::from("cancelled by the operator: wrong branch")
        )
    );
    eventually("its container is gone", || world.containers().is_empty().then_some(()));
    let worktrees = world.json(&["worktree", "list", "--json"]);
    assert_eq!(worktrees, Value::Array(Vec::new()));
}

#[test]
fn cancelled_run_of_the_daemon_ends_at_once_and_leaves_nothing() {
    let world = World::new(BY_HAND);
    let daemon = world.serve();
    world.ok(&["sched", "trigger", "slow", "--bundle", world.bundle().to_str().expect("UTF-8")]);
    let run = in_a_tool(&world);
    let id = run["run_id"].as_str().expect("an id");
    let told = world.ok(&["sched", "cancel", id, "--reason", "wrong branch"]);
    assert!(told.contains("is told to end"), "{told}");
    daemon.wait_for("cancelled by the operator: wrong branch");
    eventually("it is cancelled", || {
        (world.run(&run["run_id"])["state"] == "cancelled").then_some(())
    });
    assert_eq!(daemon.stop(), Some(0));
    assert_cancelled(&world, &run["run_id"]);
    let again = world.fleet(&["sched", "cancel", id]);
    assert_eq!(again.status.code(), Some(4));
    let text = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(text.contains("is cancelled, not pending, scheduled or running"), "{text}");
}

#[test]
fn cancelled_run_in_the_foreground_ends_at_once_and_leaves_nothing() {
    let world = World::new(BY_HAND);
    let bundle = world.bundle();
    let mut foreground = world
        .command(&["task", "run", "slow", "--bundle", bundle.to_str().expect("UTF-8")])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("fleet starts");
    let run = in_a_tool(&world);
    let id = run["run_id"].as_str().expect("an id");
    world.ok(&["sched", "cancel", id, "--reason", "wrong branch"]);
    assert_eq!(foreground.wait().expect("it ends").code(), Some(7));
    assert_cancelled(&world, &run["run_id"]);
}

#[test]
fn run_of_a_dead_process_that_was_told_to_end_is_cancelled_and_not_tried_again() {
    let world = World::new(BY_HAND);
    let daemon = world.serve();
    world.ok(&["sched", "trigger", "slow", "--bundle", world.bundle().to_str().expect("UTF-8")]);
    let run = in_a_tool(&world);
    daemon.kill();
    let id = run["run_id"].as_str().expect("an id");
    world.ok(&["sched", "cancel", id, "--reason", "wrong branch"]);
    let daemon = world.serve();
    eventually("it is cancelled", || {
        (world.run(&run["run_id"])["state"] == "cancelled").then_some(())
    });
    assert_eq!(daemon.stop(), Some(0));
    assert_cancelled(&world, &run["run_id"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn task_parks_itself_after_failures_in_a_row_until_it_is_resumed() {
    let task = "schedule: '@hourly'\nprompt: x\npark_after: 2\ncompletion: {shell: 'false'}\nlimits: {max_iterations: 1}\n";
    let world = World::new(&[("tasks/t.yaml", task), ("scripted/t.yaml", SAYS_DONE)]);
    let simulation = Simulation::start(&world, "2026-07-01T05:59:59Z").await;
    let hour = Duration::from_secs(3600);
    simulation.clock.advance(Duration::from_secs(1));
    for number in 1..=4 {
        let ended = |runs: &[RunRow]| {
            runs.len() == number && runs.iter().all(|run| run.state.is_terminal())
        };
        simulation.runs(ended).await;
        if number == 3 {
            let status =
                world.fleet(&["status", "--bundle", world.bundle().to_str().expect("UTF-8")]);
            let shown = String::from_utf8_lossy(&status.stdout).into_owned();
            assert_eq!(status.status.code(), Some(6), "{shown}");
            assert!(shown.contains("task t parked itself: fleet sched resume t"), "{shown}");
            let resumed = tokio::task::spawn_blocking({
                let (path, mut command) = (world.state(), world.command(&["sched", "resume", "t"]));
                move || (path, command.output().expect("fleet starts"))
            });
            let (_, output) = resumed.await.expect("it ran");
            let told = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(told.contains("parked since"), "{told}");
            assert!(told.contains("2 runs in a row failed for good"), "{told}");
        }
        simulation.clock.advance(hour);
    }
    let runs = simulation.runs(|runs| runs.len() == 5).await;
    let states: Vec<_> = runs.iter().rev().map(|run| run.state.as_str()).collect();
    assert_eq!(states[..4], ["dead_lettered", "dead_lettered", "skipped", "dead_lettered"]);
    assert_eq!(runs[2].reason.as_deref(), Some("skipped_paused"));
    simulation.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn paused_task_records_what_it_does_not_run_and_goes_on_when_it_is_resumed() {
    let task = "schedule: '@hourly'\nprompt: x\ncompletion: {shell: 'true'}\n";
    let world = World::new(&[("tasks/t.yaml", task), ("scripted/t.yaml", SAYS_DONE)]);
    // The command line reads the real clock: the pause began before what is simulated.
    let simulation = Simulation::start(&world, "2096-07-01T05:59:59Z").await;
    let bundle = world.bundle();
    let pause =
        ["sched", "pause", "t", "--reason", "moving", "--bundle", bundle.to_str().expect("UTF-8")];
    let hidden = world.fleet(&pause.map(|arg| if arg == "moving" { "a\x1b[2Jb" } else { arg }));
    assert_eq!(hidden.status.code(), Some(2));
    let refusal = String::from_utf8_lossy(&hidden.stderr).into_owned();
    assert!(refusal.contains("--reason has the control character \\u{1b}"), "{refusal}");
    let told = world.ok(&pause);
    assert!(told.contains("task t is paused until `fleet sched resume t`: moving"), "{told}");
    simulation.clock.advance(Duration::from_secs(1));
    let runs = simulation.runs(|runs| runs.len() == 1).await;
    assert_eq!(
        (runs[0].state, runs[0].reason.as_deref()),
        (RunState::Skipped, Some("skipped_paused"))
    );
    let listed =
        world.json(&["sched", "list", "--json", "--bundle", bundle.to_str().expect("UTF-8")]);
    let held = listed[0]["held"].as_str().expect("it is held");
    assert!(held.starts_with("paused since ") && held.ends_with(": moving"), "{held}");
    assert_eq!(listed[0]["next_due"], Value::Null);
    world.ok(&["sched", "resume", "t"]);
    simulation.clock.advance(Duration::from_secs(3600));
    let runs = simulation.runs(|runs| runs.len() == 2 && runs[0].state.is_terminal()).await;
    assert_eq!(runs[0].state, RunState::Success);
    let again = world.fleet(&["sched", "resume", "t"]);
    assert_eq!(again.status.code(), Some(4));
    simulation.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn example_of_policies_does_what_it_says() {
    let world = World::of_example("policies");
    let simulation = Simulation::start(&world, "2026-07-01T05:30:00Z").await;
    simulation.end().await;
    // Nobody was there at six and seven.
    let simulation = Simulation::start(&world, "2026-07-01T07:30:00Z").await;
    let runs = simulation
        .runs(|runs| runs.len() == 8 && runs.iter().all(|run| run.state.is_terminal()))
        .await;
    let mut seen: Vec<_> = runs
        .iter()
        .map(|run| {
            let reason = run.reason.clone().unwrap_or_default();
            let due = run.due.strftime("%H").to_string();
            (run.task.to_string(), due, run.state.as_str(), reason)
        })
        .collect();
    seen.sort();
    let row = |task: &str, due: &str, state: &'static str, reason: &str| {
        (task.to_owned(), due.to_owned(), state, reason.to_owned())
    };
    assert_eq!(
        seen,
        [
            row("compact", "06", "skipped", "skipped_misfire"),
            row("compact", "07", "success", ""),
            row("load", "06", "success", ""),
            row("load", "07", "success", ""),
            row("on-demand", "06", "skipped", "skipped_misfire"),
            row("on-demand", "07", "skipped", "skipped_run_if"),
            row("preview", "06", "skipped", "skipped_misfire"),
            row("preview", "07", "skipped", "skipped_misfire"),
        ]
    );
    simulation.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_runs_that_really_run_use_up_a_schedule_count() {
    let task = |more: &str| format!("{}{more}", CHECK.replace("'0 6 * * *'", "'@hourly'"));
    let world = World::new(&[
        ("tasks/counted.yaml", &task("schedule_count: 2\n")),
        ("scripted/counted.yaml", SAYS_DONE),
        ("tasks/idle.yaml", &task("schedule_count: 2\nrun_if: {command: 'false'}\n")),
        ("scripted/idle.yaml", SAYS_DONE),
    ]);
    let simulation = Simulation::start(&world, "2026-07-01T05:59:59Z").await;
    let of = |runs: &[RunRow], task: &str| {
        runs.iter().filter(|run| run.task.as_str() == task && run.state.is_terminal()).count()
    };
    for hour in 1..=4 {
        let at: jiff::Timestamp = "2026-07-01T05:00:00Z".parse().expect("an instant");
        simulation.clock.set(at + jiff::SignedDuration::from_hours(hour));
        let hour = usize::try_from(hour).expect("small");
        let counted = hour.min(2);
        simulation.runs(|runs| of(runs, "idle") == hour && of(runs, "counted") == counted).await;
    }
    let runs = simulation.runs(|_| true).await;
    let skipped = Some("skipped_run_if");
    let reasons = runs.iter().filter(|run| run.task.as_str() == "idle");
    assert!(reasons.into_iter().all(|run| run.reason.as_deref() == skipped), "{runs:#?}");
    assert_eq!(of(&runs, "counted"), 2);
    simulation.end().await;

    // What is used up is over wherever it is shown; what was skipped goes on.
    let bundle = world.bundle();
    let bundle = bundle.to_str().expect("UTF-8");
    let tasks = world.json(&["sched", "list", "--bundle", bundle, "--json"]);
    let seen: Vec<_> = tasks
        .as_array()
        .expect("a list")
        .iter()
        .map(|task| (task["task"].clone(), task["left"].clone(), task["ended"].clone()))
        .collect();
    assert_eq!(
        seen,
        [("counted".into(), 0.into(), true.into()), ("idle".into(), 2.into(), false.into())]
    );
    let next = |task: &str| world.ok(&["sched", "next", task, "--bundle", bundle]);
    assert_eq!(next("counted").trim_end(), "ended: schedule_count lets it run 2 times");
    let idle = next("idle");
    let lines: Vec<_> = idle.lines().collect();
    assert_eq!((lines.len(), lines[2]), (3, "ended: schedule_count lets it run 2 times"), "{idle}");
    let status = world.fleet(&["status", "--bundle", bundle, "--json"]);
    let status: Value = serde_json::from_slice(&status.stdout).expect("JSON");
    let due: Vec<_> = status["due_next"].as_array().expect("a list").iter().collect();
    assert_eq!(due.len(), 1, "{status:#}");
    assert_eq!(due[0]["task"], "idle", "{status:#}");
}
