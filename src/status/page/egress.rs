//! Connections out of the sandbox, as notes of a timeline.

use crate::run::EventKind;
use crate::status::words;

/// Tone, title and text of an egress event.
pub(super) fn note(kind: &EventKind) -> (&'static str, &'static str, String) {
    let because =
        |reason: &Option<String>| reason.as_ref().map_or(String::new(), |why| format!(": {why}"));
    match kind {
        EventKind::EgressJudged { via, target, allowed: true, .. } => {
            ("plain", "Network allowed", format!("{target} ({via})"))
        }
        EventKind::EgressJudged { via, target, reason, .. } => {
            ("warning", "Network denied", format!("{target} ({via}){}", because(reason)))
        }
        EventKind::EgressEnded {
            target, sent_bytes, received_bytes, duration_ms, reason, ..
        } => {
            let (sent, received) = (words::bytes(*sent_bytes), words::bytes(*received_bytes));
            let took = words::duration(*duration_ms);
            let text = format!("{target}: {sent} out, {received} in, {took}{}", because(reason));
            ("plain", "Network ended", text)
        }
        EventKind::EgressSummed { allowed, denied, sent_bytes, received_bytes } => {
            let (sent, received) = (words::bytes(*sent_bytes), words::bytes(*received_bytes));
            let text =
                format!("{allowed} more allowed, {denied} denied, {sent} out, {received} in");
            ("warning", "Network", text)
        }
        _ => ("plain", "Network", String::new()),
    }
}
