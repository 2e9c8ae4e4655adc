//! What earlier attempts of a run did outside their worktrees, from its session log.

use std::collections::HashMap;

use rusqlite::Connection;

use super::OutsideEffect;
use crate::run::{Event, EventKind, RunId};

/// The effects of every attempt, in order.
pub(super) fn of_run(connection: &Connection, run: &RunId) -> rusqlite::Result<Vec<OutsideEffect>> {
    let mut arguments: HashMap<String, String> = HashMap::new();
    let mut effects = Vec::new();
    let mut query = connection.prepare_cached(
        "SELECT body FROM events WHERE run_id = ?1
            AND json_extract(body, '$.type') IN ('model_answered', 'tool_finished')
         ORDER BY seq",
    )?;
    let mut rows = query.query([run.as_str()])?;
    while let Some(row) = rows.next()? {
        let event: Event = super::columns::get_json(row, "body")?;
        match event.kind {
            EventKind::ModelAnswered { tool_calls, .. } => {
                arguments.extend(tool_calls.into_iter().map(|call| (call.call_id, call.arguments)));
            }
            EventKind::ToolFinished { call_id, tool, output, effects: true, .. } => {
                let arguments = arguments.remove(&call_id).unwrap_or_default();
                effects.push(OutsideEffect { tool, arguments, result: output });
            }
            _ => {}
        }
    }
    Ok(effects)
}
