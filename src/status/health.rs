//! Whether this process does its work: the scheduler ticks, the store takes writes, a bundle is
//! loaded.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::{Served, words};

/// The scheduler re-reads the time at least every 30 s; three missed reads are a fault.
const STALE: SignedDuration = SignedDuration::from_secs(90);
/// How long a write may take before the store counts as stuck.
const WRITE_LIMIT: Duration = Duration::from_secs(5);

/// What `/healthz` and `/readyz` answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Health {
    /// `ok` or `unhealthy`.
    pub status: &'static str,
    /// What is wrong, one line each; empty when nothing is.
    pub reasons: Vec<String>,
    /// The scheduler's last tick.
    pub last_tick: Option<Timestamp>,
    pub bundle_commit: Option<String>,
}

impl Health {
    fn new(reasons: Vec<String>, last_tick: Option<Timestamp>, commit: Option<String>) -> Self {
        let status = if reasons.is_empty() { "ok" } else { "unhealthy" };
        Health { status, reasons, last_tick, bundle_commit: commit }
    }
}

impl IntoResponse for Health {
    fn into_response(self) -> Response {
        let status = match self.status {
            "ok" => StatusCode::OK,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        let body = serde_json::to_string(&self).expect("plain fields are JSON");
        (status, [(header::CONTENT_TYPE, "application/json")], body + "\n").into_response()
    }
}

impl Served {
    /// Why the scheduler is not healthy, one line each.
    pub(crate) fn scheduler_health(&self, now: Timestamp) -> Vec<String> {
        scheduler(self.context.heartbeat.last(), self.context.instance.started_at, now)
    }

    /// Everything that a person should know of, one line each: what pages show.
    pub(crate) fn troubles(&self, now: Timestamp) -> Vec<String> {
        let mut troubles = self.scheduler_health(now);
        troubles.extend(self.context.alarms.all());
        troubles
    }

    /// Why the store is not healthy: a write of nothing must come back in time.
    async fn store_health(&self) -> Option<String> {
        let write = self.context.store.insert_occurrences(Vec::new(), None);
        match tokio::time::timeout(WRITE_LIMIT, write).await {
            Ok(Ok(_)) => None,
            Ok(Err(error)) => Some(format!("the store does not take writes: {error}")),
            Err(_) => {
                let limit = WRITE_LIMIT.as_secs();
                Some(format!("the store did not take a write within {limit} s"))
            }
        }
    }

    async fn health(&self) -> Health {
        let mut reasons = self.scheduler_health(self.context.clock.now());
        reasons.extend(self.store_health().await);
        let commit = self.bundle().commit.as_ref().map(ToString::to_string);
        Health::new(reasons, self.context.heartbeat.last(), commit)
    }
}

fn scheduler(last: Option<Timestamp>, started: Timestamp, now: Timestamp) -> Vec<String> {
    let age = now.duration_since(last.unwrap_or(started));
    if age <= STALE {
        return Vec::new();
    }
    let age = words::relative(-age);
    let reason = match last {
        Some(_) => format!("The scheduler's last tick was {age}: nothing new is started."),
        None => format!("The scheduler has not ticked since the start {age}."),
    };
    vec![reason]
}

/// `/healthz`: whether the process works.
pub(crate) async fn healthz(State(served): State<Arc<Served>>) -> Health {
    served.health().await
}

/// `/readyz`: whether it works, has ticked with a bundle, and starts what is due.
pub(crate) async fn readyz(State(served): State<Arc<Served>>) -> Health {
    let mut health = served.health().await;
    health.reasons.extend(served.context.alarms.stopping_claims());
    if health.bundle_commit.is_none() {
        health.reasons.push("No bundle is loaded.".to_owned());
    }
    if health.last_tick.is_none() {
        health.reasons.push("The scheduler has not ticked yet.".to_owned());
    }
    Health::new(health.reasons, health.last_tick, health.bundle_commit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheduler_that_stopped_ticking_is_told_with_its_age() {
        let start = Timestamp::UNIX_EPOCH;
        let at = |secs| start + SignedDuration::from_secs(secs);
        assert_eq!(scheduler(Some(at(10)), start, at(100)), Vec::<String>::new());
        assert_eq!(
            scheduler(Some(at(10)), start, at(190)),
            ["The scheduler's last tick was 3 min ago: nothing new is started."]
        );
        assert_eq!(scheduler(None, start, at(90)), Vec::<String>::new());
        assert_eq!(
            scheduler(None, start, at(120)),
            ["The scheduler has not ticked since the start 2 min ago."]
        );
    }
}
