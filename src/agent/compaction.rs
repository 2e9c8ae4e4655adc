//! Makes room in the history: its older half becomes a structured summary that a later compaction goes
//! on from. The task's prompt and the newer half stay to the letter, and no exchange is ever split.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use crate::model::{Message, ModelErrorClass, Request};
use crate::run::{EventKind, Outcome};
use crate::tools::PlanItem;

use super::attempt::Attempt;
use super::history::Cut;
use super::{ledger, pressure};

/// What the summary begins with: by this a person and the next compaction know it.
const SUMMARY_MARK: &str = "[context compaction summary]";
/// What the plan begins with when it is told again.
const PLAN_MARK: &str = "[plan state after compaction]";
/// The most that a summary may have.
const MAX_SUMMARY_BYTES: usize = 16 * 1024;
/// The most tokens that the summarizer may answer with.
const SUMMARY_TOKENS: u64 = 4096;
/// How much of one message the summarizer reads.
const MAX_MESSAGE_BYTES: usize = 2000;
/// The most that the plan may take when it is told again.
const MAX_PLAN_BYTES: usize = 4096;
/// Refusals in a row that end the attempt.
const MAX_OVERFLOWS: u32 = 3;

/// What the summarizer is told.
const SUMMARIZER: &str = include_str!("../../templates/prompts/summarizer.md");

/// Why room is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    Pressure,
    Overflow,
}

impl Why {
    fn as_str(self) -> &'static str {
        match self {
            Why::Pressure => "pressure",
            Why::Overflow => "overflow",
        }
    }
}

impl Attempt {
    /// Before a request: warns of a window that fills up, or makes room where the task allows it.
    pub(super) async fn relieve_pressure(&mut self) -> Result<(), Outcome> {
        let estimate = ledger::prompt_tokens(&self.request(None));
        let tokens = self.pressure.tokens(estimate);
        let window = self.pressure.window(self.model.window_tokens);
        let share = pressure::share(tokens, window);
        let policy = self.context_policy;
        if policy.auto_compact
            && share >= policy.compact_fraction
            && self.compact(Why::Pressure, tokens).await?
        {
            return Ok(());
        }
        if share >= policy.warn_fraction && !std::mem::replace(&mut self.pressure.warned, true) {
            self.record(EventKind::ContextPressure { tokens, window }).await?;
        }
        Ok(())
    }

    /// After a refusal because the prompt is too long. False: nothing more can be done.
    pub(super) async fn recover_from_overflow(&mut self) -> Result<bool, Outcome> {
        if self.pressure.overflows >= MAX_OVERFLOWS {
            return Ok(false);
        }
        let estimate = ledger::prompt_tokens(&self.request(None));
        let tokens = self.pressure.tokens(estimate);
        self.compact(Why::Overflow, tokens).await
    }

    /// Cuts the older half. False when there is nothing to cut.
    async fn compact(&mut self, why: Why, tokens: u64) -> Result<bool, Outcome> {
        let Some(cut) = self.history.older_half(why == Why::Overflow) else { return Ok(false) };
        let summary = self.summarize(&cut).await?;
        let summarized = summary.is_some();
        let summary = summary.unwrap_or_else(|| placeholder(&cut));
        let plan = {
            let plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
            plan_text(&plan.open_items().cloned().collect::<Vec<_>>())
        };
        let dropped_messages = u32::try_from(cut.dropped.len()).unwrap_or(u32::MAX);
        self.history.replace(&cut, format!("{SUMMARY_MARK}\n{summary}"), plan);
        self.pressure.compacted();
        self.record(EventKind::ContextCompacted {
            reason: why.as_str().to_owned(),
            dropped_messages,
            tokens_before: tokens,
            summarized,
        })
        .await?;
        Ok(true)
    }

    /// Asks the model for the summary. None: there is no budget for it, or it failed.
    async fn summarize(&mut self, cut: &Cut) -> Result<Option<String>, Outcome> {
        if self.ledger.check_room().is_err() {
            return Ok(None);
        }
        let window = self.pressure.window(self.model.window_tokens);
        let request = Request {
            model: self.model.name.clone(),
            system: SUMMARIZER.into(),
            messages: vec![Arc::new(Message::User(transcript(cut, window)))],
            tools: Arc::new([]),
            temperature: self.model.temperature,
            max_output_tokens: Some(SUMMARY_TOKENS),
        };
        match self.ask_aside("summarizer", &request).await? {
            Ok(answer) => {
                let text = answer.text.trim();
                let text = text.strip_prefix(SUMMARY_MARK).unwrap_or(text).trim();
                Ok((!text.is_empty()).then(|| head(text, MAX_SUMMARY_BYTES).to_owned()))
            }
            Err(error) if error.class == ModelErrorClass::Cancelled => Ok(None),
            Err(error) => {
                let message = format!("the conversation could not be summarized: {error}");
                self.record(EventKind::Warned { message }).await?;
                Ok(None)
            }
        }
    }
}

