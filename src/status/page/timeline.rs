//! The timeline of a run: its events grouped into attempts, rounds and tool calls. Output is cut, so
//! that a page stays bounded whatever a run printed.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use super::egress;
use crate::run::{Event, EventKind, LoggedCall, NanoUsd, Usage};
use crate::status::words::{self, Cut, Words};
use crate::store::EventRow;

/// The most bytes shown of one tool's output, arguments or of one answer.
const MOST_SHOWN: usize = 12 * 1024;

/// One attempt in order.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct AttemptLog {
    pub number: u32,
    pub items: Vec<Item>,
    /// Rounds before the first one that is shown.
    pub hidden: usize,
}

/// One line of the timeline.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Item {
    Round(Box<Round>),
    Note(Note),
}

/// Something that happened besides a round.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Note {
    /// Since the attempt began.
    pub offset: String,
    /// `plain`, `ok`, `bad` or `warning`.
    pub tone: &'static str,
    pub title: String,
    pub text: String,
}

/// A model's answer with the calls that it made.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Round {
    pub number: u32,
    pub offset: String,
    pub model: String,
    /// The answer has not come yet.
    pub waiting: bool,
    pub took: String,
    pub stop: String,
    pub tokens_in: String,
    pub tokens_cached: String,
    pub tokens_out: String,
    pub cost: String,
    /// What the run had spent once this answer was there.
    pub spent: String,
    pub estimated: bool,
    pub text: Cut,
    pub calls: Vec<Call>,
}

/// One tool call and its one result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Call {
    /// Distinct in the page: keeps an opened call open when the page refreshes.
    pub key: String,
    pub tool: String,
    pub preview: String,
    pub arguments: Cut,
    /// `asked`, `running`, `ok` or `error`.
    pub state: &'static str,
    pub exit_code: Option<i32>,
    pub took: Option<String>,
    pub effects: bool,
    pub output: Option<Cut>,
    #[serde(skip)]
    id: String,
}

/// Groups events into attempts, and shows at most `rounds` of the last rounds of each.
pub(crate) fn timeline(events: &[EventRow], words: &Words, rounds: usize) -> Vec<AttemptLog> {
    let mut logs: BTreeMap<u32, Building> = BTreeMap::new();
    let mut spent = NanoUsd::default();
    for row in events {
        let log = logs
            .entry(row.event.attempt)
            .or_insert_with(|| Building::new(row.event.attempt, row.event.at));
        log.add(&row.event, &mut spent, words);
    }
    logs.into_values().map(|building| building.finish(rounds)).collect()
}

struct Building {
    began: Timestamp,
    log: AttemptLog,
}

impl Building {
    fn new(number: u32, began: Timestamp) -> Self {
        Building { began, log: AttemptLog { number, items: Vec::new(), hidden: 0 } }
    }

    fn offset(&self, at: Timestamp) -> String {
        format!("+{}", words::duration(words::millis_between(self.began, at)))
    }

    fn note(&mut self, at: Timestamp, tone: &'static str, title: &str, text: String) {
        let note = Note { offset: self.offset(at), tone, title: title.to_owned(), text };
        self.log.items.push(Item::Note(note));
    }

    fn add(&mut self, event: &Event, spent: &mut NanoUsd, words: &Words) {
        match &event.kind {
            EventKind::ModelRequested { model, round, .. } => self.ask(event.at, model, *round),
            EventKind::ModelAnswered {
                model,
                round,
                text,
                tool_calls,
                stop,
                usage,
                duration_ms,
            } => {
                *spent += usage.cost_nano_usd;
                let took = words::duration(*duration_ms);
                let mut answered = self.round(event.at, model, *round);
                (answered.stop, answered.took) = (stop.clone(), took);
                answered.count(usage, *spent);
                answered.text = words::cut(text, MOST_SHOWN);
                let key = format!("{}-{}", event.attempt, round);
                answered.calls = calls(tool_calls, &key);
                self.log.items.push(Item::Round(Box::new(answered)));
            }
            EventKind::ToolStarted { call_id, .. } => {
                if let Some(call) = self.call(call_id, "asked") {
                    call.state = "running";
                }
            }
            EventKind::ToolFinished {
                call_id,
                is_error,
                output,
                exit_code,
                duration_ms,
                effects,
                ..
            } => {
                if let Some(call) = self.unfinished(call_id) {
                    call.state = if *is_error { "error" } else { "ok" };
                    call.exit_code = *exit_code;
                    call.took = Some(words::duration(*duration_ms));
                    call.effects = *effects;
                    call.output = Some(words::cut(output, MOST_SHOWN));
                }
            }
            other => {
                if let EventKind::AuxAnswered { usage, .. } = other {
                    *spent += usage.cost_nano_usd;
                }
                if let Some((tone, title, text)) = note_of(other, words) {
                    self.note(event.at, tone, title, text);
                }
            }
        }
    }

