//! Ceilings and durations.

use std::time::Duration;

use jiff::SignedDuration;

use super::range::check_range;
use crate::bundle::raw::{DurationText, RawLimits, RawSandboxLimits};
use crate::bundle::yaml::{Document, Finding, Path};
use crate::bundle::{SandboxLimits, TaskLimits};
use crate::run::NanoUsd;

/// Longer than any wait that is meant.
const LONGEST: SignedDuration = SignedDuration::from_hours(366 * 24);

/// Parses `90s`, `4h`, `1h 30m`.
pub(super) fn parse_duration(text: &DurationText) -> Result<Duration, Finding> {
    let refuse = |why: &str| {
        Finding::error("invalid-duration", format!("{:?} {why}", text.0))
            .hint("write a number with its unit, for example 90s, 15m, 4h or 1h 30m")
    };
    let parsed: SignedDuration = text.0.parse().map_err(|_| refuse("is not a duration"))?;
    if parsed > LONGEST {
        return Err(refuse("is longer than a year"));
    }
    Duration::try_from(parsed).map_err(|_| refuse("is negative"))
}

/// A duration at its place; a mistake is reported.
pub(super) fn duration(
    text: Option<&DurationText>,
    at: &Path,
    document: &Document<'_>,
) -> Option<Duration> {
    match parse_duration(text?) {
        Ok(duration) => Some(duration),
        Err(finding) => {
            document.report(at, finding);
            None
        }
    }
}

/// Reports mistakes and unlimited ceilings where they are written.
pub(super) fn check_limits(raw: &RawLimits, at: &Path, document: &Document<'_>) {
    let amounts = [
        (at.key("max_cost_usd"), raw.max_cost_usd),
        (at.key("max_total_tokens"), whole(raw.max_total_tokens)),
        (at.key("max_iterations"), raw.max_iterations.map(f64::from)),
    ];
    for (at, amount) in amounts {
        check_amount(amount, &at, document);
    }
    if let Some(timeout) = duration(raw.wall_timeout.as_ref(), &at.key("wall_timeout"), document)
        && timeout.is_zero()
    {
        document.report(&at.key("wall_timeout"), unlimited("wall_timeout"));
    }
    if let Some(sandbox) = &raw.sandbox {
        check_container(sandbox, &at.key("sandbox"), document);
    }
}

/// A container is never without limits, and below these nothing starts in it.
fn check_container(raw: &RawSandboxLimits, at: &Path, document: &Document<'_>) {
    check_range(raw.memory_mb, 64..=1 << 20, &at.key("memory_mb"), document);
    check_range(raw.cpus, 0.1..=1024.0, &at.key("cpus"), document);
    check_range(raw.pids, 16..=1_000_000, &at.key("pids"), document);
    check_range(raw.disk_mb, 16..=16 << 20, &at.key("disk_mb"), document);
    check_range(raw.nofile, 64..=1 << 20, &at.key("nofile"), document);
}

/// Only whether it is zero matters.
fn whole(value: Option<u64>) -> Option<f64> {
    value.map(|value| value as f64)
}

fn check_amount(amount: Option<f64>, at: &Path, document: &Document<'_>) {
    let Some(amount) = amount else { return };
    if amount < 0.0 {
        let finding =
            Finding::error("invalid-value", format!("{}: {amount} is negative", at.text()));
        document.report(at, finding.hint("write a positive number, or 0 for unlimited"));
    } else if amount == 0.0 {
        document.report(at, unlimited(&at.text()));
    }
}

fn unlimited(what: &str) -> Finding {
    Finding::warning("unlimited", format!("{what}: 0 means unlimited"))
        .hint("write a ceiling, or remove the key for the default")
}

/// The valid limits: the task's over the manifest's over the defaults.
pub(super) fn resolve_limits(task: &RawLimits, inherited: &RawLimits) -> TaskLimits {
    let positive = |value: u64| (value > 0).then_some(value);
    let cost = task.max_cost_usd.or(inherited.max_cost_usd).unwrap_or(5.0);
    let tokens = task.max_total_tokens.or(inherited.max_total_tokens).unwrap_or(10_000_000);
    let rounds = task.max_iterations.or(inherited.max_iterations).unwrap_or(300);
    let timeout = task.wall_timeout.as_ref().or(inherited.wall_timeout.as_ref());
    TaskLimits {
        max_cost: (cost > 0.0).then(|| NanoUsd::from_usd(cost)),
        max_total_tokens: positive(tokens),
        max_iterations: (rounds > 0).then_some(rounds),
        wall_timeout: timeout
            .and_then(|text| parse_duration(text).ok())
            .filter(|timeout| !timeout.is_zero()),
        sandbox: resolve_sandbox(task.sandbox.as_ref(), inherited.sandbox.as_ref()),
    }
}

fn resolve_sandbox(
    task: Option<&RawSandboxLimits>,
    inherited: Option<&RawSandboxLimits>,
) -> SandboxLimits {
    fn pick<T: Copy>(
        layers: [Option<&RawSandboxLimits>; 2],
        key: impl Fn(&RawSandboxLimits) -> Option<T>,
        default: T,
    ) -> T {
        layers.into_iter().flatten().find_map(key).unwrap_or(default)
    }
    let (layers, default) = ([task, inherited], SandboxLimits::default());
    SandboxLimits {
        memory_mb: pick(layers, |raw| raw.memory_mb, default.memory_mb),
        cpus: pick(layers, |raw| raw.cpus, default.cpus),
        pids: pick(layers, |raw| raw.pids.and_then(|pids| pids.try_into().ok()), default.pids),
        disk_mb: pick(layers, |raw| raw.disk_mb, default.disk_mb),
        nofile: pick(layers, |raw| raw.nofile.and_then(|n| n.try_into().ok()), default.nofile),
    }
}
