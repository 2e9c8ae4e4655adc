//! Remarks on due instants, in words.

use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Timestamp};

use super::civil;
use super::crontab::{Crontab, Pace};

/// What a clock change does to an instant that the crontab names, jitter aside.
pub(super) fn clock_change(crontab: &Crontab, zone: &TimeZone, named: Timestamp) -> Option<String> {
    let wall = zone.to_datetime(named);
    let clock = wall.time().strftime("%H:%M");
    if let AmbiguousOffset::Fold { before, .. } = zone.to_ambiguous_timestamp(wall).offset() {
        let first = before == zone.to_offset(named);
        return Some(match crontab.pace() {
            Pace::Fixed => format!("{clock} happens twice that day; this is the first"),
            Pace::Elapsed if first => format!("{clock} happens twice that day: first pass"),
            Pace::Elapsed => format!("{clock} happens twice that day: second pass"),
        });
    }
    let skipped = civil::skipped_before(crontab, zone, named)?;
    let skipped = skipped.time().strftime("%H:%M");
    Some(format!("the clock skips {skipped} that day; due at the first instant after it"))
}

/// By how much the due instant is later than the crontab names it.
pub(super) fn jitter(offset: SignedDuration) -> Option<String> {
    (!offset.is_zero()).then(|| format!("{offset:#} later by jitter"))
}
