//! `/metrics` in the OpenMetrics text format, from counters that the store keeps at write time: no
//! scrape counts runs.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use super::render::PageError;
use super::{BundleView, Served};
use crate::store::{TaskStats, Totals};

const FORMAT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

type Labels = [(&'static str, String); 1];

/// `/metrics`
pub(crate) async fn metrics(State(served): State<Arc<Served>>) -> Result<Response, PageError> {
    let store = &served.context.store;
    let (totals, stats) = (store.totals().await?, store.task_stats().await?);
    let stopped = served.context.alarms.stopping_claims().len();
    let text = text(
        &totals,
        &stats,
        &*served.bundle_with_holds().await?,
        stopped,
        served.context.clock.now(),
    );
    Ok(([(header::CONTENT_TYPE, FORMAT)], text).into_response())
}

fn text(
    totals: &Totals,
    stats: &[TaskStats],
    bundle: &BundleView,
    stopped: usize,
    now: Timestamp,
) -> String {
    let mut registry = Registry::with_prefix("fleet");
    build(&mut registry, bundle);
    runs(&mut registry, totals);
    let help = "Reasons for which nothing new is claimed; 0 when claims go on";
    registry.register("claims_stopped", help, gauge(stopped));
    spending(&mut registry, totals);
    notices(&mut registry, totals);
    tasks(&mut registry, stats, bundle, now);
    let mut text = String::new();
    encode(&mut text, &registry).expect("a string takes every metric");
    text
}

fn build(registry: &mut Registry, bundle: &BundleView) {
    let commit = bundle.commit.as_ref().map(ToString::to_string).unwrap_or_default();
    let info =
        Info::new([("version", env!("CARGO_PKG_VERSION").to_owned()), ("bundle_commit", commit)]);
    registry.register("build", "Version of fleet and commit of the bundle", info);
    let problems = gauge(bundle.problems.len());
    registry.register("bundle_problems", "Problems of the commit checked last", problems);
}

fn runs(registry: &mut Registry, totals: &Totals) {
    let help = "Runs that ended, by outcome class or reason for not running";
    registry.register("runs", help, family("outcome", &totals.runs_by_outcome));
    let help = "Runs that became dead letters, by reason";
    let queued = family("reason", &totals.dead_letters_queued);
    registry.register("dead_letter_queued", help, queued);
    let help = "Dead letters that nobody replayed yet";
    registry.register("dead_letters_open", help, gauge(totals.dead_letters_open));
    let help = "Runs that wait for a slot or for their retry";
    registry.register("runs_pending", help, gauge(totals.pending));
    registry.register("runs_running", "Runs under way", gauge(totals.running));
}

fn notices(registry: &mut Registry, totals: &Totals) {
    let help = "Notices by what became of them";
    registry.register("notices", help, family("result", &totals.notices));
    let help = "Notices that wait to be sent";
    registry.register("notices_waiting", help, gauge(totals.notices_waiting));
    let help = "Notices that could not be sent and were given up";
    registry.register("notices_given_up", help, gauge(totals.notices_given_up));
}

fn spending(registry: &mut Registry, totals: &Totals) {
    let cost = Counter::<f64, AtomicU64>::default();
    cost.inc_by(totals.cost_usd);
    registry.register("cost_usd", "Money spent on models, in US dollars", cost);
    let tokens = Counter::<u64>::default();
    tokens.inc_by(totals.tokens);
    registry.register("tokens", "Tokens that count against ceilings", tokens);
}

fn tasks(registry: &mut Registry, stats: &[TaskStats], bundle: &BundleView, now: Timestamp) {
    let success = Family::<Labels, Gauge>::default();
    for stats in stats {
        if let Some(at) = stats.last_success {
            success.get_or_create(&[("task", stats.task.to_string())]).set(at.as_second());
        }
    }
    let help = "When a run of the task last succeeded, in seconds since 1970";
    registry.register("task_last_success_timestamp_seconds", help, success);
    let held = bundle.tasks.iter().filter(|task| task.paused.is_some()).count();
    registry.register("tasks_held", "Tasks that are paused or parked", gauge(held));
    let next = Family::<Labels, Gauge>::default();
    for task in &bundle.tasks {
        if let Some(due) = task.due_after(now) {
            next.get_or_create(&[("task", task.name.to_string())]).set(due.as_second());
        }
    }
    let help = "When the task is due next, in seconds since 1970";
    registry.register("task_next_due_timestamp_seconds", help, next);
}

fn family(label: &'static str, counts: &[(String, u64)]) -> Family<Labels, Counter> {
    let family = Family::<Labels, Counter>::default();
    for (value, number) in counts {
        family.get_or_create(&[(label, value.clone())]).inc_by(*number);
    }
    family
}

fn gauge(number: impl TryInto<i64>) -> Gauge {
    let gauge = Gauge::default();
    gauge.set(number.try_into().unwrap_or(i64::MAX));
    gauge
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::TaskName;

    #[test]
    fn every_documented_series_is_there() {
        let totals = Totals {
            runs_by_outcome: vec![("success".into(), 7), ("wall_timeout".into(), 2)],
            dead_letters_queued: vec![("non_retryable".into(), 2)],
            dead_letters_open: 1,
            pending: 3,
            running: 4,
            cost_usd: 1.5,
            tokens: 999,
            notices: vec![("given_up".into(), 1), ("sent".into(), 5)],
            notices_waiting: 2,
            notices_given_up: 1,
        };
        let stats = TaskStats {
            task: TaskName::new("report"),
            last: Vec::new(),
            cost_usd: 1.5,
            tokens: 999,
            last_success: Some("2026-12-01T00:00:00Z".parse().expect("a timestamp")),
        };
        let seen = text(&totals, &[stats], &BundleView::default(), 1, Timestamp::UNIX_EPOCH);
        let series: Vec<&str> = seen.lines().filter(|line| !line.starts_with('#')).collect();
        let version = env!("CARGO_PKG_VERSION");
        let info = format!("fleet_build_info{{version=\"{version}\",bundle_commit=\"\"}} 1");
        let mut wanted = vec![
            info.as_str(),
            "fleet_bundle_problems 0",
            "fleet_runs_total{outcome=\"success\"} 7",
            "fleet_runs_total{outcome=\"wall_timeout\"} 2",
            "fleet_dead_letter_queued_total{reason=\"non_retryable\"} 2",
            "fleet_dead_letters_open 1",
            "fleet_runs_pending 3",
            "fleet_runs_running 4",
            "fleet_claims_stopped 1",
            "fleet_tasks_held 0",
            "fleet_cost_usd_total 1.5",
            "fleet_tokens_total 999",
            "fleet_notices_total{result=\"given_up\"} 1",
            "fleet_notices_total{result=\"sent\"} 5",
            "fleet_notices_waiting 2",
            "fleet_notices_given_up 1",
            "fleet_task_last_success_timestamp_seconds{task=\"report\"} 1796083200",
        ];
        let mut seen = series;
        seen.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(seen, wanted);
    }
}
