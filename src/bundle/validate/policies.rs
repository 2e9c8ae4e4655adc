//! When a task's occurrences run and when not: `misfire`, `overlap`, `serialization_key`, `priority`,
//! `run_if`, `park_after`.

use std::time::Duration;

use super::limits::{duration, parse_duration};
use super::range::check_range;
use super::schedule::check_needless;
use crate::bundle::raw::{
    DurationText, RawMisfire, RawMisfirePolicy, RawOnError, RawOverlap, RawRunIf, RawTask,
};
use crate::bundle::yaml::{Document, Finding, Path};
use crate::bundle::{Misfire, MisfirePolicy, OnError, Overlap, RunIf};

/// A task that fails that often without parking is meant never to park.
const MAX_PARK_AFTER: u32 = 1000;
/// Dead letters in a row after which a task parks itself.
const PARK_AFTER: u32 = 5;
/// The longest serialization key, in characters.
const MAX_KEY: usize = 128;

/// What a manifest's defaults say.
#[derive(Clone, Debug, Default)]
pub(super) struct Inherited {
    pub(super) misfire: RawMisfire,
    pub(super) overlap: Option<RawOverlap>,
    pub(super) park_after: Option<u32>,
}

/// The valid policies of a task.
pub(super) struct Policies {
    pub(super) misfire: Misfire,
    pub(super) overlap: Overlap,
    pub(super) serialization_key: Option<String>,
    pub(super) priority: i32,
    pub(super) run_if: Option<RunIf>,
    pub(super) park_after: u32,
}

/// Reports mistakes of what tasks may inherit.
pub(super) fn check_inherited(inherited: &Inherited, at: &Path, document: &Document<'_>) {
    check_misfire(&inherited.misfire, &at.key("misfire"), document);
    check_park_after(inherited.park_after, at, document);
}

/// Reports a task's mistakes; returns its policies over the inherited ones.
pub(super) fn check_policies(
    raw: &RawTask,
    inherited: &Inherited,
    document: &Document<'_>,
) -> Policies {
    let root = Path::root();
    let misfire = raw.misfire.clone().unwrap_or_default();
    check_misfire(&misfire, &root.key("misfire"), document);
    check_park_after(raw.park_after, &root, document);
    check_range(raw.priority, -100..=100, &root.key("priority"), document);
    check_needs_schedule(raw, document);
    if let Some(key) = &raw.serialization_key {
        check_key(key, &root.key("serialization_key"), document);
    }
    let run_if = raw.run_if.as_ref();
    Policies {
        misfire: resolve_misfire(&misfire, &inherited.misfire),
        overlap: resolve_overlap(raw.overlap.or(inherited.overlap)),
        serialization_key: raw.serialization_key.clone(),
        priority: raw.priority.unwrap_or(0),
        run_if: run_if.and_then(|run_if| check_run_if(run_if, &root.key("run_if"), document)),
        park_after: raw.park_after.or(inherited.park_after).unwrap_or(PARK_AFTER),
    }
}

fn check_park_after(value: Option<u32>, at: &Path, document: &Document<'_>) {
    check_range(value, 0..=MAX_PARK_AFTER, &at.key("park_after"), document);
}

/// Keys that change nothing without a schedule.
fn check_needs_schedule(raw: &RawTask, document: &Document<'_>) {
    if raw.schedule.is_none() {
        let keys = [
            ("misfire", raw.misfire.is_some()),
            ("overlap", raw.overlap.is_some()),
            ("run_if", raw.run_if.is_some()),
        ];
        check_needless(&keys, document);
    }
}

fn check_misfire(raw: &RawMisfire, at: &Path, document: &Document<'_>) {
    let key = at.key("max_delay");
    let Some(delay) = duration(raw.max_delay.as_ref(), &key, document) else { return };
    if raw.policy == Some(RawMisfirePolicy::Skip) {
        let finding = Finding::error("useless-key", "with policy: skip nothing runs late");
        document.report_key(&key, finding.hint("remove max_delay, or choose latest or all"));
    } else if delay < Duration::from_secs(60) {
        let message = "max_delay is shorter than a minute";
        let hint = "write at least 1m; with policy: skip nothing runs late";
        document.report(&key, Finding::error("invalid-value", message).hint(hint));
    }
}

fn resolve_misfire(task: &RawMisfire, inherited: &RawMisfire) -> Misfire {
    let default = Misfire::default();
    let policy = match task.policy.or(inherited.policy) {
        None => default.policy,
        Some(RawMisfirePolicy::Skip) => MisfirePolicy::Skip,
        Some(RawMisfirePolicy::Latest) => MisfirePolicy::Latest,
        Some(RawMisfirePolicy::All) => MisfirePolicy::All,
    };
    let delay = task.max_delay.as_ref().or(inherited.max_delay.as_ref());
    let delay = delay.and_then(|text| parse_duration(text).ok());
    Misfire { policy, max_delay: delay.unwrap_or(default.max_delay) }
}

fn resolve_overlap(raw: Option<RawOverlap>) -> Overlap {
    match raw {
        None | Some(RawOverlap::Skip) => Overlap::Skip,
        Some(RawOverlap::Queue) => Overlap::Queue,
        Some(RawOverlap::Allow) => Overlap::Allow,
        Some(RawOverlap::CancelRunning) => Overlap::CancelRunning,
    }
}

fn check_key(key: &str, at: &Path, document: &Document<'_>) {
    let message = if key.trim().is_empty() {
        "the serialization key is empty"
    } else if key.chars().count() > MAX_KEY {
        "the serialization key is longer than 128 characters"
    } else if key.contains(char::is_control) {
        "the serialization key holds a control character"
    } else {
        return;
    };
    let hint = "write what the tasks share, for example warehouse-db";
    document.report(at, Finding::error("invalid-value", message).hint(hint));
}

fn check_run_if(raw: &RawRunIf, at: &Path, document: &Document<'_>) -> Option<RunIf> {
    check_range(raw.exit_code, 0..=255, &at.key("exit_code"), document);
    let timeout = check_timeout(raw.timeout.as_ref(), &at.key("timeout"), document);
    let on_error = match raw.on_error {
        None | Some(RawOnError::Fail) => OnError::Fail,
        Some(RawOnError::Skip) => OnError::Skip,
        Some(RawOnError::Run) => OnError::Run,
    };
    let Some(command) = raw.command.clone() else {
        document.report_missing(at, "command", "write a command, for example test -e ready");
        return None;
    };
    if command.trim().is_empty() {
        let finding = Finding::error("invalid-value", "the command of run_if is empty");
        document
            .report(&at.key("command"), finding.hint("write a command, for example test -e ready"));
    }
    let exit_code = i32::try_from(raw.exit_code.unwrap_or(0)).unwrap_or(0);
    Some(RunIf { command, exit_code, timeout, on_error })
}

fn check_timeout(text: Option<&DurationText>, at: &Path, document: &Document<'_>) -> Duration {
    const DEFAULT: Duration = Duration::from_secs(60);
    let Some(timeout) = duration(text, at, document) else { return DEFAULT };
    if !(Duration::from_secs(1)..=Duration::from_secs(3600)).contains(&timeout) {
        let finding = Finding::error("invalid-value", "the timeout of run_if is out of range");
        document.report(at, finding.hint("write 1s to 1h"));
    }
    timeout
}
