//! `max_retries` and `retry_policy`.

use super::limits::{duration, parse_duration};
use super::range::check_repeats;
use crate::bundle::nearest::did_you_mean;
use crate::bundle::raw::{RawBackoff, RawRetryPolicy};
use crate::bundle::yaml::{Document, Finding, Path};
use crate::run::{Backoff, OutcomeClass, RetryPolicy, may_retry};

/// More attempts than that are a loop, not a retry.
pub(super) const MAX_RETRIES: u32 = 100;

/// Reports mistakes where they are written.
pub(super) fn check_retry(raw: &RawRetryPolicy, at: &Path, document: &Document<'_>) {
    let initial = duration(raw.initial_delay.as_ref(), &at.key("initial_delay"), document);
    let longest = duration(raw.max_delay.as_ref(), &at.key("max_delay"), document);
    if let (Some(initial), Some(longest)) = (initial, longest)
        && initial > longest
    {
        let finding = Finding::error("invalid-value", "max_delay is shorter than initial_delay");
        document.report(&at.key("max_delay"), finding.hint("make it at least as long"));
    }
    check_repeats(raw.retry_on.as_deref(), &at.key("retry_on"), document);
    for (number, name) in raw.retry_on.iter().flatten().enumerate() {
        let Err(finding) = parse_class(name) else { continue };
        document.report(&at.key("retry_on").index(number), finding);
    }
}

fn parse_class(name: &str) -> Result<OutcomeClass, Finding> {
    let class = OutcomeClass::parse(name).ok_or_else(|| {
        let known = OutcomeClass::ALL.into_iter().filter(|class| may_retry(*class));
        let names: Vec<&str> = known.map(OutcomeClass::as_str).collect();
        let hint = did_you_mean(name, names.iter().copied())
            .unwrap_or_else(|| format!("it is one of {}", names.join(", ")));
        Finding::error("unknown-outcome", format!("{name:?} is not an outcome class")).hint(hint)
    })?;
    if may_retry(class) {
        return Ok(class);
    }
    Err(Finding::error("invalid-value", format!("{name} is never tried again")).hint("remove it"))
}

/// The valid policy: the task's over the manifest's over the defaults.
pub(super) fn resolve_retry(
    max_retries: Option<u32>,
    task: &RawRetryPolicy,
    inherited: &RawRetryPolicy,
) -> RetryPolicy {
    let default = RetryPolicy::default();
    let backoff = task.backoff.or(inherited.backoff).map(|backoff| match backoff {
        RawBackoff::Exponential => Backoff::Exponential,
        RawBackoff::Fixed => Backoff::Fixed,
    });
    let delay = |text: Option<&_>| text.and_then(|text| parse_duration(text).ok());
    let initial = delay(task.initial_delay.as_ref().or(inherited.initial_delay.as_ref()))
        .unwrap_or(default.initial_delay);
    let longest = delay(task.max_delay.as_ref().or(inherited.max_delay.as_ref()))
        .unwrap_or(default.max_delay);
    let retry_on = task.retry_on.as_ref().or(inherited.retry_on.as_ref());
    RetryPolicy {
        max_retries: max_retries.unwrap_or(default.max_retries),
        backoff: backoff.unwrap_or(default.backoff),
        initial_delay: initial,
        max_delay: longest.max(initial),
        retry_on: retry_on
            .into_iter()
            .flatten()
            .filter_map(|name| parse_class(name).ok())
            .collect(),
        max_interruptions: task
            .max_interruptions
            .or(inherited.max_interruptions)
            .unwrap_or(default.max_interruptions),
    }
}
