//! What a sandbox costs, beside what Podman alone would cost: a call against `podman exec` into the same
//! container, a sealed start against a bare `podman run --rm`, the memory of a sandbox against that of
//! a bare container. Whatever is compared is measured in turns, in the same minute.
//!
//! Run as an unprivileged user with rootless Podman: `cargo bench --bench tool_call`, with `-- calls`,
//! `-- start` or `-- memory` for a part, and `-- starts 500` to look for what many starts leave.

#[allow(dead_code)] // The tests use the rest.
#[path = "../tests/it/env/sandbox.rs"]
mod sandbox;

use std::process::Stdio;
use std::time::{Duration, Instant};

use fleet::sandbox::{Call, PodmanSandbox, Sandbox};
use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;

const ROUNDS: usize = 30;
const AT_ONCE: usize = 8;

#[tokio::main]
async fn main() {
    // cargo adds `--bench`.
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let wanted = |part: &str| args.is_empty() || args[0] == part;
    let cell = sandbox::Cell::new().await;
    println!("load {}", std::fs::read_to_string("/proc/loadavg").expect("a load").trim());
    if wanted("calls") {
        calls(&cell).await;
    }
    if wanted("start") {
        start(&cell).await;
    }
    if wanted("memory") {
        memory(&cell).await;
    }
    if args.first().is_some_and(|part| part == "starts") {
        let number = args.get(1).map_or(500, |number| number.parse().expect("a number of starts"));
        starts(&cell, number).await;
    }
}

/// Each call through the helper, and what stands for it through `podman exec`.
async fn calls(cell: &sandbox::Cell) {
    let running = cell.start("bench-calls").await;
    let (path, content) = ("some/file".to_owned(), vec![b'x'; 4096]);
    let table: [(&str, f64, Call, &[&str]); 4] = [
        ("bash: true", 0.05, bash("true"), &["bash", "-c", "true"]),
        (
            "write 4 kB",
            0.01,
            Call::Write { path: path.clone(), content: content.clone() },
            &["bash", "-c", "mkdir -p some && cat >some/file.new && mv some/file.new some/file"],
        ),
        ("read 4 kB", 0.01, Call::Read { path, offset: 0, limit: 8192 }, &["cat", "some/file"]),
        ("run_python: print", 0.01, python("print(1)"), &["python3", "-c", "print(1)"]),
    ];
    for (what, bar, call, stands_for) in table {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for round in 0..=ROUNDS {
            let began = Instant::now();
            answered(&running, call.clone()).await;
            let took = began.elapsed();
            let exec = exec(cell, &running, stands_for, &content);
            // The first ones start what is started once.
            if round > 0 {
                ours.push(took);
                theirs.push(exec);
            }
        }
        report(what, "podman exec", ours, theirs, bar);
    }
    running.close().await;
}

/// A sealed start, until the first call is answered, and a bare container that does nothing.
async fn start(cell: &sandbox::Cell) {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let began = Instant::now();
        let running = cell.start("bench-start").await;
        answered(&running, Call::List { path: ".".into() }).await;
        let took = began.elapsed();
        running.close().await;
        let bare = bare(cell, &["--rm"], &["true"]);
        if round > 0 {
            ours.push(took);
            theirs.push(bare);
        }
    }
    report("sealed start", "podman run --rm", ours, theirs, 1.3);
}

/// Resident memory of all that a sandbox keeps, and of a bare container.
async fn memory(cell: &sandbox::Cell) {
    let before = resident("self");
    let names: Vec<_> = (0..AT_ONCE).map(|n| format!("bench-memory-{n}")).collect();
    let running = join_all(names.iter().map(|name| cell.start(name))).await;
    let started = running.iter().map(|one| answered(one, bash("true")));
    join_all(started).await;
    let own = resident("self").saturating_sub(before) / AT_ONCE as u64;
    let (helper, monitor) = resident_of(cell, running[0].container());
    answered(&running[0], python("1")).await;
    let (with_kernel, _) = resident_of(cell, running[0].container());
    join_all(running.iter().map(|one| one.close())).await;
    let name = format!("bench-bare-{}", std::process::id());
    bare(cell, &["--detach", "--rm", "--name", &name], &["sleep", "600"]);
    let (bare_process, bare_monitor) = resident_of(cell, &name);
    podman(cell, &["rm", "--force", "--time", "0", &name]);
    let mut attached = sandbox::podman_command(&cell.seal.runtime);
    attached.args(["run", "--rm", "--interactive", "--network=none", "-v", "/usr:/usr:ro"]);
    attached.args([&cell.config.image, "bash", "-c", "echo up; cat"]);
    let mut attached = attached.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("runs");
    let mut line = String::new();
    let output = attached.stdout.as_mut().expect("its output");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut line).expect("a line");
    let client = tree(attached.id()).iter().map(|pid| resident(&pid.to_string())).sum::<u64>();
    drop(attached.stdin.take());
    attached.wait().expect("it ends");
    println!("memory of one sandbox, in kB, {AT_ONCE} at once");
    println!("  podman client {:8}  (podman run -i alone: {client})", 0);
    println!("  conmon        {monitor:8}  (podman run -d alone: {bare_monitor})");
    println!(
        "  helper        {helper:8}  (sleep: {bare_process}; with one Python kernel: {with_kernel})"
    );
    println!("  fleet's part  {own:8}");
    println!("  sum           {:8}", monitor + helper + own);
}

