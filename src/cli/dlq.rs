//! `fleet dlq`, also `fleet sched dlq`.

use super::visible::{instant, one_line};
use super::{Exit, Failure, Global, print, print_json, table};
use crate::clock::Clock;
use crate::run::{RunId, RunState, TaskName};
use crate::store::{DeadLetterRow, ReplayTarget, RunFilter, RunRow, Store, StoreError};

/// Characters of a reason in the table.
const REASON_WIDTH: usize = 80;
const NONE: &str = "there are no dead letters";

/// Reviews, replays and drops dead letters (also `fleet sched dlq`).
#[derive(Debug, clap::Args)]
pub struct DlqArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Lists dead letters, the newest first
    List(ListArgs),
    /// Puts dead letters back to pending, with a fresh count of attempts
    Replay(ReplayArgs),
    /// Closes a dead letter without running it: the run is cancelled, its reason is kept
    Drop(DropArgs),
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    /// Only those of tasks with this tag
    #[arg(long)]
    tag: Option<String>,
    /// At most this many
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Leave out this many of the newest
    #[arg(long, default_value_t = 0)]
    offset: u32,
    /// JSON instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct ReplayArgs {
    #[command(flatten)]
    which: Which,
    /// Name what would be replayed, and do nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, clap::Args)]
