//! How long after its claim a sealed run sends its first model request, beside what only starting a
//! container would cost. The worktree is made before the request; the container starts meanwhile.
//!
//! Run as an unprivileged user with rootless Podman: `cargo bench --bench first_request`.

#[allow(dead_code)] // The tests use the rest.
#[path = "../tests/it/env/sandbox.rs"]
mod sandbox;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use fleet::bundle::{Revision, load};
use fleet::clock::Clock;
use fleet::run::{Cancel, EventKind, TaskName};
use fleet::runner::{Context, TaskRun};
use fleet::secrets::Redactor;

const ROUNDS: usize = 20;

const FILES: [(&str, &str); 3] = [
    (
        "manifest.yaml",
        "version: 1\nname: bench\ndefaults: {model: recorded/session}\nproviders:\n  - {name: recorded, type: scripted, models: [session]}\n",
    ),
    ("tasks/hello.yaml", "prompt: Say hello.\ncompletion: {shell: 'true'}\n"),
    ("scripted/hello.yaml", "turns:\n  - text: Hello.\n"),
];

#[tokio::main]
async fn main() {
    let cell = sandbox::Cell::new().await;
    let bundle_dir = cell.path("bundle");
    make_bundle(&bundle_dir);
    let bundle = load(&bundle_dir, &Revision::Worktree).expect("the bundle is read");
    let bundle = bundle.bundle.expect("the bundle is valid");
    let task = bundle.tasks[&TaskName::new("hello")].clone();
    let context = Context::open(cell.config.clone(), Clock::System, Redactor::default()).await;
    let context = context.expect("the context opens");

    let mut requests = Vec::with_capacity(ROUNDS);
    let mut wholes = Vec::with_capacity(ROUNDS);
    let mut containers = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let began = Instant::now();
        let run = TaskRun::begin(context.clone(), bundle.clone(), &task, Cancel::default()).await;
        let run = run.expect("the run is claimed");
        let id = run.run_id().clone();
        run.carry_out().await.expect("the run is recorded");
        wholes.push(began.elapsed());
        let events = context.store.events_after(id.clone(), 0, 100).await.expect("its log");
        let claimed = context.store.run(id).await.expect("its row").started_at.expect("it started");
        let asked = events
            .iter()
            .find(|row| matches!(row.event.kind, EventKind::ModelRequested { .. }))
            .expect("the model was asked");
        requests.push(asked.event.at.duration_since(claimed).unsigned_abs());
        containers.push(bare_container(&cell));
    }
    let (request, whole, bare) = (median(requests), median(wholes), median(containers));
    println!("claim until the first request  {:8.2} ms  (median of {ROUNDS})", millis(request));
    println!("whole run, clean-up included   {:8.2} ms  (median of {ROUNDS})", millis(whole));
    println!("podman run --rm … true         {:8.2} ms  (median of {ROUNDS})", millis(bare));
    let ratio = request.as_secs_f64() / bare.as_secs_f64();
    println!("ratio, first request to podman {ratio:8.3}");
}

fn make_bundle(dir: &Path) {
    for (path, text) in FILES {
        let path = dir.join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        std::fs::write(path, text).expect("a file");
    }
    let made = Command::new("git").args(["init", "--quiet"]).current_dir(dir).status();
    assert!(made.expect("git runs").success());
}

/// Starts a container of the same image that does nothing.
fn bare_container(cell: &sandbox::Cell) -> Duration {
    let mut command = sandbox::podman_command(&cell.seal.runtime);
    command.args([
        "run",
        "--rm",
        "--network=none",
        "-v",
        "/usr:/usr:ro",
        &cell.config.image,
        "true",
    ]);
    let began = Instant::now();
    let ended = command.output().expect("podman runs");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    began.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
