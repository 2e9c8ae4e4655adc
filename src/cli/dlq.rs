//! `fleet dlq`, also `fleet sched dlq`.

use super::{Exit, Failure, Global};
use crate::clock::Clock;
use crate::run::{RunId, RunState, TaskName};
use crate::store::{DeadLetterRow, ReplayTarget, Store, StoreError};

/// Reviews and replays dead letters (also `fleet sched dlq`).
#[derive(Debug, clap::Args)]
pub struct DlqArgs {
    #[command(subcommand)]
    verb: DlqVerb,
}

#[derive(Debug, clap::Subcommand)]
enum DlqVerb {
    /// Lists dead letters, the newest first
    List(ListArgs),
    /// Puts dead letters back to pending with a fresh count of attempts
    Replay(ReplayArgs),
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    /// Only those of tasks with this tag
    #[arg(long)]
    tag: Option<String>,
    /// At most so many
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Skip so many
    #[arg(long, default_value_t = 0)]
    offset: u32,
    /// JSON instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct ReplayArgs {
    /// A run (an unambiguous beginning of its id is enough), or a task: its newest dead letter
    #[arg(value_name = "RUN|TASK")]
    what: Option<String>,
    #[command(flatten)]
    many: Many,
    /// Print what would be replayed, and change nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, clap::Args)]
#[group(multiple = false, conflicts_with = "what")]
struct Many {
    /// Every dead letter
    #[arg(long)]
    all: bool,
    /// Every dead letter of tasks with this tag
    #[arg(long)]
    tag: Option<String>,
}

/// Carries out the verb.
pub fn run(args: DlqArgs, global: &Global) -> Result<Exit, Failure> {
    match args.verb {
        DlqVerb::List(args) => list(args, global),
        DlqVerb::Replay(args) => replay(args, global),
    }
}

fn list(args: ListArgs, global: &Global) -> Result<Exit, Failure> {
    let store = global.store()?;
    let rows = global.block_on(store.dead_letters(args.tag, args.limit, args.offset))??;
    if args.json {
        super::print_json(&rows)?;
        return Ok(Exit::Ok);
    }
    if rows.is_empty() {
        super::print("no dead letters")?;
        return Ok(Exit::Ok);
    }
    let mut table = super::table(&["RUN", "TASK", "SINCE (UTC)", "ATTEMPTS", "REASON"]);
    for row in &rows {
        table.add_row([
            row.run_id.to_string(),
            row.task.to_string(),
            super::runs::time(row.dead_lettered_at),
            row.dead_letter_attempts.to_string(),
            super::runs::plain_line(&row.dead_letter_reason),
        ]);
    }
    super::print(&table.to_string())?;
    Ok(Exit::Ok)
}

fn replay(args: ReplayArgs, global: &Global) -> Result<Exit, Failure> {
    let store = global.store()?;
    let target = |store: Store| async move { choose(&store, args.what, args.many).await };
    let target = global.block_on(target(store.clone()))??;
    let runs = if args.dry_run {
        global.block_on(would_replay(&store, &target))??
    } else {
        let runs = global.block_on(store.replay(target, Clock::System.now()))??;
        wake(global);
        runs
    };
    let done = if args.dry_run { "would replay" } else { "replayed" };
    for run in &runs {
        super::print(&format!("{done} {run}"))?;
    }
    if runs.is_empty() {
        super::print("no dead letters to replay")?;
    }
    Ok(Exit::Ok)
}

/// The replay is committed whether or not a daemon can be told: it looks at the store by itself too.
fn wake(global: &Global) {
    if let Err(error) = global.config.state.wake() {
        tracing::warn!(error = %error, "cannot touch the wake file: a daemon starts the replay late");
    }
}

/// A task's exact name wins over the beginning of a run's id.
async fn choose(store: &Store, what: Option<String>, many: Many) -> Result<ReplayTarget, Failure> {
    if let Some(tag) = many.tag {
        return Ok(ReplayTarget::Tag(tag));
    }
    if many.all {
        return Ok(ReplayTarget::All);
    }
    let what = what.ok_or_else(|| {
        Failure::new(Exit::Usage, "nothing to replay is given")
            .hint("give a run or a task, or --all, or --tag TAG; fleet dlq list shows them")
    })?;
    let task = TaskName::new(&what);
    if store.latest_run(task.clone()).await?.is_some() {
        return Ok(ReplayTarget::Task(task));
    }
    match store.find_run(what.clone()).await {
        Ok(run) => Ok(ReplayTarget::Run(run.to_string())),
        Err(StoreError::RunNotFound(_)) => Err(Failure::new(
            Exit::Usage,
            format!("no run and no task with a run is called {what:?}"),
        )
        .hint("fleet dlq list shows the dead letters")),
        Err(error) => Err(error.into()),
    }
}

/// What [`Store::replay`] would answer.
async fn would_replay(store: &Store, target: &ReplayTarget) -> Result<Vec<RunId>, Failure> {
    let all = async |tag| store.dead_letters(tag, u32::MAX, 0).await;
    let ids = |rows: Vec<DeadLetterRow>| rows.into_iter().map(|row| row.run_id).collect();
    match target {
        ReplayTarget::Run(id) => {
            let run = store.run(store.find_run(id.clone()).await?).await?;
            match run.state {
                RunState::DeadLettered | RunState::Error => Ok(vec![run.run_id]),
                other => Err(StoreError::WrongState {
                    run_id: run.run_id,
                    state: other.as_str(),
                    needed: "dead_lettered",
                }
                .into()),
            }
        }
        ReplayTarget::Task(task) => newest_failed(store, task).await.map(|run| vec![run]),
        ReplayTarget::All => Ok(ids(all(None).await?)),
        ReplayTarget::Tag(tag) => Ok(ids(all(Some(tag.clone())).await?)),
    }
}

async fn newest_failed(store: &Store, task: &TaskName) -> Result<RunId, Failure> {
    let mut newest = None;
    for state in [RunState::DeadLettered, RunState::Error] {
        let filter = crate::store::RunFilter {
            task: Some(task.clone()),
            state: Some(state),
            limit: 1,
            ..Default::default()
        };
        newest = newest.max(store.runs(filter).await?.pop().map(|row| (row.due, row.run_id)));
    }
    newest
        .map(|(_, run)| run)
        .ok_or_else(|| Failure::new(Exit::Usage, format!("task {task} has no dead letter")))
}
