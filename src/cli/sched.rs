//! `fleet sched`: what is due, and runs by hand.

mod cancel;
mod list;
mod next;
mod pause;
mod trigger;

use std::collections::HashMap;

use jiff::Timestamp;

use super::bundle_source::BundleSource;
use super::{Exit, Failure, Global};
use crate::bundle::{Bundle, Task};
use crate::run::TaskName;
use crate::schedule;
use crate::store::HeldTask;

/// Shows and changes what is scheduled.
#[derive(Debug, clap::Args)]
pub struct SchedArgs {
    #[command(subcommand)]
    verb: SchedVerb,
}

#[derive(Debug, clap::Subcommand)]
enum SchedVerb {
    /// Lists tasks with their schedule and next due time
    List {
        #[command(flatten)]
        source: BundleSource,
        /// JSON instead of a table
        #[arg(long)]
        json: bool,
    },
    /// Lists a task's next due times
    Next(next::NextArgs),
    /// Makes a task due now, once
    Trigger {
        /// The task's name
        task: String,
        #[command(flatten)]
        source: BundleSource,
    },
    /// Holds a task's schedule until it is resumed
    Pause(pause::PauseArgs),
    /// Ends a task's pause, or its parking after too many failures
    Resume {
        /// The task's name
        task: String,
    },
    /// Ends a run that waits or runs
    Cancel(cancel::CancelArgs),
    /// Reviews and replays dead letters
    Dlq(super::dlq::DlqArgs),
}

/// Carries out the verb.
pub fn run(args: SchedArgs, global: &Global) -> Result<Exit, Failure> {
    match args.verb {
        SchedVerb::List { source, json } => list::run(&source, json, global),
        SchedVerb::Next(args) => next::run(&args, global),
        SchedVerb::Trigger { task, source } => trigger::run(&task, &source, global),
        SchedVerb::Pause(args) => pause::pause(&args, global),
        SchedVerb::Resume { task } => pause::resume(&task, global),
        SchedVerb::Cancel(args) => cancel::run(&args, global),
        SchedVerb::Dlq(args) => super::dlq::run(args, global),
    }
}

/// Tells a daemon to look at the store now.
fn wake(global: &Global) {
    if let Err(error) = global.config.state.wake() {
        tracing::warn!(error = %error, "cannot touch the wake file: a daemon notices late");
    }
}

/// A short local time for tables.
pub(super) fn local(at: Timestamp, zone: &str) -> String {
    at.to_zoned(schedule::zone(zone)).strftime("%a %Y-%m-%d %H:%M %Z").to_string()
}

/// How tasks are held, and how many runs their schedules have started.
type Standing = (HashMap<TaskName, HeldTask>, HashMap<TaskName, u64>);

/// What the store says of tasks; nothing where there is no store yet.
fn standing(global: &Global) -> Result<Standing, Failure> {
    let Some(store) = global.existing_store()? else { return Ok(Standing::default()) };
    let held = global.block_on(store.held_tasks())??;
    Ok((held, global.block_on(store.scheduled_runs())??))
}

fn find<'a>(bundle: &'a Bundle, name: &str) -> Result<&'a Task, Failure> {
    let task = bundle.tasks.values().find(|task| task.name.as_str() == name);
    task.map(AsRef::as_ref).ok_or_else(|| {
        let near = bundle
            .tasks
            .keys()
            .map(|known| (strsim::damerau_levenshtein(known.as_str(), name), known))
            .min()
            .filter(|(distance, _)| *distance <= 3);
        let hint = match near {
            Some((_, known)) => format!("did you mean {known}?"),
            None => "fleet sched list shows the bundle's tasks".to_owned(),
        };
        Failure::new(Exit::Usage, format!("the bundle has no task {name:?}")).hint(hint)
    })
}
