//! A daemon that lives through clock changes, and the jitter and the end of a schedule, on a simulated
//! clock.

use fleet::run::RunState;
use fleet::store::RunRow;

use crate::cli::sched::schedules;
use crate::env::simulation::Simulation;
use crate::env::world::World;

const TURNS: &str = "turns:\n  - tool_calls:\n      - name: bash\n        arguments: {command: 'touch x'}\n  - text: Done.\n";

fn task(schedule: &str, zone: &str) -> String {
    format!(
        "schedule: '{schedule}'\ntimezone: {zone}\nprompt: Make x.\ncompletion: {{shell: test -e x}}\n"
    )
}

/// Moves the clock and waits until `count` runs have ended.
async fn move_to(simulation: &Simulation, at: &str, count: usize) -> Vec<RunRow> {
    simulation.clock.set(at.parse().expect("an instant"));
    simulation
        .runs(|runs| runs.len() == count && runs.iter().all(|run| run.state.is_terminal()))
        .await
}

/// Task, due instant and state, the oldest due first.
fn seen(runs: &[RunRow]) -> Vec<(String, String, RunState)> {
    let row = |run: &RunRow| (run.task.to_string(), run.due.to_string(), run.state);
    runs.iter().rev().map(row).collect()
}

fn success(task: &str, due: &str) -> (String, String, RunState) {
    (task.to_owned(), due.to_owned(), RunState::Success)
}

#[tokio::test(flavor = "multi_thread")]
async fn daemon_alive_across_a_clock_change_keeps_the_local_time_without_a_restart() {
    let world = World::new(&[
        ("tasks/nine.yaml", &task("0 9 * * *", "Europe/Dublin")),
        ("scripted/nine.yaml", TURNS),
    ]);
    let simulation = Simulation::start(&world, "2026-03-28T08:59:59Z").await;
    move_to(&simulation, "2026-03-28T09:00:00Z", 1).await;
    // In the night the clocks of Dublin go from 01:00 to 02:00: nine o'clock is 08:00 UTC.
    let runs = move_to(&simulation, "2026-03-29T08:00:00Z", 2).await;
    assert_eq!(
        seen(&runs),
        [success("nine", "2026-03-28T09:00:00Z"), success("nine", "2026-03-29T08:00:00Z")]
    );
    simulation.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn four_hourly_task_and_the_others_go_on_through_the_spring_change() {
    let world = World::new(&[
        ("tasks/four.yaml", &task("20 */4 * * *", "America/Los_Angeles")),
        ("scripted/four.yaml", TURNS),
        ("tasks/other.yaml", &task("0 9-12 * * *", "UTC")),
        ("scripted/other.yaml", TURNS),
    ]);
    let simulation = Simulation::start(&world, "2023-03-12T08:00:00Z").await;
    // At 10:00 UTC the clocks of Los Angeles go from 02:00 to 03:00.
    let mut ended = 0;
    let mut runs = Vec::new();
    for at in ["08:20", "09:00", "10:00", "11:00", "11:20", "12:00"] {
        ended += 1;
        runs = move_to(&simulation, &format!("2023-03-12T{at}:00Z"), ended).await;
    }
    assert_eq!(
        seen(&runs),
        [
            success("four", "2023-03-12T08:20:00Z"),
            success("other", "2023-03-12T09:00:00Z"),
            success("other", "2023-03-12T10:00:00Z"),
            success("other", "2023-03-12T11:00:00Z"),
            success("four", "2023-03-12T11:20:00Z"),
            success("other", "2023-03-12T12:00:00Z"),
        ]
    );
    simulation.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_due_at_its_own_second_and_never_after_its_end() {
    let world = schedules();
    let simulation = Simulation::start(&world, "2027-12-24T07:00:34Z").await;
    simulation.runs(<[RunRow]>::is_empty).await;
    // Eight o'clock in Berlin, and the 35 seconds of the task.
    let runs = move_to(&simulation, "2027-12-24T07:00:35Z", 1).await;
    assert_eq!(seen(&runs), [success("advent", "2027-12-24T07:00:35Z")]);

    // A day later only the others are due: 48 half hours and one night.
    simulation.clock.set("2027-12-25T07:10:00Z".parse().expect("an instant"));
    let runs = simulation
        .runs(|runs| runs.len() == 50 && runs.iter().all(|run| run.state.is_terminal()))
        .await;
    let ran: Vec<_> =
        seen(&runs).into_iter().filter(|(.., state)| *state != RunState::Skipped).collect();
    assert_eq!(
        ran,
        [
            success("advent", "2027-12-24T07:00:35Z"),
            success("night-shift", "2027-12-25T01:32:11Z"),
            success("pulse", "2027-12-25T07:00:00Z"),
        ]
    );
    simulation.end().await;
}
