//! `expected_duration_minutes`, `sla_warn` and `sla_fail`.

use std::time::Duration;

use super::range::check_range;
use crate::bundle::Sla;
use crate::bundle::raw::RawTask;
use crate::bundle::yaml::{Document, Finding, Path};

/// No run is meant to take longer than a year.
const LONGEST_MINUTES: f64 = 527_040.0;
const DEFAULT_WARN: f64 = 1.0;
const DEFAULT_FAIL: f64 = 2.0;

/// When a run of the task takes too long; mistakes are reported where they stand.
pub(super) fn check_sla(raw: &RawTask, document: &Document<'_>) -> Option<Sla> {
    let at = Path::root();
    let expected = at.key("expected_duration_minutes");
    check_range(raw.expected_duration_minutes, 0.1..=LONGEST_MINUTES, &expected, document);
    let factors = [("sla_warn", raw.sla_warn), ("sla_fail", raw.sla_fail)];
    for (key, factor) in factors {
        check_range(factor, 0.1..=1000.0, &at.key(key), document);
    }
    let Some(minutes) = raw.expected_duration_minutes else {
        let known_bad = document.is_broken(&expected);
        for (key, _) in factors.iter().filter(|(_, factor)| factor.is_some() && !known_bad) {
            let message =
                format!("{key} is a multiple of expected_duration_minutes, which is missing");
            let finding = Finding::error("useless-key", message);
            document.report_key(&at.key(key), finding.hint("add it, or remove the key"));
        }
        return None;
    };
    let (warn, fail) = (raw.sla_warn.unwrap_or(DEFAULT_WARN), raw.sla_fail.unwrap_or(DEFAULT_FAIL));
    if fail <= warn {
        let message = format!("sla_fail is {fail}, and sla_warn is {warn}");
        let key = if raw.sla_fail.is_some() { "sla_fail" } else { "sla_warn" };
        let finding = Finding::error("invalid-value", message);
        document.report(&at.key(key), finding.hint("make sla_fail the larger one"));
    }
    let after =
        |factor: f64| Duration::try_from_secs_f64(minutes * 60.0 * factor).unwrap_or(Duration::MAX);
    Some(Sla { expected: after(1.0), warn_after: after(warn), overdue_after: after(fail) })
}
