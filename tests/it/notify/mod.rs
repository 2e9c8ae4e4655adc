//! One notice to one channel: real HTTP, SMTP and processes on this host.

mod cli;
mod command;
mod mail;
mod webhook;

use fleet::bundle::{Channel, ChannelKind};
use fleet::notify::{Purpose, SendError, send};
use fleet::run::{Notice, NoticeEvent, RunId, RunState, TaskName};
use fleet::secrets::Redactor;

/// A variable that every test process has; its value serves as a key.
const VARIABLE: &str = "NEXTEST_RUN_ID";

fn key() -> String {
    std::env::var(VARIABLE).expect("run under cargo-nextest")
}

fn notice() -> Notice {
    let at = "2026-07-01T04:00:00Z".parse().expect("an instant");
    Notice {
        idempotency_key: "r1.1.failure.ops".into(),
        channel: "ops".into(),
        event: NoticeEvent::Failure,
        task: TaskName::new("report"),
        run_id: RunId::new("r1"),
        due: at,
        at,
        state: RunState::DeadLettered,
        outcome: Some("cost_ceiling".into()),
        reason: "spent $5 of $5".into(),
        attempts: 1,
        failures_in_a_row: 2,
    }
}

async fn send_to(kind: ChannelKind, redactor: &Redactor) -> Result<String, SendError> {
    let channel =
        Channel { name: "ops".into(), kind, on: vec![NoticeEvent::Failure], after_failures: 3 };
    let now = "2026-07-01T04:00:10Z".parse().expect("an instant");
    send(&channel, &notice(), Purpose::Report, now, redactor).await
}
