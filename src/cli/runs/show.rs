//! `fleet runs show`.

use super::super::{Exit, Failure, Global};
use super::One;
use super::render::{last_line, plain_line, time};
use crate::run::SealLine;
use crate::store::RunDetail;

pub(super) fn run(one: One, global: &Global) -> Result<Exit, Failure> {
    let store = global.store()?;
    let detail = global.block_on(async {
        let run = store.find_run(one.id).await?;
        store.run_detail(run).await
    })??;
    if one.json {
        super::super::print_json(&detail)?;
    } else {
        super::super::print(&text(&detail))?;
    }
    Ok(Exit::Ok)
}

fn text(detail: &RunDetail) -> String {
    let run = &detail.run;
    let mut text = last_line(run);
    text += &format!("\n  task {}, due {}, by {}", run.task, time(run.due), run.trigger);
    for (name, value) in
        [("bundle", &run.bundle_commit), ("branch", &run.branch), ("commit", &run.commit)]
    {
        if let Some(value) = value {
            text += &format!("\n  {name} {value}");
        }
    }
    let usage = &detail.usage;
    let guess = if usage.estimated { ", in part estimated" } else { "" };
    text += &format!(
        "\n  spent {}: {} tokens in, {} cached, {} out{guess}",
        usage.cost_nano_usd, usage.input_tokens, usage.cached_tokens, usage.output_tokens
    );
    text += &attempts(detail);
    if let Some(answer) = &detail.answer {
        text += &format!("\n  answer: {}", plain_line(answer));
    }
    for file in &detail.artifacts {
        text += &format!(
            "\n  artifact {}: {} ({} bytes)",
            file.number,
            plain_line(&file.name),
            file.size
        );
    }
    text += &seal(detail);
    text + &format!("\n  log: fleet runs logs {}", run.run_id)
}

fn attempts(detail: &RunDetail) -> String {
    let mut text = String::new();
    for attempt in &detail.attempt_list {
        let end = attempt.finished_at.map_or("still running".to_owned(), time);
        let outcome = attempt.outcome.as_deref().unwrap_or("no outcome yet");
        let cost = attempt.usage.cost_nano_usd;
        let start = time(attempt.started_at);
        text += &format!("\n  attempt {}: {start} to {end}, {outcome}, {cost}", attempt.attempt);
        if let Some(reason) = attempt.reason.as_deref().filter(|reason| !reason.is_empty()) {
            text += &format!(": {}", plain_line(reason));
        }
    }
    text
}

/// The seal in one line, and each property that does not hold.
fn seal(detail: &RunDetail) -> String {
    let Some(report) = &detail.seal else { return "\n  seal: not reported".to_owned() };
    let lines = report.get("lines").unwrap_or(report).clone();
    let Ok(lines) = serde_json::from_value::<Vec<SealLine>>(lines) else {
        return "\n  seal: see --json".to_owned();
    };
    let holding = lines.iter().filter(|line| line.holds).count();
    let limits = detail.run.limits.as_deref().unwrap_or("unknown");
    let mut text =
        format!("\n  seal: {holding} of {} properties hold, limits {limits}", lines.len());
    for line in lines.iter().filter(|line| !line.holds) {
        let (wanted, seen) = (plain_line(&line.wanted), plain_line(&line.seen));
        text += &format!("\n    {}: wanted {wanted}, seen {seen}", plain_line(&line.property));
    }
    text
}
