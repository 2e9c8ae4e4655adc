//! Events as text for a person. What the model and its tools wrote is untrusted: control characters
//! never reach the terminal.

use jiff::Timestamp;

use crate::run::{Event, EventKind, LoggedCall, Usage};
use crate::store::RunRow;

/// Lines of a text that are shown.
const LINES: usize = 20;
/// Characters of a line that are shown.
const WIDTH: usize = 200;

/// An instant for people, to the second.
pub(in super::super) fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%SZ").to_string()
}

/// A text on one line, bounded, without control characters.
pub(in super::super) fn plain_line(text: &str) -> String {
    let spaced = text.split_whitespace().collect::<Vec<_>>().join(" ");
    cut(&spaced)
}

/// How the run stands, on one line.
pub(super) fn last_line(row: &RunRow) -> String {
    let mut text = format!("run {} {}", row.run_id, row.state.as_str());
    if let Some(reason) = row.reason.as_deref().filter(|reason| !reason.is_empty()) {
        let class = row.outcome.as_deref().unwrap_or("reason");
        text += &format!(" ({class}: {})", plain_line(reason));
    }
    text += &format!(", {} attempt(s), {} tokens, ${:.4}", row.attempts, row.tokens, row.cost_usd);
    if let (Some(branch), Some(commit)) = (&row.branch, &row.commit) {
        text += &format!(", branch {branch} at {commit}");
    }
    if let Some(at) = row.retry_at {
        text += &format!(", next attempt {}", time(at));
    }
    text
}

/// Remembers what was spent so far.
#[derive(Default)]
pub(super) struct Log {
    spent: Usage,
}

impl Log {
    /// One event as text, of one line or several.
    pub(super) fn line(&mut self, event: &Event) -> String {
        if let EventKind::ModelAnswered { usage, .. } = &event.kind {
            self.spent += *usage;
        }
        format!("{}  {}", time(event.at), self.what(event))
    }

    fn what(&self, event: &Event) -> String {
        match &event.kind {
            EventKind::AttemptStarted { bundle_commit, holder_pid } => {
                format!("attempt {} of bundle {bundle_commit}, process {holder_pid}", event.attempt)
            }
            EventKind::WorktreeReady { path, branch, base_commit, duration_ms } => {
                let branch = branch.as_deref().unwrap_or("no branch");
                format!("worktree {path}, {branch} from {base_commit} ({duration_ms} ms)")
            }
            EventKind::SandboxReady { container, runtime, limits, duration_ms, .. } => {
                format!("sandbox {container}, {runtime}, limits {limits} ({duration_ms} ms)")
            }
            EventKind::ModelRequested { model, round, estimated_tokens, .. } => {
                format!("round {round}: asks {model} (about {estimated_tokens} tokens)")
            }
            EventKind::ModelAnswered { round, text, tool_calls, duration_ms, .. } => {
                let spent = self.spent.cost_nano_usd;
                let head = format!("round {round}: answer ({duration_ms} ms, {spent} so far)");
                head + &block(text) + &calls(tool_calls)
            }
            EventKind::ModelFailed { round, class, message, retry_in_ms, .. } => {
                let next = retry_in_ms.map_or(String::new(), |ms| format!("; again in {ms} ms"));
                format!("round {round}: {class}: {}{next}", plain_line(message))
            }
            EventKind::ToolStarted { tool, .. } => format!("{} starts", cut(tool)),
            EventKind::ToolFinished { tool, is_error, output, exit_code, duration_ms, .. } => {
                let ended = if *is_error { "failed" } else { "done" };
                let code = exit_code.map_or(String::new(), |code| format!(", exit {code}"));
                format!("{} {ended} ({duration_ms} ms{code}){}", cut(tool), block(output))
            }
            other => self.less_common(other),
        }
    }

    fn less_common(&self, kind: &EventKind) -> String {
        match kind {
            EventKind::ArtifactPublished { artifact } => {
                format!("published {} ({} bytes)", cut(&artifact.name), artifact.size)
            }
            EventKind::PlanChanged { open, done } => format!("plan: {done} done, {open} open"),
            EventKind::BudgetWindDown { ceiling, spent, limit } => {
                format!("near the ceiling {ceiling}: {spent} of {limit}")
            }
            EventKind::GateChecked { gate, passed, message } => {
                let verdict = if *passed { "passed" } else { "not passed" };
                format!("check {gate} {verdict}{}", block(message))
            }
            EventKind::WorkCollected { branch, commit, commits, diff_stat } => {
                let branch = branch.as_deref().unwrap_or("no branch");
                let commit = commit.as_deref().unwrap_or("no commit");
                let stat = diff_stat.as_deref().map_or(String::new(), block);
                format!("collected {commits} commit(s): {branch} at {commit}{stat}")
            }
            EventKind::Warned { message } => format!("warning: {}", plain_line(message)),
            EventKind::AttemptFinished { outcome, usage, retry_at } => {
                let again =
                    retry_at.map_or(String::new(), |at| format!("; next attempt {}", time(at)));
                let reason = plain_line(&outcome.reason);
                let colon = if reason.is_empty() { "" } else { ": " };
                let (class, cost) = (outcome.class.as_str(), usage.cost_nano_usd);
                format!("attempt ended: {class}{colon}{reason} ({cost}){again}")
            }
            // A newer kind than this match names is still shown, by its JSON.
            other => serde_json::to_string(other)
                .map_or_else(|error| error.to_string(), |json| cut(&json)),
        }
    }
}

fn calls(calls: &[LoggedCall]) -> String {
    let line =
        |call: &LoggedCall| format!("\n    → {} {}", cut(&call.tool), plain_line(&call.arguments));
    calls.iter().map(line).collect()
}

/// A text's first lines, indented.
fn block(text: &str) -> String {
    let mut lines = text.trim_end().lines();
    let mut shown: String =
        lines.by_ref().take(LINES).map(|line| format!("\n    {}", cut(line))).collect();
    match lines.count() {
        0 => {}
        more => shown += &format!("\n    … {more} more line(s), whole with --json"),
    }
    shown
}

fn cut(line: &str) -> String {
    let plain = |c: char| if c.is_control() && c != '\t' { '\u{fffd}' } else { c };
    let mut chars = line.chars().map(plain);
    let mut text: String = chars.by_ref().take(WIDTH).collect();
    if chars.next().is_some() {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_never_reach_the_terminal() {
        assert_eq!(cut("a\u{1b}[2Jb"), "a\u{fffd}[2Jb");
        assert_eq!(plain_line("a\n\u{9b}31m"), "a \u{fffd}31m");
    }

    #[test]
    fn long_output_is_bounded_and_says_so() {
        let text = "x\n".repeat(25);
        let shown = block(&text);
        assert_eq!(shown.lines().count(), 22);
        assert!(shown.ends_with("… 5 more line(s), whole with --json"));
    }
}
