//! What a sealed run costs, from its claim to its terminal row, beside what only its container and its
//! worktree would cost: until its first model request, with ten calls, and fifty of them at once. The
//! worktree is made before the first request; the container starts meanwhile. Whatever is compared is
//! measured in turns, in the same minute.
//!
//! Run as an unprivileged user with rootless Podman: `cargo bench --bench first_request`, with
//! `-- first`, `-- ten` or `-- fifty` for a part.

#[allow(dead_code)] // The tests use the rest.
#[path = "../tests/it/env/sandbox.rs"]
mod sandbox;

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fleet::bundle::{Bundle, Revision, load};
use fleet::clock::Clock;
use fleet::run::{Cancel, EventKind, RunState, TaskName};
use fleet::runner::{Context, TaskRun};
use fleet::secrets::Redactor;
use futures_util::StreamExt;

const ROUNDS: usize = 20;
const TOGETHER: usize = 50;
const AT_ONCE: usize = 2;

const FILES: [(&str, &str); 5] = [
    (
        "manifest.yaml",
        "version: 1\nname: bench\ndefaults: {model: recorded/session}\nproviders:\n  - {name: recorded, type: scripted, models: [session]}\n",
    ),
    ("tasks/hello.yaml", "prompt: Say hello.\ncompletion: {shell: 'true'}\n"),
    ("scripted/hello.yaml", "turns:\n  - text: Hello.\n"),
    ("tasks/ten.yaml", "prompt: Call ten times.\ncompletion: {shell: 'true'}\n"),
    (
        "scripted/ten.yaml",
        concat!(
            "turns:\n",
            "  - &call\n    tool_calls:\n      - {name: bash, arguments: {command: 'true'}}\n",
            "  - *call\n  - *call\n  - *call\n  - *call\n  - *call\n  - *call\n  - *call\n  - *call\n",
            "  - *call\n  - text: Done.\n"
        ),
    ),
];

/// What every part needs.
struct Bench {
    cell: sandbox::Cell,
    context: Arc<Context>,
    bundle: Arc<Bundle>,
}

#[tokio::main]
async fn main() {
    // cargo adds `--bench`.
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let wanted = |part: &str| args.is_empty() || args[0] == part;
    let cell = sandbox::Cell::new().await;
    println!("load {}", std::fs::read_to_string("/proc/loadavg").expect("a load").trim());
    let bundle_dir = cell.path("bundle");
    make_bundle(&bundle_dir);
    let bundle = load(&bundle_dir, &Revision::Worktree).expect("the bundle is read");
    let bundle = bundle.bundle.expect("the bundle is valid");
    let context = Context::open(cell.config.clone(), Clock::System, Redactor::default()).await;
    let context = context.expect("the context opens");
    let bench = Bench { cell, context, bundle };
    if wanted("first") {
        bench.first_request().await;
    }
    if wanted("ten") {
        bench.ten_calls().await;
    }
    if wanted("fifty") {
        bench.fifty().await;
    }
}

/// One run, from its claim on.
struct Seen {
    first_request: Duration,
    sandbox_ready: Duration,
    terminal: Duration,
    cleaned_up: Duration,
}

impl Bench {
    async fn run(&self, task: &str) -> Seen {
        let task = self.bundle.tasks[&TaskName::new(task)].clone();
        let began = Instant::now();
        let run =
            TaskRun::begin(self.context.clone(), self.bundle.clone(), &task, Cancel::default())
                .await
                .expect("the run is claimed");
        let id = run.run_id().clone();
        run.carry_out().await.expect("the run is recorded");
        let cleaned_up = began.elapsed();
        let events = self.context.store.events_after(id.clone(), 0, 1000).await.expect("its log");
        let row = self.context.store.run(id).await.expect("its row");
        assert_eq!(row.state, RunState::Success);
        let claimed = row.started_at.expect("it started");
        let after = |at: jiff::Timestamp| at.duration_since(claimed).unsigned_abs();
        let first = |wanted: fn(&EventKind) -> bool| {
            let found = events.iter().find(|row| wanted(&row.event.kind));
            after(found.expect("the event").event.at)
        };
        Seen {
            first_request: first(|kind| matches!(kind, EventKind::ModelRequested { .. })),
            sandbox_ready: first(|kind| matches!(kind, EventKind::SandboxReady { .. })),
            terminal: after(row.finished_at.expect("it ended")),
            cleaned_up,
        }
    }

