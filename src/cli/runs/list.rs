//! `fleet runs list`.

use jiff::{Span, Timestamp};

use crate::cli::visible::{dollars, instant, one_line};
use crate::cli::{Exit, Failure, Global, print, print_json, table};
use crate::clock::Clock;
use crate::run::{RunState, TaskName};
use crate::store::{RunFilter, RunRow};

/// Characters of a reason in the table.
const REASON_WIDTH: usize = 60;

#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    /// Only runs of this task
    #[arg(long, value_name = "TASK")]
    task: Option<String>,
    /// Only runs in this state (--state is the state directory)
    #[arg(long, value_name = "STATE", value_parser = parse_state)]
    in_state: Option<RunState>,
    /// Only runs due since: an age such as 12h or 7d, or an RFC 3339 instant
    #[arg(long, value_name = "AGE|TIME", value_parser = parse_since)]
    since: Option<Since>,
    /// At most this many
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// From when on.
#[derive(Clone, Copy, Debug)]
enum Since {
    Ago(Span),
    At(Timestamp),
}

pub(super) async fn run(args: ListArgs, global: &Global) -> Result<Exit, Failure> {
    let filter = RunFilter {
        task: args.task.map(TaskName::new),
        state: args.in_state,
        since: args.since.map(|since| since.instant(Clock::System.now())).transpose()?,
        limit: args.limit,
        offset: 0,
    };
    let rows = match global.named_store()? {
        Some(store) => store.runs(filter.clone()).await?,
        None => Vec::new(),
    };
    if args.json {
        print_json(&rows)?;
    } else if rows.is_empty() {
        let all = RunFilter { limit: filter.limit, ..RunFilter::default() } == filter;
        print(if all { "no runs yet" } else { "no such runs" })?;
    } else {
        print(&runs_table(&rows))?;
    }
    Ok(Exit::Ok)
}

fn runs_table(rows: &[RunRow]) -> String {
    let mut table = table(&["RUN", "TASK", "DUE", "STATE", "TRIES", "COST", "LEFT"]);
    for row in rows {
        table.add_row([
            row.run_id.to_string(),
            row.task.to_string(),
            instant(row.due),
            row.state.as_str().to_owned(),
            row.attempts.to_string(),
            dollars(row.cost_usd),
            one_line(&left(row), REASON_WIDTH),
        ]);
    }
    table.trim_fmt()
}

/// What the run left. What an earlier attempt left is no news of the one that runs.
fn left(row: &RunRow) -> String {
    match (row.state, &row.reason, &row.branch) {
        (RunState::Running, Some(reason), _) => format!("(attempt before: {reason})"),
        (RunState::Running, None, _) => String::new(),
        (_, Some(reason), _) => reason.clone(),
        (_, None, Some(branch)) => branch.clone(),
        (_, None, None) => String::new(),
    }
}

impl Since {
    fn instant(self, now: Timestamp) -> Result<Timestamp, Failure> {
        match self {
            Since::At(instant) => Ok(instant),
            Since::Ago(span) => {
                let zoned = now.to_zoned(jiff::tz::TimeZone::UTC);
                zoned
                    .checked_sub(span)
                    .map(|then| then.timestamp())
                    .map_err(|error| Failure::new(Exit::Usage, format!("--since {span}: {error}")))
            }
        }
    }
}

fn parse_since(text: &str) -> Result<Since, String> {
    if let Ok(instant) = text.parse() {
        return Ok(Since::At(instant));
    }
    match text.parse::<Span>() {
        Ok(span) if !span.is_negative() => Ok(Since::Ago(span)),
        _ => Err(format!("{text:?} is neither an age such as 12h or 7d nor an RFC 3339 instant")),
    }
}

fn parse_state(text: &str) -> Result<RunState, String> {
    RunState::parse(text).ok_or_else(|| {
        let names: Vec<&str> = RunState::ALL.into_iter().map(RunState::as_str).collect();
        format!("{text:?} is no state; the states are {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn since_is_an_age_or_an_instant() {
        let now: Timestamp = "2026-03-08T12:00:00Z".parse().expect("an instant");
        let read = |text| parse_since(text).and_then(|s| s.instant(now).map_err(|f| f.message));
        let at = |text: &str| Ok(text.parse().expect("an instant"));
        assert_eq!(read("7d"), at("2026-03-01T12:00:00Z"));
        assert_eq!(read("90m"), at("2026-03-08T10:30:00Z"));
        assert_eq!(read("2026-01-01T00:00:00+01:00"), at("2025-12-31T23:00:00Z"));
        let wrong = "\"soon\" is neither an age such as 12h or 7d nor an RFC 3339 instant";
        assert_eq!(read("soon"), Err(wrong.to_owned()));
    }
}