struct DropArgs {
    /// A run's id or the beginning of it
    #[arg(value_name = "RUN")]
    run: String,
    /// Why, for whoever reads the run later
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct Which {
    /// A run's id or the beginning of it, or a task: its newest dead letter
    #[arg(value_name = "RUN|TASK")]
    one: Option<String>,
    /// Every dead letter
    #[arg(long)]
    all: bool,
    /// Those of tasks with this tag
    #[arg(long)]
    tag: Option<String>,
}

/// Carries out the verb.
pub fn run(args: DlqArgs, global: &Global) -> Result<Exit, Failure> {
    global.block_on(async {
        match args.verb {
            Verb::List(args) => list(args, global).await,
            Verb::Replay(args) => replay(args, global).await,
            Verb::Drop(args) => drop_one(args, global).await,
        }
    })?
}

async fn list(args: ListArgs, global: &Global) -> Result<Exit, Failure> {
    let rows = match global.named_store()? {
        Some(store) => store.dead_letters(args.tag, args.limit, args.offset).await?,
        None => Vec::new(),
    };
    if args.json {
        print_json(&rows)?;
    } else if rows.is_empty() {
        print("no dead letters")?;
    } else {
        print(&letters_table(&rows))?;
    }
    Ok(Exit::Ok)
}

fn letters_table(rows: &[DeadLetterRow]) -> String {
    let mut table = table(&["RUN", "TASK", "SINCE", "TRIES", "TAGS", "REASON"]);
    for row in rows {
        table.add_row([
            row.run_id.to_string(),
            row.task.to_string(),
            instant(row.dead_lettered_at),
            row.dead_letter_attempts.to_string(),
            row.tags.join(","),
            one_line(&row.dead_letter_reason, REASON_WIDTH),
        ]);
    }
    table.trim_fmt()
}

async fn drop_one(args: DropArgs, global: &Global) -> Result<Exit, Failure> {
    let Some(store) = global.named_store()? else {
        return Err(StoreError::RunNotFound(args.run).into());
    };
    let run = store.find_run(args.run).await?;
    store.drop_dead_letter(run.clone(), args.reason).await.map_err(|error| match error {
        StoreError::WrongState { .. } => Failure::from(error)
            .hint("only a dead letter can be dropped: fleet dlq list shows them"),
        error => error.into(),
    })?;
    print(&format!("dropped {run}: it is cancelled"))?;
    Ok(Exit::Ok)
}

async fn replay(args: ReplayArgs, global: &Global) -> Result<Exit, Failure> {
    let Some(store) = global.named_store()? else {
        return if args.which.all { nothing_at_all() } else { Err(nothing(NONE.to_owned())) };
    };
    let target = target(&args.which, &store).await?;
    let found = candidates(&store, &target).await?;
    if found.is_empty() {
        return match target {
            ReplayTarget::All => nothing_at_all(),
            other => Err(nothing(absent(&other))),
        };
    }
    if args.dry_run {
        found.iter().try_for_each(|run| print(&format!("would replay {run}")))?;
        return Ok(Exit::Ok);
    }
    let replayed = store.replay(target, Clock::System.now()).await?;
    global.config.state.wake().map_err(|error| {
        let path = global.config.state.wake_file();
        let message = format!("replayed, but cannot touch {}: {error}", path.display());
        Failure::new(Exit::Io, message).hint("a running fleet serve takes them at its next look")
    })?;
    replayed.iter().try_for_each(|run| print(&format!("replayed {run}: it is pending")))?;
    Ok(Exit::Ok)
}

async fn target(which: &Which, store: &Store) -> Result<ReplayTarget, Failure> {
    match (&which.one, &which.tag) {
        (Some(one), _) => match store.find_run(one.clone()).await {
            Ok(run) => Ok(ReplayTarget::Run(run.to_string())),
            Err(StoreError::RunNotFound(_)) => Ok(ReplayTarget::Task(TaskName::new(one))),
            Err(error) => Err(error.into()),
        },
        (None, Some(tag)) => Ok(ReplayTarget::Tag(tag.clone())),
        (None, None) => Ok(ReplayTarget::All),
    }
}

/// What the target names now. Refuses a run that is not dead.
async fn candidates(store: &Store, target: &ReplayTarget) -> Result<Vec<RunId>, Failure> {
    match target {
        ReplayTarget::Run(id) => {
            let row = store.run(RunId::new(id)).await?;
            match row.state {
                RunState::DeadLettered | RunState::Error => Ok(vec![row.run_id]),
                state => Err(wrong_state(row.run_id, state)),
            }
        }
        ReplayTarget::Task(task) => {
            let dead = newest(store, task, RunState::DeadLettered).await?;
            let broken = newest(store, task, RunState::Error).await?;
            let newest = dead.into_iter().chain(broken).max_by_key(|row| row.due);
            Ok(newest.map(|row| row.run_id).into_iter().collect())
        }
        ReplayTarget::All => all(store, None).await,
        ReplayTarget::Tag(tag) => all(store, Some(tag.clone())).await,
    }
}

async fn newest(store: &Store, task: &TaskName, state: RunState) -> Result<Vec<RunRow>, Failure> {
    let (task, state) = (Some(task.clone()), Some(state));
    Ok(store.runs(RunFilter { task, state, limit: 1, ..RunFilter::default() }).await?)
}

async fn all(store: &Store, tag: Option<String>) -> Result<Vec<RunId>, Failure> {
    let rows = store.dead_letters(tag, u32::MAX, 0).await?;
    Ok(rows.into_iter().map(|row| row.run_id).collect())
}

fn absent(target: &ReplayTarget) -> String {
    match target {
        ReplayTarget::Run(name) => format!("no dead letter is run {name}"),
        ReplayTarget::Task(name) => {
            format!("no run begins with {name}, and no task {name} has a dead letter")
        }
        ReplayTarget::All => NONE.to_owned(),
        ReplayTarget::Tag(tag) => format!("no dead letter has the tag {tag}"),
    }
}

fn wrong_state(run_id: RunId, state: RunState) -> Failure {
    let error = StoreError::WrongState { run_id, state: state.as_str(), needed: "dead_lettered" };
    Failure::from(error).hint(
        "runs that are dead_lettered or error can be replayed; to run the task afresh: fleet task run",
    )
}

/// Replaying every one of none is done already.
fn nothing_at_all() -> Result<Exit, Failure> {
    print(&format!("{NONE}: nothing to replay"))?;
    Ok(Exit::Ok)
}

fn nothing(message: String) -> Failure {
    Failure::new(Exit::Usage, message).hint("fleet dlq list shows what can be replayed")
}
