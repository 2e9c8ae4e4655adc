//! `fleet sched`: what is due, and runs by hand.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;

use super::bundle_source::BundleSource;
use super::{Exit, Failure, Global};
use crate::bundle::{Bundle, Task};
use crate::clock::Clock;
use crate::run::TaskName;
use crate::runner::{ServeLock, by_hand, new_run_id};

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
    Next(NextArgs),
    /// Makes a task due now, once
    Trigger {
        task: String,
        #[command(flatten)]
        source: BundleSource,
    },
    /// Reviews and replays dead letters
    Dlq(super::dlq::DlqArgs),
}

#[derive(Debug, clap::Args)]
struct NextArgs {
    task: String,
    #[command(flatten)]
    source: BundleSource,
    /// List due times later than this RFC 3339 instant [default: now]
    #[arg(long, value_name = "TIME")]
    from: Option<Timestamp>,
    /// How many
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    count: u32,
    /// JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Carries out the verb.
pub fn run(args: SchedArgs, global: &Global) -> Result<Exit, Failure> {
    match args.verb {
        SchedVerb::List { source, json } => list(&source, json, global),
        SchedVerb::Next(args) => next(&args, global),
        SchedVerb::Trigger { task, source } => trigger(&task, &source, global),
        SchedVerb::Dlq(args) => super::dlq::run(args, global),
    }
}

#[derive(Serialize)]
struct ListedTask<'a> {
    task: &'a TaskName,
    enabled: bool,
    schedule: Option<&'a str>,
    timezone: &'a str,
    next_due: Option<Timestamp>,
    next_due_local: Option<String>,
    tags: &'a [String],
    description: Option<&'a str>,
}

impl<'a> ListedTask<'a> {
    fn new(task: &'a Task, now: Timestamp) -> Self {
        let schedule = task.schedule.as_ref().map(|schedule| &schedule.schedule);
        let next = schedule.filter(|_| task.enabled).and_then(|schedule| schedule.next_after(now));
        ListedTask {
            task: &task.name,
            enabled: task.enabled,
            schedule: schedule.map(|schedule| schedule.expression()),
            timezone: &task.timezone,
            next_due: next,
            next_due_local: next.zip(schedule).map(|(due, schedule)| schedule.local(due)),
            tags: &task.tags,
            description: task.description.as_deref(),
        }
    }
}

fn list(source: &BundleSource, json: bool, global: &Global) -> Result<Exit, Failure> {
    let bundle = source.valid(global)?;
    let now = Clock::System.now();
    let tasks: Vec<ListedTask<'_>> =
        bundle.tasks.values().map(|task| ListedTask::new(task, now)).collect();
    if json {
        super::print_json(&tasks)?;
        return Ok(Exit::Ok);
    }
    if tasks.is_empty() {
        super::print("the bundle has no tasks")?;
        return Ok(Exit::Ok);
    }
    let mut table = super::table(&["TASK", "SCHEDULE", "NEXT DUE", "ZONE"]);
    for task in &tasks {
        table.add_row([
            task.task.as_str(),
            task.schedule.unwrap_or("by hand"),
            &next_words(task),
            task.timezone,
        ]);
    }
    super::print(&table.to_string())?;
    Ok(Exit::Ok)
}

fn next_words(task: &ListedTask<'_>) -> String {
    match (task.next_due, task.enabled) {
        (Some(due), _) => local(due, task.timezone),
        (None, false) => "disabled".to_owned(),
        (None, true) => "-".to_owned(),
    }
}

/// A short local time for tables.
pub(super) fn local(at: Timestamp, zone: &str) -> String {
    let zone = TimeZone::get(zone).unwrap_or(TimeZone::UTC);
    at.to_zoned(zone).strftime("%a %Y-%m-%d %H:%M %Z").to_string()
}

/// One line of `sched next --json`; the names are documented.
#[derive(Serialize)]
struct NextDue {
    due: Timestamp,
    local: String,
    note: Option<String>,
}

fn next(args: &NextArgs, global: &Global) -> Result<Exit, Failure> {
    let bundle = args.source.valid(global)?;
    let task = find(&bundle, &args.task)?;
    let Some(schedule) = task.schedule.as_ref().map(|schedule| &schedule.schedule) else {
        return Err(Failure::new(
            Exit::WrongState,
            format!("task {} has no schedule: it runs by hand only", task.name),
        )
        .hint(format!("fleet sched trigger {} runs it now", task.name)));
    };
    let from = args.from.unwrap_or_else(|| Clock::System.now());
    let dues: Vec<NextDue> =
        std::iter::successors(schedule.next_after(from), |due| schedule.next_after(*due))
            .take(args.count as usize)
            .map(|due| NextDue { due, local: schedule.local(due), note: schedule.note(due) })
            .collect();
    if args.json {
        super::print_json(&dues)?;
        return Ok(Exit::Ok);
    }
    for due in &dues {
        let note = due.note.as_ref().map_or(String::new(), |note| format!("  ({note})"));
        super::print(&format!("{}{note}", due.local))?;
    }
    Ok(Exit::Ok)
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

fn trigger(name: &str, source: &BundleSource, global: &Global) -> Result<Exit, Failure> {
    let bundle = source.valid(global)?;
    let task = find(&bundle, name)?;
    let run_id =
        new_run_id(&Clock::System).map_err(|error| Failure::from_error(Exit::Io, &error))?;
    let occurrence = by_hand(task, run_id, Clock::System.now());
    let store = global.store()?;
    let inserted = global.block_on(store.insert_occurrences(vec![occurrence], None))??;
    let [run] = inserted.as_slice() else {
        let text = format!("task {} was triggered at this very instant already", task.name);
        return Err(Failure::new(Exit::Conflict, text).hint("fleet runs list shows its run"));
    };
    if let Err(error) = global.config.state.wake() {
        tracing::warn!(error = %error, "cannot touch the wake file: a daemon starts the run late");
    }
    super::print(&format!("{run} is due now"))?;
    let name = &task.name;
    super::print(&match ServeLock::holder(&global.config.state) {
        Some(_) if task.enabled => format!("fleet runs logs -f {run} follows it"),
        Some(_) => format!("task {name} is disabled, and is run once all the same"),
        None => format!(
            "no daemon runs on {}: it starts with the next `fleet serve`; \
             `fleet task run {name}` runs one in the foreground",
            global.config.state.root().display()
        ),
    })?;
    Ok(Exit::Ok)
}
