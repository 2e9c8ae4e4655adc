//! `fleet runs show`.

use serde::Deserialize;

use crate::cli::timeline::{short, spent};
use crate::cli::visible::{duration, instant, one_line, visible};
use crate::cli::{Exit, Failure, print, print_json};
use crate::run::{RunState, SealLine, Usage};
use crate::sandbox;
use crate::store::{ArtifactRow, AttemptRow, RunDetail};

/// Characters of the answer that are shown.
const ANSWER: usize = 4000;

/// The part of a stored seal report that people are shown.
#[derive(Debug, Deserialize)]
struct Seal {
    limits: String,
    runtime: String,
    #[serde(default)]
    lines: Vec<SealLine>,
}

pub(super) fn print_run(detail: &RunDetail, json: bool) -> Result<Exit, Failure> {
    if json {
        print_json(detail)?;
    } else {
        print(text(detail).trim_end())?;
    }
    Ok(Exit::Ok)
}

fn text(detail: &RunDetail) -> String {
    let mut page = Page::default();
    header(&mut page, detail);
    for attempt in &detail.attempt_list {
        page.section(&format!("attempt {}", attempt.attempt));
        attempt_lines(&mut page, attempt);
    }
    if !detail.artifacts.is_empty() {
        page.section("artifacts");
        detail.artifacts.iter().for_each(|artifact| page.line(&artifact_line(artifact)));
        page.line(&format!("copy them: fleet runs artifacts {} --save DIR", detail.run.run_id));
    }
    if let Some(stat) = &detail.diff_stat {
        page.section("changes");
        page.block(stat);
    }
    if let Some(seal) = &detail.seal {
        page.section("seal of this host, as probed");
        seal_lines(&mut page, seal);
    }
    if let Some(output) = &detail.output {
        page.section("output");
        page.block(&output.to_string().chars().take(ANSWER).collect::<String>());
    }
    if let Some(answer) = &detail.answer {
        page.section("answer");
        page.block(&answer.chars().take(ANSWER).collect::<String>());
        if answer.chars().nth(ANSWER).is_some() {
            page.line("… (fleet runs show --json has it whole)");
        }
    }
    page.0.push_str(&format!(
        "\nlog: fleet runs logs {} (events: {})\n",
        detail.run.run_id,
        detail.events.len()
    ));
    page.0
}

fn header(page: &mut Page, detail: &RunDetail) {
    let run = &detail.run;
    let runs = run.state == RunState::Running;
    let outcome = run.outcome.as_deref().filter(|outcome| *outcome != run.state.as_str() && !runs);
    let outcome = outcome.map_or(String::new(), |outcome| format!(" ({outcome})"));
    page.0.push_str(&format!("run {}\n", run.run_id));
    page.field("task", run.task.as_str());
    page.field("state", &format!("{}{outcome}", run.state.as_str()));
    // While an attempt runs, what is recorded of the run is how the one before it ended.
    page.optional(if runs { "before" } else { "reason" }, run.reason.as_deref());
    page.field("due", &format!("{}, by {}", instant(run.due), run.trigger));
    page.optional("retry at", run.retry_at.map(instant).as_deref());
    page.field("attempts", &run.attempts.to_string());
    spending(page, detail);
    page.optional("bundle", run.bundle_commit.as_deref().map(short));
    page.optional("branch", run.branch.as_deref());
    page.optional("commit", run.commit.as_deref());
    if run.limits.as_deref() == Some("best_effort") {
        page.field(
            "limits",
            "best_effort: memory, CPU and process limits were rlimits, not enforced by a control group",
        );
    } else {
        page.optional("limits", run.limits.as_deref());
    }
}

/// A replay begins a fresh count, which the ceilings follow; both are shown where they differ.
fn spending(page: &mut Page, detail: &RunDetail) {
    let mut all = Usage::default();
    detail.attempt_list.iter().for_each(|attempt| all += attempt.usage);
    if all == detail.usage {
        page.field("spent", &spent(&all));
    } else {
        page.field("spent", &format!("{} over all attempts", spent(&all)));
        page.field("", &format!("{} spent since the replay", spent(&detail.usage)));
    }
}

