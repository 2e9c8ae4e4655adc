//! `remember` and `recall`: what a task's runs keep for later ones. A run works on what was there when it
//! began and on its own words; the store keeps what the session log records.

use std::sync::PoisonError;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::context::{Change, ToolContext, ToolFailure, ToolOutput};
use super::output::{self, Raw};
use crate::run::{MAX_MEMORIES, MAX_MEMORY_BYTES, MAX_MEMORY_KEY_BYTES};

/// The arguments of `remember`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RememberArguments {
    key: String,
    value: String,
}

/// The arguments of `recall`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecallArguments {
    key: Option<String>,
}

/// The facts, the one written longest ago first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memories(Vec<(String, String)>);

impl Memories {
    /// Facts in the order in which they were written.
    pub fn new(facts: impl IntoIterator<Item = (String, String)>) -> Self {
        Memories(facts.into_iter().collect())
    }

    /// Writes a fact; gives the key that goes for it, if one does.
    fn write(&mut self, key: &str, value: &str) -> Option<String> {
        self.0.retain(|(known, _)| known != key);
        let evicted = (self.0.len() >= MAX_MEMORIES).then(|| self.0.remove(0).0);
        self.0.push((key.to_owned(), value.to_owned()));
        evicted
    }

    fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }
}

/// Writes a fact.
pub(super) fn remember(arguments: &RememberArguments, context: &ToolContext<'_>) -> ToolOutput {
    let key = arguments.key.trim();
    if key.is_empty() || key.len() > MAX_MEMORY_KEY_BYTES || key.contains(char::is_control) {
        return ToolOutput::error(format!(
            "not executed: a key has 1 to {MAX_MEMORY_KEY_BYTES} bytes and no control characters"
        ));
    }
    let bytes = arguments.value.len();
    if bytes > MAX_MEMORY_BYTES {
        return ToolOutput::error(format!(
            "not executed: the value has {bytes} bytes, more than {MAX_MEMORY_BYTES}; shorten it"
        ));
    }
    let mut memories = context.memories.lock().unwrap_or_else(PoisonError::into_inner);
    let evicted = memories.write(key, &arguments.value);
    let text = match &evicted {
        Some(gone) => {
            format!("remembered; {gone:?} was forgotten for it, as the oldest of {MAX_MEMORIES}")
        }
        None => "remembered".to_owned(),
    };
    let change = Change::Memory { key: key.to_owned(), value: arguments.value.clone(), evicted };
    ToolOutput { change, ..ToolOutput::text(text) }
}

/// Reads one fact, or all.
pub(super) async fn recall(
    arguments: &RecallArguments,
    context: &ToolContext<'_>,
) -> Result<ToolOutput, ToolFailure> {
    let text = {
        let memories = context.memories.lock().unwrap_or_else(PoisonError::into_inner);
        match &arguments.key {
            Some(key) => match memories.get(key.trim()) {
                Some(value) => value.to_owned(),
                None => return Ok(ToolOutput::error(format!("nothing is remembered as {key:?}"))),
            },
            None => {
                let all: Map<String, Value> = memories
                    .0
                    .iter()
                    .map(|(key, value)| (key.clone(), Value::from(value.as_str())))
                    .collect();
                Value::Object(all).to_string()
            }
        }
    };
    let raw = Raw { bytes: text.as_bytes(), dropped_bytes: 0, spill_path: None };
    let shown = output::show(raw, "", context).await?;
    // There is no line about its end.
    Ok(ToolOutput::text(shown.strip_suffix('\n').unwrap_or(&shown)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fact_that_was_written_longest_ago_goes_for_a_new_one() {
        let mut memories =
            Memories::new((0..MAX_MEMORIES).map(|n| (format!("k{n}"), "v".to_owned())));
        assert_eq!(memories.write("k0", "again"), None);
        assert_eq!(memories.write("new", "v").as_deref(), Some("k1"));
        assert_eq!((memories.get("k0"), memories.get("k1")), (Some("again"), None));
        assert_eq!(memories.0.len(), MAX_MEMORIES);
    }
}
