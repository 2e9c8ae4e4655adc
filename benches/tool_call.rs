//! What one `bash` call costs through the helper, and what `podman exec` would cost instead.
//!
//! Run as an unprivileged user with rootless Podman: `cargo bench --bench tool_call`.

#[allow(dead_code)] // The tests use the rest.
#[path = "../tests/it/env/sandbox.rs"]
mod sandbox;

use std::time::{Duration, Instant};

use fleet::sandbox::{Call, Sandbox};
use tokio_util::sync::CancellationToken;

const ROUNDS: usize = 40;

#[tokio::main]
async fn main() {
    let cell = sandbox::Cell::new().await;
    let started = Instant::now();
    let running = cell.start("bench").await;
    let start = started.elapsed();
    let mut helper = Vec::with_capacity(ROUNDS);
    let mut exec = Vec::with_capacity(ROUNDS);
    let never = CancellationToken::new();
    for _ in 0..ROUNDS {
        let call =
            Call::Bash { command: "true".into(), cwd: None, timeout: Duration::from_secs(30) };
        let began = Instant::now();
        running.call(call, &never).await.expect("the call is answered");
        helper.push(began.elapsed());
    }
    for _ in 0..ROUNDS {
        let mut command = sandbox::podman_command(&cell.seal.runtime);
        command.args(["exec", running.container(), "bash", "-c", "true"]);
        let began = Instant::now();
        let ended = command.output().expect("podman runs");
        exec.push(began.elapsed());
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    }
    running.close().await;
    let (helper, exec) = (median(helper), median(exec));
    println!("start until the helper answers  {:8.2} ms", millis(start));
    println!("bash: true, through the helper  {:8.2} ms  (median of {ROUNDS})", millis(helper));
    println!("bash: true, by podman exec      {:8.2} ms  (median of {ROUNDS})", millis(exec));
    let ratio = helper.as_secs_f64() / exec.as_secs_f64();
    println!("ratio, helper to podman exec    {ratio:8.3}  (bar: 0.05)");
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