    async fn first_request(&self) {
        let (mut requests, mut ready, mut wholes) = (Vec::new(), Vec::new(), Vec::new());
        let mut containers = Vec::new();
        for _ in 0..ROUNDS {
            let seen = self.run("hello").await;
            requests.push(seen.first_request);
            ready.push(seen.sandbox_ready);
            wholes.push(seen.cleaned_up);
            containers.push(bare_container(&self.cell));
        }
        let (request, ready, whole) = (median(requests), median(ready), median(wholes));
        let bare = median(containers);
        println!("claim until the first request  {:8.2} ms  (median of {ROUNDS})", millis(request));
        println!("claim until the sandbox is up  {:8.2} ms", millis(ready));
        println!("whole run, clean-up included   {:8.2} ms", millis(whole));
        println!("podman run --rm … true         {:8.2} ms", millis(bare));
        let ratio = request.as_secs_f64() / bare.as_secs_f64();
        println!("ratio, first request to podman {ratio:8.3}");
    }

    /// Ten calls of bash, from the claim to the terminal row, and the two things that nothing can
    /// spare: a container that is started, and a worktree that is added.
    async fn ten_calls(&self) {
        let repository = self.cell.path("repository");
        make_repository(&repository);
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            ours.push(self.run("ten").await.terminal);
            let began = Instant::now();
            let name = format!("bench-ten-{}-{round}", std::process::id());
            detached(&self.cell, &name);
            let worktree = format!("../worktree-{round}");
            git(&repository, &["worktree", "add", "--quiet", "-b", &name, &worktree]);
            theirs.push(began.elapsed());
            remove(&self.cell, &name);
        }
        let (ours, theirs) = (median(ours), median(theirs));
        println!("ten calls, claim to terminal   {:8.2} ms  (median of {ROUNDS})", millis(ours));
        println!("podman run -d, worktree add    {:8.2} ms", millis(theirs));
        let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
        println!("ratio                          {ratio:8.3}  (bar: 1.5)");
    }

    /// Fifty runs, two at a time, clean-up included, and fifty bare containers, two at a time. In
    /// turns of half as many.
    async fn fifty(&self) {
        let (mut ours, mut theirs) = (Duration::ZERO, Duration::ZERO);
        for turn in 0..2 {
            let began = Instant::now();
            let runs = futures_util::stream::iter(0..TOGETHER / 2)
                .map(|_| self.run("hello"))
                .buffer_unordered(AT_ONCE);
            assert_eq!(runs.collect::<Vec<_>>().await.len(), TOGETHER / 2);
            ours += began.elapsed();
            let began = Instant::now();
            std::thread::scope(|scope| {
                for worker in 0..AT_ONCE {
                    scope.spawn(move || {
                        for n in (worker..TOGETHER / 2).step_by(AT_ONCE) {
                            let name = format!("bench-fifty-{}-{turn}-{n}", std::process::id());
                            detached(&self.cell, &name);
                            remove(&self.cell, &name);
                        }
                    });
                }
            });
            theirs += began.elapsed();
        }
        println!("{TOGETHER} runs, {AT_ONCE} at a time        {:8.2} s", ours.as_secs_f64());
        println!("{TOGETHER} × (podman run -d, rm)     {:8.2} s", theirs.as_secs_f64());
        let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
        println!("ratio                          {ratio:8.3}  (bar: 1.3)");
    }
}

/// Starts a container of the same image, without any seal, that stays.
fn detached(cell: &sandbox::Cell, name: &str) {
    let mut args = vec!["run", "--detach", "--rm", "--network=none", "-v", "/usr:/usr:ro"];
    args.extend(["--name", name, &cell.config.image, "sleep", "600"]);
    podman(cell, &args);
}

fn remove(cell: &sandbox::Cell, name: &str) {
    podman(cell, &["rm", "--force", "--time", "0", name]);
}

fn podman(cell: &sandbox::Cell, args: &[&str]) {
    let mut command = sandbox::podman_command(&cell.seal.runtime);
    let ended = command.args(args).output().expect("podman runs");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}

fn git(dir: &Path, args: &[&str]) {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=bench", "-c", "user.email=bench@localhost"]);
    let made = command.args(args).current_dir(dir).status();
    assert!(made.expect("git runs").success());
}

/// As small as a task's private repository.
fn make_repository(dir: &Path) {
    std::fs::create_dir_all(dir).expect("directory");
    git(dir, &["init", "--quiet"]);
    git(dir, &["commit", "--quiet", "--allow-empty", "-m", "Begin"]);
}

fn make_bundle(dir: &Path) {
    for (path, text) in FILES {
        let path = dir.join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        std::fs::write(path, text).expect("a file");
    }
    git(dir, &["init", "--quiet"]);
}

/// Starts a container of the same image that does nothing.
fn bare_container(cell: &sandbox::Cell) -> Duration {
    let began = Instant::now();
    podman(
        cell,
        &["run", "--rm", "--network=none", "-v", "/usr:/usr:ro", &cell.config.image, "true"],
    );
    began.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
