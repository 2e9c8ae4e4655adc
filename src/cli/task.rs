//! `fleet task list`, `fleet task run` and `fleet task memories`.

mod memories;

use std::sync::Arc;
use std::time::Duration;

use super::bundle_source::BundleSource;
use super::{Exit, Failure, Global, follow, logging};
use crate::bundle::{Bundle, Task};
use crate::clock::Clock;
use crate::run::{Cancel, CancelReason, RunState, TaskName};
use crate::runner::{Context, TaskRun};

/// How long the printing of a log may trail behind its run.
const LAST_LINES: Duration = Duration::from_secs(2);

/// Lists and runs tasks.
#[derive(Debug, clap::Args)]
pub struct TaskArgs {
    #[command(subcommand)]
    verb: TaskVerb,
}

#[derive(Debug, clap::Subcommand)]
enum TaskVerb {
    /// Lists the bundle's tasks
    List(ListArgs),
    /// Runs one task now, in the foreground, without a daemon
    Run(RunArgs),
    /// Shows and removes what a task's runs remember
    Memories(memories::MemoriesArgs),
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    #[command(flatten)]
    source: BundleSource,
    /// JSON instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct RunArgs {
    /// The task's name
    task: String,
    #[command(flatten)]
    source: BundleSource,
    /// Show what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
}

/// Carries out the verb.
pub fn run(args: TaskArgs, global: &Global) -> Result<Exit, Failure> {
    match args.verb {
        TaskVerb::List(args) => list(&args, global),
        TaskVerb::Memories(args) => memories::run(args, global),
        TaskVerb::Run(args) => {
            let (bundle, task) = find(&args, global)?;
            if args.dry_run {
                dry_run(&bundle, &task, global)
            } else {
                global.block_on(carry_out(bundle, task, global))?
            }
        }
    }
}

fn find(args: &RunArgs, global: &Global) -> Result<(Arc<Bundle>, Arc<Task>), Failure> {
    let bundle = args.source.valid(global)?;
    let task = bundle.tasks.get(&TaskName::new(&args.task)).cloned().ok_or_else(|| {
        let names: Vec<&str> = bundle.tasks.keys().map(TaskName::as_str).collect();
        Failure::new(Exit::Usage, format!("the bundle {} has no task {:?}", bundle.name, args.task))
            .hint(format!("its tasks: {}", names.join(", ")))
    })?;
    Ok((bundle, task))
}

fn list(args: &ListArgs, global: &Global) -> Result<Exit, Failure> {
    let bundle = args.source.valid(global)?;
    let rows: Vec<_> = bundle.tasks.values().map(|task| row(task)).collect();
    if args.json {
        super::print_json(&rows)?;
        return Ok(Exit::Ok);
    }
    let mut table = super::table(&["TASK", "ENABLED", "SCHEDULE", "ZONE", "MODEL", "DESCRIPTION"]);
    for task in bundle.tasks.values() {
        let schedule =
            task.schedule.as_ref().map_or("by hand", |schedule| schedule.schedule.expression());
        let enabled = if task.enabled { "yes" } else { "no" };
        let model = format!("{}/{}", task.model.provider, task.model.model);
        table.add_row([
            task.name.as_str(),
            enabled,
            schedule,
            &task.timezone,
            &model,
            task.description.as_deref().unwrap_or(""),
        ]);
    }
    super::print(&table.to_string())?;
    Ok(Exit::Ok)
}

fn row(task: &Task) -> serde_json::Value {
    serde_json::json!({
        "task": task.name,
        "enabled": task.enabled,
        "schedule": task.schedule.as_ref().map(|schedule| schedule.schedule.expression()),
        "timezone": task.timezone,
        "model": format!("{}/{}", task.model.provider, task.model.model),
        "persona": task.persona.as_ref().map(|persona| &persona.name),
        "tags": task.tags,
        "owner": task.owner,
        "description": task.description,
    })
}

