//! 200 tasks due in the same second, among 1,000 and 10,000: how long after it each run is handed to
//! whoever carries it out.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fleet::clock::{Clock, Heartbeat};
use fleet::run::Outcome;
use fleet::runner::{BundleKeeper, Context, Double, Service, Signal, Wake};
use fleet::secrets::Redactor;
use futures_util::FutureExt;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::mpsc;

use crate::env::{pretend, sandbox};
use crate::{block_on, bundle, line};

const DUE: usize = 200;
/// Minutes that are measured, one after another.
const MINUTES: i64 = 3;

/// Prints the lag of the first, of the 95th of a hundred and of the last.
pub fn measure() {
    let mut lasts = Vec::new();
    for tasks in [1_000, 10_000] {
        println!("{DUE} of {tasks} tasks due in one second, by a double");
        let [first, p95, last] = block_on(lags(tasks));
        line("first", first, "ms", "bar: 10");
        line("95th of a hundred", p95, "ms", "bar: 60");
        line("last", last, "ms", "bar: 110");
        lasts.push(last);
    }
    line("ratio of the last, 10,000 to 1,000 tasks", lasts[1] / lasts[0], "", "bar: 1.2");
}

/// The best of the minutes, each in milliseconds.
async fn lags(tasks: usize) -> [f64; 3] {
    let dir = tempfile::tempdir().expect("scratch directory");
    let due = first_minute(tasks);
    let schedule = |i: usize| {
        if i >= DUE {
            return format!("{} 3 29 2 *", i % 60);
        }
        let minutes: Vec<String> = (0..MINUTES).map(|n| minute(due, n).to_string()).collect();
        format!("{} * * * *", minutes.join(","))
    };
    bundle::make(
        &dir.path().join("bundle"),
        (0..tasks).map(|i| (format!("task-{i}"), schedule(i))),
    );
    let seen: Arc<Mutex<Vec<(Timestamp, f64)>>> = Arc::default();
    let double = recorder(seen.clone());
    let (stop, service) = serve(dir.path(), double).await;
    let end = due + SignedDuration::from_mins(MINUTES - 1) + SignedDuration::from_secs(5);
    Clock::System.sleep_until(end).await;
    stop.send(Signal::Stop).await.expect("the daemon listens");
    service.await.expect("the daemon ends");
    let seen = seen.lock().expect("no panic").clone();
    let rounds = (0..MINUTES).map(|n| round(&seen, due + SignedDuration::from_mins(n)));
    let best = rounds.min_by(|a, b| a[2].total_cmp(&b[2]));
    best.expect("a minute")
}

fn round(seen: &[(Timestamp, f64)], due: Timestamp) -> [f64; 3] {
    let mut lags: Vec<f64> =
        seen.iter().filter(|(at, _)| *at == due).map(|(_, lag)| *lag).collect();
    lags.sort_by(f64::total_cmp);
    assert_eq!(lags.len(), DUE, "all that was due at {due} was handed over");
    [lags[0], lags[DUE * 95 / 100], lags[DUE - 1]]
}

/// The first whole minute for which there is time to make the bundle and to start.
fn first_minute(tasks: usize) -> Timestamp {
    let ready = Timestamp::now().as_second() + 10 + i64::try_from(tasks / 500).expect("few");
    Timestamp::from_second((ready / 60 + 1) * 60).expect("in range")
}

fn minute(due: Timestamp, later: i64) -> i8 {
    TimeZone::UTC.to_datetime(due + SignedDuration::from_mins(later)).minute()
}

fn recorder(seen: Arc<Mutex<Vec<(Timestamp, f64)>>>) -> Double {
    Arc::new(move |execution| {
        let due = execution.claimed.due;
        let lag = Timestamp::now().duration_since(due).as_secs_f64() * 1000.0;
        seen.lock().expect("no panic").push((due, lag));
        // As a run would, it goes on for a while.
        let clock = execution.context.clock.clone();
        async move {
            clock.sleep(Duration::from_secs(1)).await;
            Outcome::success()
        }
        .boxed()
    })
}

async fn serve(dir: &Path, double: Double) -> (mpsc::Sender<Signal>, tokio::task::JoinHandle<()>) {
    let mut config = sandbox::config(&dir.join("state"));
    config.max_concurrent_runs = 256;
    let now = Clock::System.now();
    let keeper = BundleKeeper::start(&dir.join("bundle"), &config.state, now).expect("the bundle");
    let (redactor, seal) = (Redactor::default(), pretend::seal());
    let context = Context::open_with_double(config, Clock::System, redactor, seal, double);
    let context = context.expect("the context");
    let wake = Wake::watch(&context.config.state).expect("the wake file");
    let (stop, signals) = mpsc::channel(2);
    let service = Service::new(context, keeper, wake, signals, Heartbeat::default());
    (stop, tokio::spawn(async move { service.run().await.expect("the daemon ends well") }))
}
