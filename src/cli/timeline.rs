//! The session log as people read it: each event becomes a few lines.

use super::visible::{dollars, duration, instant, one_line, visible};
use crate::run::{Artifact, Event, EventKind, LoggedCall, Outcome, Usage};

/// Lines of a tool's output that are shown.
const OUTPUT_LINES: usize = 20;
/// Characters of a line of it.
const OUTPUT_WIDTH: usize = 240;
/// Characters of a tool call's arguments.
const ARGUMENTS_WIDTH: usize = 160;

/// Writes a run's timeline, event by event. Remembers what was spent so far.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    spent: Usage,
    attempt: u32,
}

impl Timeline {
    /// The lines of one event, without a line end behind the last.
    pub(super) fn lines(&mut self, event: &Event) -> Vec<String> {
        let (head, body) = self.render(&event.kind);
        let mut lines = Vec::with_capacity(body.len() + 1);
        if event.attempt != self.attempt {
            self.attempt = event.attempt;
            lines.push(format!("attempt {} ({})", event.attempt, instant(event.at)));
        }
        lines.push(format!("{} {head}", event.at.strftime("%H:%M:%SZ")));
        lines.extend(body.into_iter().map(|line| format!("    {line}")));
        lines
    }

    fn render(&mut self, kind: &EventKind) -> (String, Vec<String>) {
        let alone = |head: String| (head, Vec::new());
        match kind {
            EventKind::AttemptStarted { bundle_commit, holder_pid } => alone(format!(
                "started from bundle commit {}, process {holder_pid}",
                short(bundle_commit)
            )),
            EventKind::WorktreeReady { path, branch, base_commit, duration_ms } => {
                let on = branch.as_ref().map_or("no branch".to_owned(), |b| format!("branch {b}"));
                let (base, took) = (short(base_commit), duration(*duration_ms));
                (
                    format!("worktree ready: {} from {base}, {took}", visible(&on)),
                    vec![path.clone()],
                )
            }
            EventKind::SandboxReady { container, runtime, limits, duration_ms, .. } => {
                alone(format!(
                    "sandbox ready: {container}, {runtime}, limits {limits}, {}",
                    duration(*duration_ms)
                ))
            }
            EventKind::ConditionChecked { command, exit_code, output, goes_on } => {
                let code =
                    exit_code.map_or("no exit code".to_owned(), |c| format!("exit code {c}"));
                let next = if *goes_on { "the run goes on" } else { "the run does not go on" };
                let head = format!("run_if {}: {code}, {next}", one_line(command, 64));
                (head, bounded(output))
            }
            EventKind::ModelRequested { model, round, estimated_tokens, .. } => {
                alone(format!("round {round}: asked {model} (about {estimated_tokens} tokens)"))
            }
            EventKind::ModelAnswered {
                model, round, text, tool_calls, usage, duration_ms, ..
            } => {
                self.spent += *usage;
                let total = dollars(self.spent.cost_nano_usd.as_usd());
                let took = duration(*duration_ms);
                let head = format!("round {round}: {model} answered in {took}, {total} so far");
                let said = visible(text).lines().map(str::to_owned).collect::<Vec<_>>();
                (head, said.into_iter().chain(tool_calls.iter().map(call)).collect())
            }
            EventKind::ModelFailed { model, round, class, message, retry_in_ms } => {
                let next = retry_in_ms
                    .map_or("not sent again".to_owned(), |ms| format!("again in {}", duration(ms)));
                let head = format!("round {round}: {model} failed ({class}), {next}");
                (head, vec![visible(message).into_owned()])
            }
            EventKind::AuxRequested { purpose, model, estimated_tokens, .. } => {
                alone(format!("{purpose}: asked {model} (about {estimated_tokens} tokens)"))
            }
            EventKind::AuxAnswered { purpose, usage, duration_ms, .. } => {
                self.spent += *usage;
                let total = dollars(self.spent.cost_nano_usd.as_usd());
                alone(format!("{purpose}: ended after {}, {total} so far", duration(*duration_ms)))
            }
            EventKind::PersonaToolBlocked { tool, reason, .. } => {
                alone(format!("{tool} is not offered: {}", visible(reason)))
            }
            EventKind::ContextPressure { tokens, window } => {
                alone(format!("the context window fills up: {tokens} of {window} tokens"))
            }
            EventKind::ContextCompacted { reason, dropped_messages, summarized, .. } => {
                let how = if *summarized { "summarized" } else { "left out without a summary" };
                alone(format!("{dropped_messages} older messages {how} ({reason})"))
            }
            EventKind::ModelSwitched { from, to, reason } => {
                alone(format!("{to} takes over from {from}: {reason}"))
            }
            EventKind::ToolStarted { tool, .. } => alone(format!("{} runs", one_line(tool, 64))),
            EventKind::ToolFinished { tool, is_error, output, exit_code, duration_ms, .. } => {
                let how = if *is_error { "failed" } else { "done" };
                let code = exit_code.map_or(String::new(), |code| format!(", exit code {code}"));
                let head =
                    format!("{} {how}{code}, {}", one_line(tool, 64), duration(*duration_ms));
                (head, bounded(output))
            }
            EventKind::EgressJudged { .. }
            | EventKind::EgressEnded { .. }
            | EventKind::EgressSummed { .. } => alone(egress(kind)),
            EventKind::ArtifactPublished { artifact } => alone(published(artifact)),
            EventKind::MemoryChanged { key, value, .. } => {
                alone(format!("remembers {}: {}", one_line(key, 40), one_line(value, 100)))
            }
            EventKind::PlanChanged { open, done } => {
                alone(format!("plan: {done} done, {open} open"))
            }
            EventKind::BudgetWindDown { ceiling, spent, limit } => {
                alone(format!("near the {ceiling} ceiling: {spent} of {limit}"))
            }
            EventKind::GateChecked { gate, passed, message } => {
                let how = if *passed { "passed" } else { "sends the work back" };
                (
                    format!("gate {gate} {how}"),
                    visible(message).lines().map(str::to_owned).collect(),
                )
            }
            EventKind::WorkCollected { branch, commit, commits, diff_stat } => {
                let stat = diff_stat.as_deref().unwrap_or_default();
                (
                    collected(branch.as_deref(), commit.as_deref(), *commits),
                    visible(stat).lines().map(str::to_owned).collect(),
                )
            }
            EventKind::Warned { message } => alone(format!("warning: {}", visible(message))),
            EventKind::RanLong { level, expected_ms, after_ms } => {
                let how = if level == "sla_overdue" { "overdue" } else { "longer than expected" };
                let (after, expected) = (duration(*after_ms), duration(*expected_ms));
                alone(format!("{how}: runs for {after}, expected {expected}"))
            }
            EventKind::AttemptFinished { outcome, usage, retry_at } => {
                let next =
                    retry_at.map_or(String::new(), |at| format!("; again at {}", instant(at)));
                alone(format!("{}{next}; {}", ended(outcome), spent(usage)))
            }
        }
    }
}