    fn ask(&mut self, at: Timestamp, model: &str, round: u32) {
        let mut waiting = self.round(at, model, round);
        waiting.waiting = true;
        self.log.items.push(Item::Round(Box::new(waiting)));
    }

    /// An empty round; takes the place of the same round that was waiting.
    fn round(&mut self, at: Timestamp, model: &str, number: u32) -> Round {
        let mut offset = self.offset(at);
        if let Some(Item::Round(last)) = self.log.items.last()
            && last.waiting
            && last.number == number
        {
            offset = last.offset.clone();
            self.log.items.pop();
        }
        Round {
            number,
            offset,
            model: model.to_owned(),
            waiting: false,
            took: String::new(),
            stop: String::new(),
            tokens_in: String::new(),
            tokens_cached: String::new(),
            tokens_out: String::new(),
            cost: String::new(),
            spent: String::new(),
            estimated: false,
            text: words::cut("", MOST_SHOWN),
            calls: Vec::new(),
        }
    }

    fn last_calls(&mut self) -> Option<&mut Vec<Call>> {
        self.log.items.iter_mut().rev().find_map(|item| match item {
            Item::Round(round) if !round.calls.is_empty() => Some(&mut round.calls),
            _ => None,
        })
    }

    fn call(&mut self, id: &str, state: &str) -> Option<&mut Call> {
        self.last_calls()?.iter_mut().find(|call| call.id == id && call.state == state)
    }

    fn unfinished(&mut self, id: &str) -> Option<&mut Call> {
        let open = |call: &&mut Call| call.id == id && matches!(call.state, "asked" | "running");
        self.last_calls()?.iter_mut().find(open)
    }

    fn finish(mut self, rounds: usize) -> AttemptLog {
        let places: Vec<usize> = self
            .log
            .items
            .iter()
            .enumerate()
            .filter_map(|(place, item)| matches!(item, Item::Round(_)).then_some(place))
            .collect();
        self.log.hidden = places.len().saturating_sub(rounds);
        if self.log.hidden > 0 {
            self.log.items.drain(places[0]..places[self.log.hidden]);
        }
        self.log
    }
}

impl Round {
    fn count(&mut self, usage: &Usage, spent: NanoUsd) {
        self.tokens_in = words::tokens(usage.input_tokens);
        self.tokens_cached = words::tokens(usage.cached_tokens);
        self.tokens_out = words::tokens(usage.output_tokens);
        self.cost = words::usd(usage.cost_nano_usd.as_usd());
        self.spent = words::usd(spent.as_usd());
        self.estimated = usage.estimated;
    }
}

fn calls(logged: &[LoggedCall], key: &str) -> Vec<Call> {
    let call = |(place, call): (usize, &LoggedCall)| Call {
        key: format!("call-{key}-{place}"),
        tool: call.tool.clone(),
        preview: preview(&call.arguments),
        arguments: words::cut(&readable(&call.arguments), MOST_SHOWN),
        state: "asked",
        exit_code: None,
        took: None,
        effects: false,
        output: None,
        id: call.call_id.clone(),
    };
    logged.iter().enumerate().map(call).collect()
}

/// A call with one text argument shows that text; others show indented JSON.
fn readable(arguments: &str) -> String {
    let Ok(value) = serde_json::from_str::<serde_json::Value>(arguments) else {
        return arguments.to_owned();
    };
    if let Some([serde_json::Value::String(text)]) =
        value.as_object().map(|map| map.values().cloned().collect::<Vec<_>>()).as_deref()
    {
        return text.clone();
    }
    serde_json::to_string_pretty(&value).unwrap_or_else(|_| arguments.to_owned())
}

/// The first text argument, for a call's one line.
fn preview(arguments: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(arguments).unwrap_or_default();
    let text = value.as_object().and_then(|map| map.values().find_map(|value| value.as_str()));
    words::preview(text.unwrap_or(""), 90)
}

type NoteText = (&'static str, &'static str, String);