/// What stands for a summary that there is none of: deterministic, and true.
fn placeholder(cut: &Cut) -> String {
    let mut calls: BTreeMap<&str, u32> = BTreeMap::new();
    for message in &cut.dropped {
        if let Message::Assistant { calls: made, .. } = &**message {
            made.iter().for_each(|call| *calls.entry(&call.name).or_default() += 1);
        }
    }
    let calls: Vec<String> = calls.iter().map(|(name, n)| format!("{name} ({n})")).collect();
    let calls = if calls.is_empty() {
        String::new()
    } else {
        format!(" They held calls of {}.", calls.join(", "))
    };
    let before = cut.previous_summary.as_deref().map(|text| format!("\n\nBefore that:\n{text}"));
    format!(
        "{} earlier messages were taken out to make room, without a summary.{calls} The files of the \
         workspace are as that work left them: look before you go on.{}",
        cut.dropped.len(),
        before.unwrap_or_default()
    )
}

/// The plan that the run is held to, when something of it is open.
fn plan_text(open: &[PlanItem]) -> Option<String> {
    if open.is_empty() {
        return None;
    }
    let items: Vec<String> = open
        .iter()
        .map(|item| format!("- {} ({}): {}", item.id, item.status.as_str(), item.title))
        .collect();
    let items = items.join("\n");
    Some(format!("{PLAN_MARK}\n{}", head(&items, MAX_PLAN_BYTES)))
}

/// The dropped messages as text, the newest to the letter's bound, within half of the window.
fn transcript(cut: &Cut, window: u64) -> String {
    let most = usize::try_from(window).unwrap_or(usize::MAX).saturating_mul(2);
    let mut parts = Vec::new();
    let mut bytes = 0;
    for message in cut.dropped.iter().rev() {
        let part = told(message);
        bytes += part.len();
        if bytes > most {
            parts.push("(what came before is left out)".to_owned());
            break;
        }
        parts.push(part);
    }
    parts.reverse();
    let messages = parts.join("\n");
    match &cut.previous_summary {
        Some(summary) => format!(
            "Update this summary. It is the baseline: keep what the newer messages do not supersede, \
             move what was in progress on, keep paths and error texts as they are.\n\n{summary}\n\n\
             The newer messages:\n\n{messages}"
        ),
        None => format!("The messages:\n\n{messages}"),
    }
}

fn told(message: &Message) -> String {
    match message {
        Message::User(text) => format!("USER: {}", head(text, MAX_MESSAGE_BYTES)),
        Message::Assistant { text, calls, .. } => {
            let mut lines = vec![format!("ASSISTANT: {}", head(text, MAX_MESSAGE_BYTES))];
            lines.extend(calls.iter().map(|call| {
                format!("CALL {} {}", call.name, head(&call.arguments, MAX_MESSAGE_BYTES))
            }));
            lines.join("\n")
        }
        Message::Tools(results) => {
            let results = results.iter().map(|result| {
                let how = if result.is_error { "ERROR" } else { "RESULT" };
                format!("{how} {}: {}", result.name, head(&result.content, MAX_MESSAGE_BYTES))
            });
            results.collect::<Vec<_>>().join("\n")
        }
    }
}

/// The first bytes of a text, at a character's boundary.
fn head(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{CallRequest, ToolResult};

    fn cut() -> Cut {
        let call = |id: &str, name: &str| CallRequest {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: "{}".to_owned(),
        };
        let result = ToolResult {
            call_id: "a".to_owned(),
            name: "bash".to_owned(),
            content: "é".repeat(MAX_MESSAGE_BYTES),
            is_error: true,
        };
        Cut {
            range: 1..3,
            dropped: vec![
                Arc::new(Message::Assistant {
                    text: "look".to_owned(),
                    calls: vec![call("a", "bash"), call("b", "view_file"), call("c", "bash")],
                    reasoning: None,
                }),
                Arc::new(Message::Tools(vec![result])),
            ],
            previous_summary: Some("Goal: it".to_owned()),
        }
    }

    #[test]
    fn the_placeholder_tells_what_is_gone_and_keeps_the_summary_of_before() {
        assert_eq!(
            placeholder(&cut()),
            "2 earlier messages were taken out to make room, without a summary. They held calls of \
             bash (2), view_file (1). The files of the workspace are as that work left them: look \
             before you go on.\n\nBefore that:\nGoal: it"
        );
    }

    #[test]
    fn the_summarizer_reads_the_last_summary_and_bounded_messages() {
        let text = transcript(&cut(), 10_000);
        assert!(text.starts_with("Update this summary."), "{text}");
        assert!(text.contains("Goal: it") && text.contains("CALL view_file {}"), "{text}");
        assert!(text.len() < MAX_MESSAGE_BYTES + 600, "{} bytes", text.len());
        let small = transcript(&cut(), 100);
        assert!(small.contains("(what came before is left out)"), "{small}");
    }
}
