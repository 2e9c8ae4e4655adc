//! What a notice says: a subject, a text for people, JSON for programs.

use serde::Serialize;

use super::Purpose;
use crate::run::{Notice, NoticeEvent};

/// The JSON that webhooks and commands get. More fields may follow.
#[derive(Serialize)]
struct Body<'n> {
    version: u32,
    test: bool,
    subject: &'n str,
    #[serde(flatten)]
    notice: &'n Notice,
}

/// A notice in its written forms, the same at each repetition.
pub(super) struct Message<'n> {
    pub(super) notice: &'n Notice,
    /// One line.
    pub(super) subject: String,
    /// One line of JSON.
    pub(super) json: String,
}

impl<'n> Message<'n> {
    pub(super) fn new(notice: &'n Notice, purpose: Purpose) -> Self {
        let subject = subject(notice, purpose);
        let body = Body { version: 1, test: purpose == Purpose::Test, subject: &subject, notice };
        let json = serde_json::to_string(&body).expect("a notice is plain data");
        Message { notice, subject, json }
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let Notice { task, run_id, due, at, state, outcome, reason, attempts, .. } = self.notice;
        let mut lines = vec![
            self.subject.clone(),
            String::new(),
            format!("task: {task}"),
            format!("run: {run_id}"),
            format!("due: {due}"),
            format!("at: {at}"),
            format!("state: {}", state.as_str()),
        ];
        lines.extend(outcome.iter().map(|outcome| format!("outcome: {outcome}")));
        lines.push(format!("attempts: {attempts}"));
        lines.push(format!("failures in a row: {}", self.notice.failures_in_a_row));
        if !reason.is_empty() {
            lines.push(format!("reason: {reason}"));
        }
        lines.push(String::new());
        lines.push(format!("fleet runs show {run_id} has the whole run"));
        lines.join("\n")
    }
}

fn subject(notice: &Notice, purpose: Purpose) -> String {
    let task = &notice.task;
    let times = match notice.failures_in_a_row {
        1 => "1 failure".to_owned(),
        number => format!("{number} failures"),
    };
    let what = match (purpose, notice.event) {
        (Purpose::Test, _) => "this is a test".to_owned(),
        (_, NoticeEvent::Failure) => format!("task {task} failed"),
        (_, NoticeEvent::RepeatedFailure) => format!("task {task}: {times} in a row"),
        (_, NoticeEvent::Recovery) => format!("task {task} succeeds again, after {times}"),
        (_, NoticeEvent::Parked) => format!("task {task} is parked, after {times}"),
        (_, NoticeEvent::Approval) => format!("task {task} waits for an approval"),
        (_, NoticeEvent::SlaWarning) => format!("task {task} takes longer than expected"),
        (_, NoticeEvent::SlaOverdue) => format!("task {task} is overdue"),
    };
    format!("fleet: {what}")
}
