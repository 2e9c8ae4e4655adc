//! `fleet sched pause` and `fleet sched resume`: an operator's hold on a task's schedule.

use jiff::{Span, Timestamp};

use super::{find, local, wake};
use crate::cli::bundle_source::BundleSource;
use crate::cli::{Exit, Failure, Global, print};
use crate::clock::Clock;
use crate::run::TaskName;

#[derive(Debug, clap::Args)]
pub(super) struct PauseArgs {
    /// The task's name
    task: String,
    #[command(flatten)]
    source: BundleSource,
    /// Why, for whoever looks at the task later
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// When the pause ends by itself: a time from now such as 2h or 3d, or an RFC 3339 instant
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
}

pub(super) fn pause(args: &PauseArgs, global: &Global) -> Result<Exit, Failure> {
    let bundle = args.source.valid(global)?;
    let task = find(&bundle, &args.task)?;
    if task.schedule.is_none() {
        let text = format!("task {} has no schedule: there is nothing to pause", task.name);
        return Err(Failure::new(Exit::WrongState, text));
    }
    if args.reason.trim().is_empty() {
        let text = "--reason is empty";
        return Err(Failure::new(Exit::Usage, text).hint("say why, for whoever finds it paused"));
    }
    if let Some(control) = args.reason.chars().find(|c| c.is_control()) {
        let text = format!("--reason has the control character {}", control.escape_default());
        return Err(Failure::new(Exit::Usage, text).hint("write it on one line of plain text"));
    }
    let now = Clock::System.now();
    let until = args.until.as_deref().map(|text| instant(text, now)).transpose()?;
    let store = global.store()?;
    global.block_on(store.pause_task(task.name.clone(), now, until, args.reason.clone()))??;
    wake(global);
    let end = match until {
        Some(until) => format!("until {}", local(until, &task.timezone)),
        None => format!("until `fleet sched resume {}`", task.name),
    };
    print(&format!("task {} is paused {end}: {}", task.name, args.reason))?;
    print(
        "what is recorded as pending or running already goes on; fleet sched cancel RUN ends it",
    )?;
    Ok(Exit::Ok)
}

/// A later instant, or a time from now.
fn instant(text: &str, now: Timestamp) -> Result<Timestamp, Failure> {
    let refuse = |why: &str| {
        Failure::new(Exit::Usage, format!("--until {text}: {why}"))
            .hint("write a time from now such as 2h or 3d, or an instant: 2026-12-31T18:00:00Z")
    };
    let until = match text.parse::<Timestamp>() {
        Ok(until) => until,
        Err(_) => {
            let span: Span = text.parse().map_err(|_| refuse("not a time"))?;
            let zoned = now.to_zoned(jiff::tz::TimeZone::UTC);
            zoned.checked_add(span).map_err(|_| refuse("out of range"))?.timestamp()
        }
    };
    if until <= now {
        return Err(refuse("this lies in the past"));
    }
    Ok(until)
}

pub(super) fn resume(name: &str, global: &Global) -> Result<Exit, Failure> {
    let not_held = || {
        Failure::new(Exit::WrongState, format!("task {name} is neither paused nor parked"))
            .hint("fleet sched list shows which tasks are")
    };
    let store = global.named_store()?.ok_or_else(not_held)?;
    let held = global.block_on(store.resume_task(TaskName::new(name)))??.ok_or_else(not_held)?;
    wake(global);
    print(&format!("task {name} goes on with its next due time; it was {}", held.words()))?;
    if held.parked_at.is_some() {
        print("its failures in a row are forgotten; fleet dlq list shows its dead letters")?;
    }
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_ends_at_an_instant_or_after_a_time() {
        let now: Timestamp = "2026-03-01T12:00:00Z".parse().expect("an instant");
        let read = |text| instant(text, now).map(|at| at.to_string()).map_err(|f| f.message);
        assert_eq!(read("2h"), Ok("2026-03-01T14:00:00Z".to_owned()));
        assert_eq!(read("3d"), Ok("2026-03-04T12:00:00Z".to_owned()));
        assert_eq!(read("2026-03-01T18:00:00Z"), Ok("2026-03-01T18:00:00Z".to_owned()));
        assert_eq!(
            read("2026-02-01T18:00:00Z"),
            Err("--until 2026-02-01T18:00:00Z: this lies in the past".to_owned())
        );
        assert_eq!(read("soon"), Err("--until soon: not a time".to_owned()));
        assert_eq!(read("0s"), Err("--until 0s: this lies in the past".to_owned()));
    }
}