fn note_of(kind: &EventKind, words: &Words) -> Option<NoteText> {
    match kind {
        EventKind::AttemptStarted { bundle_commit, holder_pid } => Some((
            "plain",
            "Attempt started",
            format!("bundle {}, process {holder_pid}", words::short_commit(bundle_commit)),
        )),
        EventKind::WorktreeReady { branch, base_commit, duration_ms, .. } => {
            let branch = branch.as_deref().map_or("no branch", |branch| branch);
            let (base, took) = (words::short_commit(base_commit), words::duration(*duration_ms));
            Some(("plain", "Worktree ready", format!("{branch} from {base} in {took}")))
        }
        EventKind::SandboxReady { container, runtime, limits, duration_ms, .. } => {
            let tone = if limits == "best_effort" { "warning" } else { "plain" };
            let took = words::duration(*duration_ms);
            let limits = limits.replace('_', " ");
            let container = words::short_commit(container);
            Some((
                tone,
                "Sandbox ready",
                format!("{container}, {runtime}, limits {limits}, in {took}"),
            ))
        }
        EventKind::ConditionChecked { command, exit_code, output, goes_on } => {
            let tone = if *goes_on { "ok" } else { "warning" };
            let title = if *goes_on { "Condition holds" } else { "Condition does not hold" };
            let end = match exit_code {
                Some(code) => format!("exit code {code}"),
                None => words::preview(output, 200),
            };
            Some((tone, title, format!("{}: {end}", words::preview(command, 90))))
        }
        EventKind::ModelFailed { model, class, message, retry_in_ms, .. } => {
            let next = match retry_in_ms {
                Some(wait) => format!("; sent again in {}", words::duration(*wait)),
                None => String::new(),
            };
            Some(("bad", "Model failed", format!("{model}: {class}: {message}{next}")))
        }
        EventKind::AuxRequested { .. } => None,
        EventKind::AuxAnswered { purpose, model, usage, .. } => Some((
            "plain",
            "Asked aside",
            format!("{purpose}: {model}, {}", words::usd(usage.cost_nano_usd.as_usd())),
        )),
        EventKind::PersonaToolBlocked { tool, reason, .. } => {
            Some(("warning", "Not offered", format!("{tool}: {reason}")))
        }
        EventKind::ContextPressure { tokens, window } => {
            Some(("warning", "Context window fills up", format!("{tokens} of {window} tokens")))
        }
        EventKind::ContextCompacted { reason, dropped_messages, summarized, .. } => {
            let how = if *summarized { "summarized" } else { "left out without a summary" };
            Some((
                "warning",
                "Conversation compacted",
                format!("{dropped_messages} older messages {how} ({reason})"),
            ))
        }
        EventKind::ModelSwitched { from, to, reason } => {
            Some(("warning", "Model switched", format!("{to} takes over from {from}: {reason}")))
        }
        EventKind::ArtifactPublished { artifact } => Some((
            "ok",
            "Artifact published",
            format!("{} ({})", artifact.path, words::bytes(artifact.size)),
        )),
        EventKind::MemoryChanged { key, value, .. } => {
            Some(("ok", "Remembered", format!("{key}: {value}")))
        }
        EventKind::PlanChanged { open, done } => {
            Some(("plain", "Plan changed", format!("{open} open, {done} done")))
        }
        EventKind::BudgetWindDown { ceiling, spent, limit } => {
            Some(("warning", "Budget wind-down", format!("{ceiling}: {spent} of {limit}")))
        }
        EventKind::GateChecked { gate, passed, message } => {
            let (tone, title) =
                if *passed { ("ok", "Gate passed") } else { ("warning", "Gate sent it back") };
            let colon = if message.is_empty() { "" } else { ": " };
            Some((tone, title, format!("{gate}{colon}{message}")))
        }
        EventKind::EgressJudged { .. }
        | EventKind::EgressEnded { .. }
        | EventKind::EgressSummed { .. } => Some(egress::note(kind)),
        EventKind::Warned { message } => Some(("warning", "Warning", message.clone())),
        EventKind::WorkCollected { branch, commit, commits, .. } => Some((
            "ok",
            "Work collected",
            collected(branch.as_deref(), commit.as_deref(), *commits),
        )),
        EventKind::RanLong { level, expected_ms, after_ms } => {
            let overdue = level == "sla_overdue";
            let (tone, title) =
                if overdue { ("bad", "Overdue") } else { ("warning", "Longer than expected") };
            let (after, expected) = (words::duration(*after_ms), words::duration(*expected_ms));
            Some((tone, title, format!("runs for {after}, expected {expected}")))
        }
        EventKind::AttemptFinished { outcome, retry_at, .. } => {
            let tone = if outcome.reason.is_empty() { "ok" } else { "bad" };
            let retry = match retry_at {
                Some(at) => format!("; tried again {}", words.moment(*at).full),
                None => String::new(),
            };
            let class = outcome.class.as_str().replace('_', " ");
            let colon = if outcome.reason.is_empty() { "" } else { ": " };
            Some((tone, "Attempt finished", format!("{class}{colon}{}{retry}", outcome.reason)))
        }
        EventKind::ModelRequested { .. }
        | EventKind::ModelAnswered { .. }
        | EventKind::ToolStarted { .. }
        | EventKind::ToolFinished { .. } => None,
    }
}