/// What a run would be made of. Starts nothing and writes nothing.
fn dry_run(bundle: &Bundle, task: &Task, global: &Global) -> Result<Exit, Failure> {
    let limits = &task.limits;
    let ceiling = |value: Option<String>| value.unwrap_or_else(|| "unlimited".to_owned());
    let repo = task.repo.as_ref().map_or_else(
        || {
            format!(
                "private, {}",
                global.config.state.repositories().join(task.name.as_str()).display()
            )
        },
        |repo| repo.display().to_string(),
    );
    let lines = [
        ("task", task.name.to_string()),
        ("bundle", format!("{} at {}", bundle.name, bundle.commit)),
        (
            "persona",
            task.persona.as_ref().map_or("none".to_owned(), |persona| persona.name.clone()),
        ),
        ("model", format!("{}/{}", task.model.provider, task.model.model)),
        ("repository", repo),
        (
            "branch",
            if task.worktree.enabled {
                format!("{}{}-<run>", task.worktree.branch_prefix, task.name)
            } else {
                "none: plain checkout, changes are not collected".to_owned()
            },
        ),
        ("cost ceiling", ceiling(limits.max_cost.map(|cost| cost.to_string()))),
        ("token ceiling", ceiling(limits.max_total_tokens.map(|tokens| tokens.to_string()))),
        ("iterations", ceiling(limits.max_iterations.map(|rounds| rounds.to_string()))),
        (
            "sandbox",
            format!(
                "{} MB memory, {} cpus, {} processes, {} MB disk, {} open files, no network",
                limits.sandbox.memory_mb,
                limits.sandbox.cpus,
                limits.sandbox.pids,
                limits.sandbox.disk_mb,
                limits.sandbox.nofile
            ),
        ),
        ("retries", task.retry.max_retries.to_string()),
    ];
    let mut text = String::new();
    for (name, value) in lines {
        text.push_str(&format!("{name:<14} {value}\n"));
    }
    text.push_str(&format!(
        "\nprompt template:\n{}\n\nnothing was started (--dry-run)",
        task.prompt.trim_end()
    ));
    super::print(&text)?;
    Ok(Exit::Ok)
}

async fn carry_out(bundle: Arc<Bundle>, task: Arc<Task>, global: &Global) -> Result<Exit, Failure> {
    super::open::refuse_root()?;
    logging::start_quiet(&global.redactor);
    let config = global.config.clone();
    super::make_state_dir(&config.state)?;
    let context = Context::open(config, Clock::System, global.redactor.clone())
        .await
        .map_err(super::open::failure)?;
    let cancel = Cancel::default();
    stop_on_signals(cancel.clone())?;
    let failed = |error: crate::runner::TaskRunError| Failure::from_error(Exit::Io, &error);
    let run = TaskRun::begin(context.clone(), bundle, &task, cancel).await.map_err(failed)?;
    let run_id = run.run_id().clone();
    super::print(&format!("run {run_id} of task {}", task.name))?;
    let mut shown = std::pin::pin!(follow::events(&context.store, &run_id));
    let mut carried = std::pin::pin!(run.carry_out());
    let row = tokio::select! {
        row = &mut carried => {
            // The log's last lines may still be on their way to the terminal.
            if let Ok(shown) = tokio::time::timeout(LAST_LINES, shown).await {
                shown?;
            }
            row
        }
        ended = &mut shown => {
            ended?;
            carried.await
        }
    }
    .map_err(failed)?;
    super::print(&follow::last_line(&row))?;
    Ok(if row.state == RunState::Success { Exit::Ok } else { Exit::RunFailed })
}

/// The first signal interrupts the run, which is recorded; the second ends the process.
fn stop_on_signals(cancel: Cancel) -> Result<(), Failure> {
    use tokio::signal::unix::{SignalKind, signal};
    let failed = |error| Failure::new(Exit::Io, format!("cannot listen for signals: {error}"));
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            if cancel.reason().is_some() {
                std::process::exit(130);
            }
            cancel.cancel(CancelReason::Operator);
        }
    });
    Ok(())
}