/// What an attempt or a run consumed.
pub(super) fn spent(usage: &Usage) -> String {
    let about = if usage.estimated { ", in part estimated" } else { "" };
    format!(
        "{}, {} tokens in ({} cached), {} out{about}",
        dollars(usage.cost_nano_usd.as_usd()),
        usage.input_tokens.saturating_add(usage.cached_tokens),
        usage.cached_tokens,
        usage.output_tokens
    )
}

/// The beginning of a commit's id.
pub(super) fn short(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}

fn call(call: &LoggedCall) -> String {
    let arguments = one_line(&call.arguments, ARGUMENTS_WIDTH);
    format!("-> {} {arguments}", one_line(&call.tool, 64))
}

fn published(artifact: &Artifact) -> String {
    let about = artifact.description.as_deref().map_or(String::new(), |d| format!(": {d}"));
    let (name, about) = (one_line(&artifact.name, 120), one_line(&about, 200));
    format!("published {name} ({} bytes){about}", artifact.size)
}

/// What became of connections out of the sandbox.
fn egress(kind: &EventKind) -> String {
    match kind {
        EventKind::EgressJudged { via, target, allowed, reason } => {
            let verdict = if *allowed { "allowed" } else { "denied" };
            let why = reason.as_ref().map_or(String::new(), |why| format!(": {why}"));
            let target = one_line(target, 300);
            format!("network {verdict} ({via}): {target}{}", visible(&why))
        }
        EventKind::EgressEnded {
            target, sent_bytes, received_bytes, duration_ms, reason, ..
        } => {
            let why = reason.as_ref().map_or(String::new(), |why| format!(": {why}"));
            format!(
                "network ended: {}, {sent_bytes} bytes out, {received_bytes} in, {}{}",
                one_line(target, 300),
                duration(*duration_ms),
                visible(&why)
            )
        }
        EventKind::EgressSummed { allowed, denied, sent_bytes, received_bytes } => format!(
            "network: {allowed} more connections allowed, {denied} denied, {sent_bytes} bytes out, \
             {received_bytes} in"
        ),
        _ => String::new(),
    }
}