fn collected(branch: Option<&str>, commit: Option<&str>, commits: u32) -> String {
    match (branch, commit) {
        (Some(branch), Some(commit)) => {
            let commits = words::count(u64::from(commits), "commit");
            format!("{commits} on {branch}, tip {}", words::short_commit(commit))
        }
        _ => "no changes".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::page::samples;

    fn words() -> Words {
        Words::new("UTC", samples::now())
    }

    #[test]
    fn calls_get_their_own_results_in_their_own_round() {
        let logs = timeline(&samples::events(), &words(), 50);
        let rounds: Vec<&Round> = logs[0]
            .items
            .iter()
            .filter_map(|item| match item {
                Item::Round(round) => Some(round.as_ref()),
                Item::Note(_) => None,
            })
            .collect();
        let told: Vec<(u32, &str, &str, Option<i32>)> = rounds
            .iter()
            .flat_map(|round| round.calls.iter().map(move |call| (round.number, call)))
            .map(|(round, call)| (round, call.preview.as_str(), call.state, call.exit_code))
            .collect();
        assert_eq!(
            told,
            [
                (1, "ls -la", "ok", Some(0)),
                (1, "exit 3", "error", Some(3)),
                (2, "report.md", "ok", None)
            ]
        );
        let spent: Vec<&str> = rounds.iter().map(|round| round.spent.as_str()).collect();
        assert_eq!(spent, ["$0.01", "$0.02", "$0.03"]);
        assert!(rounds.iter().all(|round| !round.waiting));
    }

    #[test]
    fn an_unanswered_request_and_a_started_tool_are_shown_as_running() {
        let events = samples::events();
        let asked = timeline(&events[..4], &words(), 50);
        assert!(matches!(asked[0].items.last(), Some(Item::Round(round)) if round.waiting));
        let started = timeline(&events[..6], &words(), 50);
        let Some(Item::Round(round)) = started[0].items.last() else { panic!("a round is last") };
        let states: Vec<&str> = round.calls.iter().map(|call| call.state).collect();
        assert_eq!(states, ["running", "asked"]);
    }

    #[test]
    fn only_the_last_rounds_are_shown_and_the_rest_is_counted() {
        let logs = timeline(&samples::events(), &words(), 1);
        let rounds = logs[0].items.iter().filter(|item| matches!(item, Item::Round(_))).count();
        assert_eq!((rounds, logs[0].hidden), (1, 2));
    }

    #[test]
    fn long_output_is_cut_in_the_middle() {
        let long = samples::tool_finished("c", &"x".repeat(100_000));
        let events = [samples::answered(1, &[("c", "bash", r#"{"command":"yes"}"#)]), long]
            .map(samples::row);
        let logs = timeline(&events, &words(), 50);
        let Some(Item::Round(round)) = logs[0].items.last() else { panic!("a round is last") };
        let output = round.calls[0].output.as_ref().expect("output is there");
        assert_eq!(output.omitted, 100_000 - MOST_SHOWN);
    }

    #[test]
    fn equal_call_ids_in_later_rounds_do_not_touch_earlier_results() {
        let call = [("same", "bash", r#"{"command":"a"}"#)];
        let events = [
            samples::answered(1, &call),
            samples::tool_finished("same", "first"),
            samples::answered(2, &call),
            samples::tool_finished("same", "second"),
        ]
        .map(samples::row);
        let logs = timeline(&events, &words(), 50);
        let outputs: Vec<&str> = logs[0]
            .items
            .iter()
            .filter_map(|item| match item {
                Item::Round(round) => round.calls[0].output.as_ref(),
                Item::Note(_) => None,
            })
            .map(|output| output.head.as_str())
            .collect();
        assert_eq!(outputs, ["first", "second"]);
    }
}
