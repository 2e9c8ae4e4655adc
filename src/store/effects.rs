//! What earlier attempts of a run did outside their worktrees, from its session log.

use std::collections::HashMap;

use rusqlite::Connection;

use super::OutsideEffect;
use crate::run::{AttemptNo, Event, EventKind, RunId};

/// The effects of every attempt, in order of their beginning. A call that began and has no result may
/// have happened: it is listed without one.
pub(super) fn of_run(connection: &Connection, run: &RunId) -> rusqlite::Result<Vec<OutsideEffect>> {
    let mut found = Effects::default();
    let mut query = connection.prepare_cached(
        "SELECT body FROM events WHERE run_id = ?1
            AND json_extract(body, '$.type') IN ('model_answered', 'tool_started', 'tool_finished')
         ORDER BY seq",
    )?;
    let mut rows = query.query([run.as_str()])?;
    while let Some(row) = rows.next()? {
        found.take(super::columns::get_json(row, "body")?);
    }
    Ok(found.effects)
}

/// Ids of calls are told apart within an attempt, not across attempts.
type CallKey = (AttemptNo, String);

#[derive(Default)]
struct Effects {
    effects: Vec<OutsideEffect>,
    arguments: HashMap<CallKey, String>,
    /// Where the calls that have no result yet are in `effects`.
    open: HashMap<CallKey, usize>,
}

impl Effects {
    fn take(&mut self, Event { attempt, kind, .. }: Event) {
        match kind {
            EventKind::ModelAnswered { tool_calls, .. } => {
                let calls = tool_calls.into_iter();
                self.arguments.extend(calls.map(|call| ((attempt, call.call_id), call.arguments)));
            }
            EventKind::ToolStarted { call_id, tool, effects: true } => {
                self.begin((attempt, call_id), tool);
            }
            EventKind::ToolFinished { call_id, tool, output, effects: true, .. } => {
                let key = (attempt, call_id);
                // Older logs do not say of a beginning that it has effects.
                let at = self.open.remove(&key).unwrap_or_else(|| {
                    self.begin(key.clone(), tool);
                    self.open.remove(&key).expect("it has just begun")
                });
                self.effects[at].result = Some(output);
            }
            _ => {}
        }
    }

    fn begin(&mut self, key: CallKey, tool: String) {
        let arguments = self.arguments.remove(&key).unwrap_or_default();
        self.open.insert(key, self.effects.len());
        self.effects.push(OutsideEffect { tool, arguments, result: None });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::LoggedCall;

    fn event(attempt: AttemptNo, kind: EventKind) -> Event {
        Event { at: jiff::Timestamp::UNIX_EPOCH, attempt, kind }
    }

    fn answered(attempt: AttemptNo, arguments: &str) -> Event {
        let call = LoggedCall {
            call_id: "1".to_owned(),
            tool: "post".to_owned(),
            arguments: arguments.to_owned(),
        };
        let kind = EventKind::ModelAnswered {
            model: "m".to_owned(),
            round: 1,
            text: String::new(),
            tool_calls: vec![call],
            stop: "tool_calls".to_owned(),
            usage: crate::run::Usage::default(),
            duration_ms: 1,
        };
        event(attempt, kind)
    }

    fn started(attempt: AttemptNo) -> Event {
        let (call_id, tool) = ("1".to_owned(), "post".to_owned());
        event(attempt, EventKind::ToolStarted { call_id, tool, effects: true })
    }

    fn finished(attempt: AttemptNo) -> Event {
        let kind = EventKind::ToolFinished {
            call_id: "1".to_owned(),
            tool: "post".to_owned(),
            is_error: false,
            output: "done".to_owned(),
            exit_code: None,
            duration_ms: 1,
            effects: true,
        };
        event(attempt, kind)
    }

    fn effects(events: Vec<Event>) -> Vec<(String, Option<String>)> {
        let mut found = Effects::default();
        events.into_iter().for_each(|event| found.take(event));
        found.effects.into_iter().map(|effect| (effect.arguments, effect.result)).collect()
    }

    #[test]
    fn a_call_that_began_and_has_no_result_may_have_happened() {
        let events = vec![answered(1, "a"), started(1), answered(2, "b"), started(2), finished(2)];
        let expected = [("a".to_owned(), None), ("b".to_owned(), Some("done".to_owned()))];
        assert_eq!(effects(events), expected);
    }

    #[test]
    fn a_result_alone_tells_of_an_effect_too() {
        let expected = [("a".to_owned(), Some("done".to_owned()))];
        assert_eq!(effects(vec![answered(1, "a"), finished(1)]), expected);
    }
}
