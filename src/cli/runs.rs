//! `fleet runs`.

mod artifacts;
pub(super) mod follow;
mod render;
mod show;

use jiff::{SpanRelativeTo, Timestamp};

use super::{Exit, Failure, Global};
use crate::clock::Clock;
use crate::run::{RunState, TaskName};
use crate::store::{RunFilter, RunRow};

pub(super) use render::{plain_line, time};

/// Shows runs, their logs and artifacts.
#[derive(Debug, clap::Args)]
pub struct RunsArgs {
    #[command(subcommand)]
    verb: RunsVerb,
}

#[derive(Debug, clap::Subcommand)]
enum RunsVerb {
    /// Lists runs, the newest due first
    List(ListArgs),
    /// Shows one run: attempts, spending, artifacts, branch and seal
    Show {
        #[command(flatten)]
        one: One,
    },
    /// Prints a run's session log
    Logs {
        #[command(flatten)]
        one: One,
        /// Go on until the run ends
        #[arg(short, long)]
        follow: bool,
    },
    /// Lists what a run published
    Artifacts {
        #[command(flatten)]
        one: One,
        /// Copy the files into this directory; nothing is overwritten
        #[arg(long, value_name = "DIR")]
        save: Option<std::path::PathBuf>,
    },
}

/// One run, and how to print it.
#[derive(Debug, clap::Args)]
struct One {
    /// The run; an unambiguous beginning of its id is enough
    #[arg(value_name = "RUN")]
    id: String,
    /// JSON instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    /// Only runs of this task
    #[arg(long)]
    task: Option<String>,
    /// Only runs in this state, for example running or dead_lettered
    #[arg(long, value_parser = parse_state)]
    state: Option<RunState>,
    /// Only runs due since then: an age such as 12h or 7d, or an RFC 3339 time
    #[arg(long, value_name = "AGE|TIME")]
    since: Option<String>,
    /// At most so many
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// Carries out the verb.
pub fn run(args: RunsArgs, global: &Global) -> Result<Exit, Failure> {
    match args.verb {
        RunsVerb::List(args) => list(args, global),
        RunsVerb::Show { one } => show::run(one, global),
        RunsVerb::Logs { one, follow } => logs(one, follow, global),
        RunsVerb::Artifacts { one, save } => artifacts::run(one, save, global),
    }
}

fn parse_state(text: &str) -> Result<RunState, String> {
    RunState::parse(text).ok_or_else(|| {
        let names = RunState::ALL.map(RunState::as_str).join(", ");
        format!("the states are {names}")
    })
}

fn since(text: &str, now: Timestamp) -> Result<Timestamp, Failure> {
    let from_age = || {
        let span: jiff::Span = text.parse().ok()?;
        let age = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
        now.checked_sub(age.abs()).ok()
    };
    text.parse().ok().or_else(from_age).ok_or_else(|| {
        Failure::new(Exit::Usage, format!("--since {text:?} is neither an age nor a time"))
            .hint("write an age such as 12h or 7d, or a time such as 2026-01-31T08:00:00Z")
    })
}

fn list(args: ListArgs, global: &Global) -> Result<Exit, Failure> {
    let since = args.since.map(|text| since(&text, Clock::System.now())).transpose()?;
    let filter = RunFilter {
        task: args.task.map(TaskName::new),
        state: args.state,
        since,
        limit: args.limit,
        offset: 0,
    };
    let rows = global.block_on(global.store()?.runs(filter))??;
    if args.json {
        super::print_json(&rows)?
    } else {
        super::print(&list_text(&rows))?
    }
    Ok(Exit::Ok)
}

fn list_text(rows: &[RunRow]) -> String {
    if rows.is_empty() {
        return "no runs".to_owned();
    }
    let mut table = super::table(&[
        "RUN",
        "TASK",
        "DUE (UTC)",
        "STATE",
        "OUTCOME",
        "ATTEMPTS",
        "COST",
        "REASON",
    ]);
    for row in rows {
        table.add_row([
            row.run_id.to_string(),
            row.task.to_string(),
            time(row.due),
            row.state.as_str().to_owned(),
            row.outcome.clone().unwrap_or_default(),
            row.attempts.to_string(),
            format!("${:.4}", row.cost_usd),
            plain_line(row.reason.as_deref().unwrap_or_default()),
        ]);
    }
    table.to_string()
}

fn logs(one: One, follow: bool, global: &Global) -> Result<Exit, Failure> {
    let store = global.store()?;
    global.block_on(async {
        let run = store.find_run(one.id).await?;
        let style = if one.json { follow::Style::JsonLines } else { follow::Style::Text };
        let until = if follow { follow::Until::RunEnds } else { follow::Until::LogEnds };
        follow::print_events(&store, &run, style, until).await
    })??;
    Ok(Exit::Ok)
}
