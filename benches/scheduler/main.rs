//! What the scheduler itself costs, without containers: a simulated week of many tasks, an idle daemon,
//! the lag from a due instant to the start of its run, and the writes that a run waits for.
//!
//! Run as an unprivileged user with rootless Podman: `cargo bench --bench scheduler`, or a part of it:
//! `cargo bench --bench scheduler -- week`, `idle`, `lag` or `syncs`. `docs/speed.md` has figures.

#[path = "../../tests/it/env/mod.rs"]
mod env;

mod bundle;
mod idle;
mod lag;
mod syncs;
mod week;

fn main() {
    let chosen: Vec<String> =
        std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let parts: [(&str, fn()); 4] = [
        ("week", week::measure),
        ("idle", idle::measure),
        ("lag", lag::measure),
        ("syncs", syncs::measure),
    ];
    for (name, measure) in parts {
        if chosen.is_empty() || chosen.iter().any(|chosen| chosen == name) {
            measure();
        }
    }
    if chosen.iter().any(|chosen| chosen == syncs::RUNS_ALONE) {
        syncs::runs_alone();
    }
}

/// A multi-threaded runtime, as the daemon has.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.expect("a runtime").block_on(future)
}

fn line(what: &str, value: f64, unit: &str, bar: &str) {
    println!("{what:<46} {value:>10.2} {unit:<6} {bar}");
}