/// Many starts, eight at once, and what they leave.
async fn starts(cell: &sandbox::Cell, number: usize) {
    let mut before = None;
    let began = Instant::now();
    for round in 0..=number.div_ceil(AT_ONCE) {
        let names: Vec<_> = (0..AT_ONCE).map(|n| format!("bench-{round}-{n}")).collect();
        let running = join_all(names.iter().map(|name| cell.start(name))).await;
        join_all(running.iter().map(|one| answered(one, bash("true")))).await;
        join_all(running.iter().map(|one| one.close())).await;
        before.get_or_insert_with(|| left(cell));
    }
    println!("{number} starts, {AT_ONCE} at once, took {:.0} s", began.elapsed().as_secs_f64());
    println!("  before {:?}\n  after  {:?}", before.expect("a round"), left(cell));
}

/// What may be left of sandboxes.
#[derive(Debug)]
#[allow(dead_code)] // It is printed.
struct Left {
    resident_kb: u64,
    descriptors: usize,
    monitors: usize,
    container_mounts: usize,
    runtime_states: usize,
    containers: usize,
}

fn left(cell: &sandbox::Cell) -> Left {
    let commands = processes().filter_map(|pid| std::fs::read(format!("/proc/{pid}/cmdline")).ok());
    let mounts = podman(cell, &["unshare", "cat", "/proc/self/mountinfo"]);
    let state = std::env::var("XDG_RUNTIME_DIR").expect("XDG_RUNTIME_DIR is set");
    let states = std::fs::read_dir(format!("{state}/{}", cell.seal.runtime));
    Left {
        resident_kb: resident("self"),
        descriptors: std::fs::read_dir("/proc/self/fd").expect("descriptors").count(),
        monitors: commands
            .filter(|line| String::from_utf8_lossy(line).contains("fleet-bench-"))
            .count(),
        container_mounts: mounts.lines().filter(|line| line.contains("/merged")).count(),
        runtime_states: states.map_or(0, Iterator::count),
        containers: podman(cell, &["ps", "--all", "--external", "--quiet"]).lines().count(),
    }
}

fn bash(command: &str) -> Call {
    Call::Bash { command: command.into(), cwd: None, timeout: Duration::from_secs(30) }
}

fn python(code: &str) -> Call {
    Call::Python {
        code: code.into(),
        timeout: Duration::from_secs(30),
        reset_kernel: false,
        return_vars: Vec::new(),
    }
}

async fn answered(running: &PodmanSandbox, call: Call) {
    running.call(call, &CancellationToken::new()).await.expect("the call is answered");
}

fn exec(cell: &sandbox::Cell, running: &PodmanSandbox, args: &[&str], input: &[u8]) -> Duration {
    let mut command = sandbox::podman_command(&cell.seal.runtime);
    command.args(["exec", "--interactive", running.container()]).args(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let began = Instant::now();
    let mut child = command.spawn().expect("podman runs");
    // A command that reads nothing may be gone.
    let _ = std::io::Write::write_all(&mut child.stdin.take().expect("its input"), input);
    let ended = child.wait_with_output().expect("podman ends");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    began.elapsed()
}

/// A container of the same image without any seal.
fn bare(cell: &sandbox::Cell, flags: &[&str], command: &[&str]) -> Duration {
    let mut args = vec!["run", "--network=none", "-v", "/usr:/usr:ro"];
    args.extend(flags);
    args.push(&cell.config.image);
    args.extend(command);
    let began = Instant::now();
    podman(cell, &args);
    began.elapsed()
}

fn podman(cell: &sandbox::Cell, args: &[&str]) -> String {
    let mut command = sandbox::podman_command(&cell.seal.runtime);
    let ended = command.args(args).output().expect("podman runs");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    String::from_utf8_lossy(&ended.stdout).into_owned()
}

/// Of a container's processes with their descendants, and of its monitor.
fn resident_of(cell: &sandbox::Cell, container: &str) -> (u64, u64) {
    let format = "{{.State.Pid}} {{.State.ConmonPid}}";
    let pids = podman(cell, &["inspect", "--format", format, container]);
    let mut pids = pids.split_whitespace();
    let mut next = || pids.next().and_then(|pid| pid.parse().ok()).expect("a process");
    let (inside, monitor): (u32, u32) = (next(), next());
    let inside = tree(inside).iter().map(|pid| resident(&pid.to_string())).sum();
    (inside, resident(&monitor.to_string()))
}

fn processes() -> impl Iterator<Item = u32> {
    let all = std::fs::read_dir("/proc").expect("processes").filter_map(Result::ok);
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// A process and its descendants.
fn tree(root: u32) -> Vec<u32> {
    let mut tree = vec![root];
    let mut at = 0;
    while let Some(parent) = tree.get(at).copied() {
        let line = format!("PPid:\t{parent}\n");
        tree.extend(processes().filter(|pid| {
            std::fs::read_to_string(format!("/proc/{pid}/status")).is_ok_and(|s| s.contains(&line))
        }));
        at += 1;
    }
    tree
}

/// Resident kB of a process; 0 when it is gone.
fn resident(pid: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn report(what: &str, floor: &str, ours: Vec<Duration>, theirs: Vec<Duration>, bar: f64) {
    let number = ours.len();
    let (ours, theirs) = (median(ours), median(theirs));
    let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
    println!("{what}, medians of {number}");
    println!("  fleet           {:8.2} ms", millis(ours));
    println!("  {floor:15} {:8.2} ms", millis(theirs));
    println!("  ratio           {ratio:8.3}     (bar: {bar})");
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