fn attempt_lines(page: &mut Page, attempt: &AttemptRow) {
    let outcome = attempt.outcome.as_deref().unwrap_or("not ended");
    let reason = attempt.reason.as_deref().filter(|reason| !reason.is_empty());
    page.field("outcome", &reason.map_or(outcome.to_owned(), |why| format!("{outcome}: {why}")));
    let took = attempt.finished_at.map(|finished| {
        let millis = finished.duration_since(attempt.started_at).as_millis();
        duration(u64::try_from(millis).unwrap_or_default())
    });
    let took = took.map_or(String::new(), |took| format!(", took {took}"));
    page.field("started", &format!("{}{took}", instant(attempt.started_at)));
    if attempt.finished_at.is_some() {
        page.field("spent", &spent(&attempt.usage));
    }
    page.optional("model", attempt.model.as_deref());
    page.optional("repository", attempt.repo.as_deref());
    page.optional("worktree", attempt.worktree.as_deref());
    page.optional("branch", attempt.branch.as_deref());
    page.optional("base", attempt.base_commit.as_deref().map(short));
    page.optional("container", attempt.container.as_deref());
}

/// One artifact, in one line.
pub(super) fn artifact_line(artifact: &ArtifactRow) -> String {
    let about = artifact.description.as_deref().map_or(String::new(), |d| format!(": {d}"));
    format!(
        "{} {} ({} bytes){}",
        artifact.number,
        one_line(&artifact.name, 120),
        artifact.size,
        one_line(&about, 200)
    )
}

/// Each property that was read back; one that does not hold is marked.
fn seal_lines(page: &mut Page, seal: &serde_json::Value) {
    let Ok(seal) = Seal::deserialize(seal) else {
        page.line("recorded in a form that this fleet does not know: see --json");
        return;
    };
    page.line(&format!("{}, limits {}: {}", seal.runtime, seal.limits, seal.sum()));
    for line in &seal.lines {
        let SealLine { property, wanted, seen, holds } = line;
        page.line(&if *holds {
            format!("  ok   {property}: {seen}")
        } else if seal.does_without(line) {
            format!("  --   {property}: {seen}, not enforced (best effort)")
        } else {
            format!("  FAIL {property}: {seen}, wanted {wanted}")
        });
    }
}

impl Seal {
    /// The line is of a limit that this host does not enforce and that nobody asked it to.
    fn does_without(&self, line: &SealLine) -> bool {
        !line.holds && self.limits == "best_effort" && sandbox::is_limit(line)
    }

    fn sum(&self) -> String {
        if self.lines.is_empty() {
            return "no property was recorded".to_owned();
        }
        let all = self.lines.len();
        let without = self.lines.iter().filter(|line| self.does_without(line)).count();
        let failed = self.lines.iter().filter(|line| !line.holds).count() - without;
        match (failed, without) {
            (0, 0) => format!("all {all} properties hold"),
            (0, _) => format!("{} of {all} properties hold, {without} not enforced", all - without),
            (_, 0) => format!("{failed} of {all} properties do not hold"),
            (_, _) => format!("{failed} of {all} properties do not hold, {without} not enforced"),
        }
    }
}

/// The text under way.
#[derive(Default)]
struct Page(String);

impl Page {
    fn section(&mut self, name: &str) {
        self.0.push_str(&format!("\n{name}\n"));
    }

    fn line(&mut self, text: &str) {
        self.0.push_str(&format!("  {}\n", visible(text)));
    }

    fn block(&mut self, text: &str) {
        text.lines().for_each(|line| self.line(line));
    }

    fn field(&mut self, name: &str, value: &str) {
        self.line(&format!("{name:<11}{value}"));
    }

    fn optional(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.field(name, value);
        }
    }
}
