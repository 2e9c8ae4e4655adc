//! `fleet sched next`: a task's next due times.

use jiff::Timestamp;
use serde::Serialize;

use super::{find, standing};
use crate::cli::bundle_source::BundleSource;
use crate::cli::{Exit, Failure, Global, print, print_json};
use crate::clock::Clock;

/// Whose due times, from when on, and how many.
#[derive(Debug, clap::Args)]
pub(super) struct NextArgs {
    /// The task's name
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

/// One line of `sched next --json`; the names are documented.
#[derive(Serialize)]
struct NextDue {
    due: Timestamp,
    local: String,
    note: Option<String>,
}

pub(super) fn run(args: &NextArgs, global: &Global) -> Result<Exit, Failure> {
    let bundle = args.source.valid(global)?;
    let task = find(&bundle, &args.task)?;
    let Some(counted) = task.schedule.as_ref() else {
        return Err(Failure::new(
            Exit::WrongState,
            format!("task {} has no schedule: it runs by hand only", task.name),
        )
        .hint(format!("fleet sched trigger {} runs it now", task.name)));
    };
    let schedule = &counted.schedule;
    let (held, used) = standing(global)?;
    let left = counted.left(used.get(&task.name).copied().unwrap_or(0));
    let most = left.map_or(u64::MAX, |left| left).min(args.count.into());
    let from = args.from.unwrap_or_else(|| Clock::System.now());
    let dues: Vec<NextDue> =
        std::iter::successors(schedule.next_after(from), |due| schedule.next_after(*due))
            .take(usize::try_from(most).unwrap_or(usize::MAX))
            .map(|due| NextDue { due, local: schedule.local(due), note: schedule.note(due) })
            .collect();
    if args.json {
        print_json(&dues)?;
        return Ok(Exit::Ok);
    }
    for due in &dues {
        let note = due.note.as_ref().map_or(String::new(), |note| format!("  ({note})"));
        print(&format!("{}{note}", due.local))?;
    }
    if dues.len() < args.count as usize {
        print(&match (counted.count, schedule.end()) {
            (Some(count), _) if left == Some(dues.len() as u64) => {
                format!("ended: schedule_count lets it run {count} times")
            }
            (_, Some(end)) => format!("ended: nothing is due after {}", schedule.local(end)),
            (_, None) => "nothing is due after 2099".to_owned(),
        })?;
    }
    if !task.enabled {
        print("the task is disabled: none of this runs (`enabled: false`)")?;
    } else if let Some(held) = held.get(&task.name).filter(|held| held.holds(Clock::System.now())) {
        print(&format!(
            "{}: none of this runs until `fleet sched resume {}`",
            held.words(),
            task.name
        ))?;
    }
    Ok(Exit::Ok)
}
