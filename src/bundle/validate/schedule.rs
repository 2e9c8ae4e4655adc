//! When a task is due: `schedule`, `jitter` and `schedule_until`. Refuses to read the clock, so that a
//! commit that is valid stays valid.

use std::time::Duration;

use jiff::Timestamp;

use super::limits::duration;
use super::range::check_range;
use crate::bundle::TaskSchedule;
use crate::bundle::raw::DurationText;
use crate::bundle::yaml::{Document, Finding, Path};
use crate::schedule::Schedule;

/// A longer one would move a task to another day for no reason.
const LONGEST_JITTER: Duration = Duration::from_secs(24 * 3600);

/// The keys of a task that say when it is due, as they are written.
#[derive(Debug, Default)]
pub(super) struct ScheduleKeys {
    pub(super) schedule: Option<String>,
    pub(super) jitter: Option<DurationText>,
    pub(super) schedule_until: Option<String>,
    pub(super) schedule_count: Option<u64>,
}

/// A task's schedule. Where the zone is unknown, the rest is still checked, as if it were UTC.
pub(super) fn check_schedule(
    task: &str,
    keys: ScheduleKeys,
    timezone: Option<&str>,
    inherited_jitter: Option<Duration>,
    document: &Document<'_>,
) -> Option<TaskSchedule> {
    let root = Path::root();
    let jitter = check_jitter(keys.jitter.as_ref(), &root.key("jitter"), document);
    check_range(keys.schedule_count, 1..=u64::MAX, &root.key("schedule_count"), document);
    let Some(expression) = keys.schedule else {
        let given = [
            ("jitter", keys.jitter.is_some()),
            ("schedule_until", keys.schedule_until.is_some()),
            ("schedule_count", keys.schedule_count.is_some()),
        ];
        check_needless(&given, document);
        return None;
    };
    let zone = timezone.unwrap_or("UTC");
    let end = check_end(keys.schedule_until.as_deref(), zone, document);
    let mut schedule = match Schedule::parse(&expression, zone) {
        Ok(schedule) => schedule,
        Err(error) => {
            let finding = Finding::error("invalid-schedule", error.to_string());
            document.report(&root.key("schedule"), finding.maybe_hint(error.hint));
            return None;
        }
    };
    if let Some(jitter) = jitter.or(inherited_jitter) {
        schedule = schedule.with_jitter(task, jitter);
    }
    if let Some(end) = end {
        schedule = schedule.until(end);
        check_ever_due(&schedule, document);
    }
    Some(TaskSchedule { schedule, count: keys.schedule_count })
}

/// Reports keys that say something about a schedule that is not there.
pub(super) fn check_needless(keys: &[(&str, bool)], document: &Document<'_>) {
    let root = Path::root();
    if document.is_broken(&root.key("schedule")) {
        return;
    }
    for (key, _) in keys.iter().filter(|(_, given)| *given) {
        let message = format!("{key}: the task has no schedule, it runs by hand only");
        let finding = Finding::error("useless-key", message);
        document.report_key(&root.key(key), finding.hint("add a schedule, or remove the key"));
    }
}

/// A jitter at its place; a mistake is reported.
pub(super) fn check_jitter(
    text: Option<&DurationText>,
    at: &Path,
    document: &Document<'_>,
) -> Option<Duration> {
    let jitter = duration(text, at, document)?;
    if jitter > LONGEST_JITTER {
        let written = text.map_or("", |text| &text.0);
        let message = format!("{}: {written} is out of range", at.text());
        document.report(at, Finding::error("invalid-value", message).hint("write 0s to 24h"));
        return None;
    }
    Some(jitter)
}

fn check_end(text: Option<&str>, zone: &str, document: &Document<'_>) -> Option<Timestamp> {
    match Schedule::parse_end(text?, zone) {
        Ok(end) => Some(end),
        Err(error) => {
            let finding = Finding::error("invalid-value", format!("schedule_until: {error}"));
            document.report(&Path::root().key("schedule_until"), finding.maybe_hint(error.hint));
            None
        }
    }
}

fn check_ever_due(schedule: &Schedule, document: &Document<'_>) {
    if schedule.next_after(Timestamp::MIN).is_none() {
        let message = format!("schedule {:?} is never due before its end", schedule.expression());
        let finding = Finding::error("invalid-schedule", message);
        let at = Path::root().key("schedule_until");
        document.report(&at, finding.hint("write a later end, or remove the key"));
    }
}
