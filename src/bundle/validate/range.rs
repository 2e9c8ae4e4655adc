//! What a number or a list may hold so that a run can carry it out.

use std::fmt::Display;
use std::ops::RangeInclusive;

use crate::bundle::yaml::{Document, Finding, Path};

/// Reports a number that no run can carry out.
pub(super) fn check_range<T: PartialOrd + Display>(
    value: Option<T>,
    range: RangeInclusive<T>,
    at: &Path,
    document: &Document<'_>,
) {
    let Some(value) = value.filter(|value| !range.contains(value)) else { return };
    let message = format!("{}: {value} is out of range", at.text());
    let hint = format!("write {} to {}", range.start(), range.end());
    document.report(at, Finding::error("invalid-value", message).hint(hint));
}

/// Warns of entries that a list holds twice.
pub(super) fn check_repeats(entries: Option<&[String]>, at: &Path, document: &Document<'_>) {
    let entries = entries.unwrap_or_default();
    let mut seen = std::collections::HashSet::new();
    for (number, entry) in entries.iter().enumerate() {
        if !seen.insert(entry.as_str()) {
            let message = format!("{}: {entry:?} is listed twice", at.text());
            let finding = Finding::warning("duplicate-entry", message).hint("keep one of the two");
            document.report(&at.index(number), finding);
        }
    }
}
