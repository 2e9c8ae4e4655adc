//! `fleet worktree`.

use std::io::Write;
use std::time::Duration;

use comfy_table::{Table, presets};
use jiff::{Span, SpanRelativeTo};

use super::{Exit, Failure, Global};
use crate::clock::Clock;
use crate::runner::{Lives, remove_workspace};
use crate::sandbox::Podman;
use crate::worktree::{
    self, Found, PruneMode, PruneRequest, Pruned, Removed, WorktreeEntry, WorktreeError,
};

/// Lists and prunes worktrees.
#[derive(Debug, clap::Args)]
pub struct WorktreeArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Lists the worktrees of runs: live, kept after a run, or orphaned by a crash.
    List {
        /// Prints JSON.
        #[arg(long)]
        json: bool,
    },
    /// Removes worktrees that no live run owns. Branches with commits stay.
    Prune {
        /// Only those at least this old, for example 24h or 7d.
        #[arg(long, value_name = "DURATION", value_parser = parse_age)]
        older_than: Duration,
        /// Prints what would be removed, and removes nothing.
        #[arg(long)]
        dry_run: bool,
    },
}

/// Carries out the verb.
pub fn run(args: WorktreeArgs, global: &Global) -> Result<Exit, Failure> {
    let now = Clock::System.now();
    match args.verb {
        Verb::List { json } => {
            let entries = global.block_on(async {
                let (found, lives) = survey(global).await?;
                Ok::<_, Failure>(worktree::list(found, now, &|run| lives.of(run)))
            })??;
            if json {
                print_json(&entries)?
            } else {
                print_table(&entries)?
            }
            Ok(Exit::Ok)
        }
        Verb::Prune { older_than, dry_run } => {
            let mode = if dry_run { PruneMode::DryRun } else { PruneMode::Remove };
            let request = PruneRequest { older_than, now, mode };
            let pruned = global.block_on(async {
                let (found, lives) = survey(global).await?;
                let mut pruned =
                    worktree::prune(found, request, &|run| lives.of(run)).await.map_err(failure)?;
                for left in pruned.iter_mut().filter(|pruned| pruned.error.is_some()) {
                    remove_through_podman(global, left).await;
                }
                Ok::<_, Failure>(pruned)
            })??;
            print_pruned(&pruned, mode)
        }
    }
}

/// What an overlay left of subordinate ids' files needs the user namespace to go.
async fn remove_through_podman(global: &Global, left: &mut Pruned) {
    let Ok(podman) = Podman::connect(&global.config) else { return };
    match remove_workspace(&podman, &left.entry.path).await {
        Ok(Removed::WithoutBranch) => left.error = None,
        Ok(Removed::BranchKept(branch)) => {
            left.error = None;
            left.branch_kept = Some(branch);
        }
        Err(error) => left.error = Some(crate::runner::with_causes(&error)),
    }
}

/// Every worktree, and then who lives: in this order, so that a run which starts meanwhile is not
/// taken for an orphan.
pub(super) async fn survey(global: &Global) -> Result<(Vec<Found>, Lives), Failure> {
    let state = &global.config.state;
    let known = worktree::known_repositories(&state.repositories(), &state.runs());
    let found = worktree::scan(known).await.map_err(failure)?;
    // Another state directory's workspaces in the same repository are not shown and not touched.
    let found: Vec<Found> =
        found.into_iter().filter(|found| found.belongs_below(&state.runs())).collect();
    let runs = found.iter().map(|found| found.run_id().to_owned()).collect();
    let lives = match global.named_store()? {
        Some(store) => Lives::ask(&store, state, runs).await?,
        None => Lives::default(),
    };
    Ok((found, lives))
}

fn parse_age(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a duration such as 24h or 7d");
    let span: Span = text.parse().map_err(|_| wrong())?;
    let age = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| wrong())?;
    Duration::try_from(age).map_err(|_| wrong())
}

fn print_json(entries: &[WorktreeEntry]) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(entries).expect("entries are plain data");
    print_line(&text)
}

fn print_table(entries: &[WorktreeEntry]) -> Result<(), Failure> {
    if entries.is_empty() {
        return print_line("no worktrees");
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["TASK", "RUN", "STATE", "AGE", "SIZE", "BRANCH", "PATH"]);
    for entry in entries {
        let state = serde_json::to_value(entry.state).expect("a state is a word");
        table.add_row([
            entry.task.clone(),
            entry.run_id.clone(),
            state.as_str().expect("a state is a word").to_owned(),
            age(entry.age_secs),
            size(entry.bytes),
            entry.branch.clone().unwrap_or_else(|| "-".into()),
            entry.path.display().to_string(),
        ]);
    }
    print_line(&table.trim_fmt())
}

fn print_pruned(pruned: &[Pruned], mode: PruneMode) -> Result<Exit, Failure> {
    if pruned.is_empty() {
        print_line("nothing to remove")?;
    }
    let mut exit = Exit::Ok;
    for one in pruned {
        let path = one.entry.path.display();
        let what = match (&one.error, mode) {
            (Some(error), _) => {
                exit = Exit::Io;
                format!("not removed {path}: {error}")
            }
            (None, PruneMode::DryRun) => format!("would remove {path}"),
            (None, PruneMode::Remove) => format!("removed {path}"),
        };
        let kept = one
            .branch_kept
            .as_ref()
            .map(|branch| format!(" (branch {branch} has commits and stays)"));
        print_line(&format!("{what}{}", kept.unwrap_or_default()))?;
    }
    Ok(exit)
}

fn print_line(text: &str) -> Result<(), Failure> {
    writeln!(std::io::stdout().lock(), "{text}")
        .map_err(|error| Failure::new(Exit::Io, format!("cannot write the output: {error}")))
}

/// The two largest units of an age.
fn age(secs: u64) -> String {
    let (days, hours, minutes) = (secs / 86_400, secs / 3600 % 24, secs / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{secs}s"),
        (0, 0, minutes) => format!("{minutes}m"),
        (0, hours, minutes) => format!("{hours}h {minutes}m"),
        (days, hours, _) => format!("{days}d {hours}h"),
    }
}

/// Bytes in the unit that leaves up to four digits.
fn size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} B"),
        10_000..10_000_000 => format!("{} kB", bytes / 1000),
        10_000_000..10_000_000_000 => format!("{} MB", bytes / 1_000_000),
        _ => format!("{} GB", bytes / 1_000_000_000),
    }
}

fn failure(error: WorktreeError) -> Failure {
    let exit = if error.is_configuration() { Exit::Problems } else { Exit::Io };
    Failure::from_error(exit, &error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_read_with_days() {
        assert_eq!(parse_age("24h"), Ok(Duration::from_secs(86_400)));
        assert_eq!(parse_age("7d"), Ok(Duration::from_secs(7 * 86_400)));
        assert_eq!(parse_age("0s"), Ok(Duration::ZERO));
        let wrong = |text: &str| Err(format!("{text:?} is not a duration such as 24h or 7d"));
        for text in ["soon", "-1h", "24", "1mo"] {
            assert_eq!(parse_age(text), wrong(text));
        }
    }

    #[test]
    fn ages_and_sizes_are_short() {
        assert_eq!([age(59), age(3599), age(7260), age(90_000)], ["59s", "59m", "2h 1m", "1d 1h"]);
        assert_eq!([size(9_999), size(10_000), size(52_428_800)], ["9999 B", "10 kB", "52 MB"]);
    }
}