fn collected(branch: Option<&str>, commit: Option<&str>, commits: u32) -> String {
    match (branch, commit) {
        (Some(branch), Some(commit)) => {
            let s = if commits == 1 { "" } else { "s" };
            format!("collected {commits} commit{s} on {}, at {}", visible(branch), short(commit))
        }
        _ => "nothing was committed".to_owned(),
    }
}

fn ended(outcome: &Outcome) -> String {
    let class = outcome.class.as_str();
    match outcome.reason.as_str() {
        "" => format!("attempt ended: {class}"),
        reason => format!("attempt ended: {class}: {}", visible(reason)),
    }
}

/// The first lines of an output, and how many more there are.
fn bounded(output: &str) -> Vec<String> {
    let shown = visible(output);
    let mut lines: Vec<String> =
        shown.lines().take(OUTPUT_LINES).map(|line| cut(line, OUTPUT_WIDTH)).collect();
    let more = shown.lines().count().saturating_sub(OUTPUT_LINES);
    if more > 0 {
        lines.push(format!("… {more} more lines (fleet runs logs --json has them all)"));
    }
    lines
}

fn cut(line: &str, width: usize) -> String {
    match line.char_indices().nth(width) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{NanoUsd, OutcomeClass};

    fn at(kind: EventKind) -> Event {
        Event { at: "2026-03-01T09:00:05Z".parse().expect("an instant"), attempt: 1, kind }
    }

    #[test]
    fn an_answer_shows_its_text_its_calls_and_the_cost_so_far() {
        let usage =
            Usage { cost_nano_usd: NanoUsd(10_000_000), output_tokens: 5, ..Usage::default() };
        let answer = at(EventKind::ModelAnswered {
            model: "m".into(),
            round: 1,
            text: "I will\u{1b}[2J look.".into(),
            tool_calls: vec![LoggedCall {
                call_id: "1".into(),
                tool: "bash".into(),
                arguments: "{\"command\":\n\"ls\"}".into(),
            }],
            stop: "tool_calls".into(),
            usage,
            duration_ms: 1200,
        });
        let mut timeline = Timeline::default();
        assert_eq!(
            timeline.lines(&answer),
            [
                "attempt 1 (2026-03-01 09:00:05Z)",
                "09:00:05Z round 1: m answered in 1.2s, $0.0100 so far",
                "    I will\u{fffd}[2J look.",
                "    -> bash {\"command\": \"ls\"}",
            ]
        );
        assert_eq!(
            timeline.lines(&answer)[0],
            "09:00:05Z round 1: m answered in 1.2s, $0.0200 so far"
        );
    }

    #[test]
    fn output_is_bounded_with_a_note() {
        let output: String = (1..=25).map(|n| format!("line {n}\n")).collect();
        let finished = at(EventKind::ToolFinished {
            call_id: "1".into(),
            tool: "bash".into(),
            is_error: true,
            output,
            exit_code: Some(3),
            duration_ms: 40,
            effects: false,
        });
        let lines = Timeline::default().lines(&finished);
        assert_eq!(lines[1], "09:00:05Z bash failed, exit code 3, 40ms");
        assert_eq!(lines.len(), 2 + OUTPUT_LINES + 1);
        assert_eq!(
            lines.last().map(String::as_str),
            Some("    … 5 more lines (fleet runs logs --json has them all)")
        );
    }

    #[test]
    fn the_end_of_an_attempt_tells_its_outcome_and_what_follows() {
        let finished = at(EventKind::AttemptFinished {
            outcome: Outcome::failed(OutcomeClass::Transient, "503 from m"),
            usage: Usage {
                input_tokens: 10,
                cached_tokens: 2,
                estimated: true,
                ..Usage::default()
            },
            retry_at: Some("2026-03-01T09:01:00Z".parse().expect("an instant")),
        });
        assert_eq!(
            Timeline::default().lines(&finished)[1],
            "09:00:05Z attempt ended: transient: 503 from m; again at 2026-03-01 09:01:00Z; $0.00, \
             12 tokens in (2 cached), 0 out, in part estimated"
        );
    }
}
