//! The conversation so far, kept such that every provider accepts it: ids are distinct, arguments are
//! JSON objects, names are well-formed, and each call is followed by exactly one result.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::model::{Answer, CallRequest, Message, ToolResult};
use crate::tools;

/// The messages of an attempt.
#[derive(Debug, Default)]
pub(super) struct History {
    messages: Vec<Arc<Message>>,
    seen_ids: HashSet<String>,
    made_ids: u64,
    /// Messages after the first that a compaction put there: the summary and the plan.
    preface: usize,
    summary: Option<String>,
}

/// The older half of a history, to be replaced by a summary.
#[derive(Debug)]
pub(super) struct Cut {
    /// The messages' places, what an earlier compaction left included.
    pub(super) range: Range<usize>,
    pub(super) dropped: Vec<Arc<Message>>,
    pub(super) previous_summary: Option<String>,
}

impl History {
    pub(super) fn starting_with(prompt: String) -> Self {
        let mut history = History::default();
        history.push_user(prompt);
        history
    }

    pub(super) fn push_user(&mut self, text: String) {
        self.messages.push(Arc::new(Message::User(text)));
    }

    /// Adds an answer without calls.
    pub(super) fn push_words(&mut self, answer: &Answer) {
        if answer.text.is_empty() && answer.reasoning.is_none() {
            // Providers refuse an assistant message without any content.
            return;
        }
        self.push_assistant(answer, Vec::new());
    }

    /// Adds an answer with its calls' results in one step, so that no call is ever without one.
    pub(super) fn push_exchange(
        &mut self,
        answer: &Answer,
        calls: &[CallRequest],
        results: Vec<ToolResult>,
    ) {
        assert_eq!(calls.len(), results.len(), "each call has one result");
        let stored = calls
            .iter()
            .map(|call| CallRequest {
                id: call.id.clone(),
                name: stored_name(&call.name),
                arguments: stored_arguments(&call.arguments),
            })
            .collect();
        self.push_assistant(answer, stored);
        self.messages.push(Arc::new(Message::Tools(results)));
    }

    fn push_assistant(&mut self, answer: &Answer, calls: Vec<CallRequest>) {
        self.messages.push(Arc::new(Message::Assistant {
            text: answer.text.clone(),
            calls,
            reasoning: answer.reasoning.clone(),
        }));
    }

    /// The answer's calls with ids that are distinct within the run.
    pub(super) fn distinct_calls(&mut self, answer: &Answer) -> Vec<CallRequest> {
        answer
            .calls
            .iter()
            .map(|call| CallRequest { id: self.distinct_id(&call.id), ..call.clone() })
            .collect()
    }

    fn distinct_id(&mut self, given: &str) -> String {
        if !given.is_empty() && self.seen_ids.insert(given.to_owned()) {
            return given.to_owned();
        }
        loop {
            self.made_ids += 1;
            let made = format!("call_{}", self.made_ids);
            if self.seen_ids.insert(made.clone()) {
                return made;
            }
        }
    }

    /// The older half by size: whole exchanges from after the first message on. The last exchange
    /// stays, unless it is alone and `even_the_last` is wanted. None when nothing can go.
    pub(super) fn older_half(&self, even_the_last: bool) -> Option<Cut> {
        let start = 1 + self.preface;
        let units = units(self.messages.get(start..)?);
        let sizes: Vec<usize> = units
            .iter()
            .map(|unit| unit.clone().map(|at| size(&self.messages[start + at])).sum())
            .collect();
        let total: usize = sizes.iter().sum();
        let keepable = if even_the_last && units.len() == 1 { 0 } else { 1 };
        let mut gone = 0;
        let mut count = 0;
        while count + keepable < units.len() && gone * 2 < total {
            gone += sizes[count];
            count += 1;
        }
        let end = start + units.get(count.checked_sub(1)?)?.end;
        Some(Cut {
            range: 1..end,
            dropped: self.messages[start..end].to_vec(),
            previous_summary: self.summary.clone(),
        })
    }

    /// Puts a summary, and the plan where something of it is open, in the place of what was cut.
    pub(super) fn replace(&mut self, cut: &Cut, summary: String, plan: Option<String>) {
        self.summary = Some(summary.clone());
        let preface: Vec<_> = std::iter::once(summary)
            .chain(plan)
            .map(|text| Arc::new(Message::User(text)))
            .collect();
        self.preface = preface.len();
        self.messages.splice(cut.range.clone(), preface);
    }

    /// Lets go of what another provider thought: it may not be sent to this one.
    pub(super) fn forget_reasoning(&mut self) {
        for message in &mut self.messages {
            *message = without_reasoning(message);
        }
    }

    /// The messages, with `notice` after them for this request alone.
    pub(super) fn messages_with(&self, notice: Option<String>) -> Vec<Arc<Message>> {
        let mut messages = self.messages.clone();
        messages.extend(notice.map(|text| Arc::new(Message::User(text))));
        messages
    }
}

/// Exchanges: an answer with the results of its calls is one, anything else is one by itself.
fn units(messages: &[Arc<Message>]) -> Vec<Range<usize>> {
    let mut units: Vec<Range<usize>> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        match (&**message, units.last_mut()) {
            (Message::Tools(_), Some(unit)) => unit.end = at + 1,
            _ => units.push(at..at + 1),
        }
    }
    units
}

fn size(message: &Message) -> usize {
    match message {
        Message::User(text) => text.len(),
        Message::Assistant { text, calls, .. } => {
            text.len() + calls.iter().map(|call| call.arguments.len()).sum::<usize>()
        }
        Message::Tools(results) => results.iter().map(|result| result.content.len()).sum(),
    }
}

/// The message without the provider's own reasoning.
pub(super) fn without_reasoning(message: &Arc<Message>) -> Arc<Message> {
    match &**message {
        Message::Assistant { text, calls, reasoning: Some(_) } => Arc::new(Message::Assistant {
            text: text.clone(),
            calls: calls.clone(),
            reasoning: None,
        }),
        _ => message.clone(),
    }
}

/// Arguments as they are stored and sent back: the model's own bytes where they are a JSON object,
/// else an object that holds them as text.
pub(super) fn stored_arguments(text: &str) -> String {
    match tools::parse_arguments(text) {
        Ok(Value::Object(members)) if members.is_empty() => "{}".to_owned(),
        Ok(_) => text.to_owned(),
        Err(_) => json!({"invalid_arguments": text}).to_string(),
    }
}

/// A name that every provider takes back: letters, digits, `_` and `-`, 1 to 64 of them.
pub(super) fn stored_name(name: &str) -> String {
    let plain: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' })
        .take(64)
        .collect();
    if plain.is_empty() { "unnamed".to_owned() } else { plain }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_kept_to_the_byte_or_wrapped_when_they_are_no_object() {
        assert_eq!(stored_arguments("{ \"a\":1 }"), "{ \"a\":1 }");
        assert_eq!(stored_arguments(""), "{}");
        assert_eq!(stored_arguments("null"), "{}");
        assert_eq!(stored_arguments("{\"path\":\"a"), r#"{"invalid_arguments":"{\"path\":\"a"}"#);
        assert_eq!(stored_arguments("[1]"), r#"{"invalid_arguments":"[1]"}"#);
    }

    #[test]
    fn names_are_made_acceptable() {
        assert_eq!(stored_name("bash"), "bash");
        assert_eq!(stored_name("functions.bash x"), "functions_bash_x");
        assert_eq!(stored_name(""), "unnamed");
    }
}
