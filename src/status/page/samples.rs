//! Rows for the tests of the page models.

use jiff::Timestamp;

use super::frame::{Frame, FrameFacts, Section};
use crate::bundle::{Problem, Severity};
use crate::run::{
    CommitId, Event, EventKind, LoggedCall, NanoUsd, Outcome, OutcomeClass, RunId, RunState,
    TaskName, Usage,
};
use crate::status::{BundleView, Instance, TaskView};
use crate::store::{EventRow, RunRow};

pub(crate) fn at(text: &str) -> Timestamp {
    text.parse().expect("a timestamp")
}

pub(crate) fn now() -> Timestamp {
    at("2026-12-01T02:00:00Z")
}

pub(crate) fn bundle() -> BundleView {
    let task = |name: &str, enabled| TaskView {
        name: TaskName::new(name),
        description: Some("Writes the morning report".into()),
        enabled,
        schedule: None,
        timezone: "Europe/Berlin".into(),
        left: None,
        count: None,
        next_due: Some(at("2026-12-01T06:00:00Z")),
        tags: vec!["daily".into()],
        paused: None,
    };
    BundleView {
        name: "demo".into(),
        commit: Some(CommitId::new("1f6e2d3c4b5a69788796a5b4c3d2e1f001234567")),
        loaded_at: Some(now()),
        tasks: vec![task("report", true), task("sweep", false)],
        problems: Vec::new(),
        problems_commit: None,
    }
}

pub(crate) fn problem(severity: Severity) -> Problem {
    Problem {
        file: "tasks/report.yaml".into(),
        line: 14,
        column: 11,
        end_line: 14,
        end_column: 23,
        code: "bad-schedule",
        severity,
        message: "schedule \"0 25 * * *\": hour 25 is out of range".into(),
        hint: Some("hours are 0 to 23".into()),
    }
}

pub(crate) fn instance() -> Instance {
    Instance::new(at("2026-12-01T00:00:00Z"), "enforced".to_owned(), None)
}

pub(crate) fn frame() -> Frame {
    let (bundle, instance) = (bundle(), instance());
    let facts = FrameFacts {
        bundle: &bundle,
        instance: &instance,
        dead_letters_open: 0,
        unhealthy: &[],
        now: now(),
    };
    Frame::new("Test", Section::Overview, &facts)
}

pub(crate) fn finished_run(id: &str) -> RunRow {
    RunRow {
        run_id: RunId::new(id),
        task: TaskName::new("report"),
        due: at("2026-11-30T06:00:00Z"),
        state: RunState::Success,
        outcome: Some("success".into()),
        reason: None,
        attempts: 1,
        cost_usd: 0.03,
        tokens: 3000,
        started_at: Some(at("2026-11-30T06:00:01Z")),
        finished_at: Some(at("2026-11-30T06:01:06Z")),
        branch: Some("fleet/task-report-a".into()),
        commit: Some("a".repeat(40)),
        bundle_commit: Some("b".repeat(40)),
        trigger: "schedule".into(),
        limits: Some("enforced".into()),
        retry_at: None,
    }
}

pub(crate) fn failed_run(id: &str) -> RunRow {
    RunRow {
        due: at("2026-12-01T06:00:00Z"),
        state: RunState::DeadLettered,
        outcome: Some("wall_timeout".into()),
        reason: Some("wall time of 30 min is over".into()),
        ..finished_run(id)
    }
}

/// An event a second after the one before it; the place in the log is told by [`row`]'s caller.
fn event(kind: EventKind) -> Event {
    Event { at: now(), attempt: 1, kind }
}

pub(crate) fn row(event: Event) -> EventRow {
    EventRow { seq: 1, event }
}

pub(crate) fn answered(round: u32, calls: &[(&str, &str, &str)]) -> Event {
    let call = |(id, tool, arguments): &(&str, &str, &str)| LoggedCall {
        call_id: (*id).into(),
        tool: (*tool).into(),
        arguments: (*arguments).into(),
    };
    event(EventKind::ModelAnswered {
        model: "scripted/demo".into(),
        round,
        text: format!("answer {round} <script>alert(1)</script>"),
        tool_calls: calls.iter().map(call).collect(),
        stop: "tool_calls".into(),
        usage: Usage {
            input_tokens: 900,
            output_tokens: 100,
            cost_nano_usd: NanoUsd(10_000_000),
            ..Usage::default()
        },
        duration_ms: 1200,
    })
}

pub(crate) fn tool_finished(id: &str, output: &str) -> Event {
    finished(id, output, Some(0))
}

fn finished(id: &str, output: &str, exit_code: Option<i32>) -> Event {
    event(EventKind::ToolFinished {
        call_id: id.into(),
        tool: "bash".into(),
        is_error: exit_code.is_some_and(|code| code != 0),
        output: output.into(),
        exit_code,
        duration_ms: 12,
        effects: false,
    })
}

fn requested(round: u32) -> Event {
    event(EventKind::ModelRequested {
        model: "scripted/demo".into(),
        round,
        messages: round,
        estimated_tokens: 900,
        estimated_cost: Default::default(),
    })
}

fn started(id: &str) -> Event {
    event(EventKind::ToolStarted { call_id: id.into(), tool: "bash".into(), effects: false })
}

/// The events of one finished attempt of three rounds.
pub(crate) fn events() -> Vec<EventRow> {
    let kinds = vec![
        event(EventKind::AttemptStarted { bundle_commit: "b".repeat(40), holder_pid: 7 }),
        event(EventKind::WorktreeReady {
            path: "w".into(),
            branch: Some("fleet/task-report-a".into()),
            base_commit: "c".repeat(40),
            duration_ms: 6,
        }),
        event(EventKind::SandboxReady {
            container: "d".repeat(64),
            image_id: "e".repeat(64),
            runtime: "runc".into(),
            limits: "best_effort".into(),
            duration_ms: 120,
        }),
        requested(1),
        answered(
            1,
            &[("c1", "bash", r#"{"command":"ls -la"}"#), ("c2", "bash", r#"{"command":"exit 3"}"#)],
        ),
        started("c1"),
        tool_finished("c1", "total 0\n<script>alert(2)</script>"),
        started("c2"),
        finished("c2", "", Some(3)),
        requested(2),
        answered(2, &[("c1", "view_file", r#"{"path":"report.md"}"#)]),
        started("c1"),
        finished("c1", "text", None),
        requested(3),
        answered(3, &[]),
        event(EventKind::GateChecked {
            gate: "artifacts".into(),
            passed: true,
            message: String::new(),
        }),
        event(EventKind::AttemptFinished {
            outcome: Outcome { class: OutcomeClass::Success, reason: String::new() },
            usage: Usage::default(),
            retry_at: None,
        }),
    ];
    (1..).zip(kinds).map(|(seq, event)| EventRow { seq, event }).collect()
}
