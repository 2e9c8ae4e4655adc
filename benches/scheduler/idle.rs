//! A real `fleet serve` that has nothing to do for a minute.

use std::collections::HashMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::env::sandbox;
use crate::{bundle, line};

/// How long the start may echo.
const SETTLE: Duration = Duration::from_secs(35);
const SPAN: Duration = Duration::from_secs(60);

/// Prints memory, CPU and wake-ups of an idle daemon.
pub fn measure() {
    for tasks in [1_000, 10_000] {
        println!("an idle fleet serve with {tasks} tasks");
        let dir = tempfile::tempdir().expect("scratch directory");
        let far = (0..tasks).map(|i| (format!("task-{i}"), format!("{} 3 29 2 *", i % 60)));
        bundle::make(&dir.path().join("bundle"), far);
        let mut daemon = start(dir.path());
        std::thread::sleep(SETTLE);
        let bars = if tasks == 1_000 { ["bar: 20", "bar: 5", "bar: 0.1"] } else { [""; 3] };
        let before = Threads::of(&daemon);
        let spent = watch(&daemon, before);
        line("memory (VmRSS)", memory_mb(&daemon), "MB", bars[0]);
        line("CPU per minute", spent.cpu.as_secs_f64() * 1000.0, "ms", bars[1]);
        line(
            "wake-ups (voluntary switches) per second",
            spent.switches / SPAN.as_secs_f64(),
            "1/s",
            bars[2],
        );
        daemon.kill().expect("the daemon is killed");
        daemon.wait().expect("the daemon is reaped");
    }
}

fn start(dir: &Path) -> Child {
    let state = dir.join("state");
    std::fs::create_dir_all(&state).expect("state directory");
    std::fs::write(state.join("fleet.toml"), sandbox::fleet_toml(&state)).expect("fleet.toml");
    Command::new(env!("CARGO_BIN_EXE_fleet"))
        .arg("serve")
        .arg("--bundle")
        .arg(dir.join("bundle"))
        .args(["--listen", "127.0.0.1:0"])
        .env("FLEET_STATE_DIR", &state)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("fleet serve starts")
}

struct Spent {
    cpu: Duration,
    switches: f64,
}

/// What each thread has spent: nanoseconds on a CPU, voluntary switches.
#[derive(Clone, Default)]
struct Threads(HashMap<String, (u64, u64)>);

impl Threads {
    fn of(daemon: &Child) -> Self {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", daemon.id())).expect("it lives");
        let seen = tasks.flatten().filter_map(|task| {
            // A thread may end between the look and the reading.
            let read = |name: &str| std::fs::read_to_string(task.path().join(name)).ok();
            let cpu = read("schedstat")?.split(' ').next()?.parse().ok()?;
            let status = read("status")?;
            let switches =
                status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            Some((task.file_name().into_string().ok()?, (cpu, switches?.trim().parse().ok()?)))
        });
        Threads(seen.collect())
    }
}

/// Looks each half second, so that threads that end are counted too.
fn watch(daemon: &Child, before: Threads) -> Spent {
    let began = Instant::now();
    let mut latest = before.clone();
    while began.elapsed() < SPAN {
        std::thread::sleep(Duration::from_millis(500));
        latest.0.extend(Threads::of(daemon).0);
    }
    let (mut nanos, mut switches) = (0, 0);
    for (thread, (cpu, voluntary)) in latest.0 {
        let (cpu_before, voluntary_before) = before.0.get(&thread).copied().unwrap_or_default();
        nanos += cpu.saturating_sub(cpu_before);
        switches += voluntary.saturating_sub(voluntary_before);
    }
    Spent { cpu: Duration::from_nanos(nanos), switches: switches as f64 }
}

fn memory_mb(daemon: &Child) -> f64 {
    let status =
        std::fs::read_to_string(format!("/proc/{}/status", daemon.id())).expect("it lives");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("VmRSS");
    line.trim().trim_end_matches(" kB").parse::<f64>().expect("a number") / 1024.0
}
