//! Civil times to instants of a zone, across gaps and repeated hours.

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};

use super::crontab::{Crontab, Pace};

/// Searching from the far past would begin before the crontab's first year.
fn clamp(after: Timestamp) -> Timestamp {
    after.max(Timestamp::UNIX_EPOCH)
}

/// Each named civil time once: a gap's at the first instant after it, a repeated one's at the first.
/// Instants never decrease as civil times grow, so the first that is later than `after` is the answer.
pub(super) fn next_fixed(
    crontab: &Crontab,
    zone: &TimeZone,
    after: Timestamp,
) -> Option<Timestamp> {
    let after = clamp(after);
    let mut civil = zone.to_datetime(after);
    loop {
        civil = crontab.next(civil)?;
        let due = instant(zone, civil)?;
        if due > after {
            return Some(due);
        }
    }
}

/// The instant of a civil time: in a gap the first after it, of two the first.
pub(super) fn instant(zone: &TimeZone, civil: DateTime) -> Option<Timestamp> {
    let ambiguous = zone.to_ambiguous_timestamp(civil);
    match ambiguous.offset() {
        AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(civil).ok(),
        AmbiguousOffset::Fold { before, .. } => before.to_timestamp(civil).ok(),
        AmbiguousOffset::Gap { after, .. } => {
            // Read with the later offset the missing time lies before the change.
            let before_change = after.to_timestamp(civil).ok()?;
            let mut changes = zone.following(before_change).map(|change| change.timestamp());
            changes.find(|change| zone.to_datetime(*change) > civil)
        }
    }
}

/// Every instant whose civil time matches: none in a gap, both in a repeated hour. Searches one
/// stretch of constant offset after the other.
pub(super) fn next_elapsed(
    crontab: &Crontab,
    zone: &TimeZone,
    after: Timestamp,
) -> Option<Timestamp> {
    let mut after = clamp(after);
    loop {
        let offset = zone.to_offset(after);
        let change = zone.following(after).next().map(|change| change.timestamp());
        let found = in_stretch(crontab, offset, after);
        match change {
            Some(change) if found.is_none_or(|found| found >= change) => {
                if zone.to_datetime(change).year() > 2100 {
                    return None;
                }
                // The change itself may be due in its own stretch.
                after = change;
                let exact = zone.to_datetime(change);
                let before = exact.checked_sub(SignedDuration::from_secs(1)).ok()?;
                if crontab.next(before) == Some(exact) {
                    return Some(change);
                }
            }
            _ => return found,
        }
    }
}

fn in_stretch(crontab: &Crontab, offset: Offset, after: Timestamp) -> Option<Timestamp> {
    let civil = crontab.next(offset.to_datetime(after))?;
    offset.to_timestamp(civil).ok()
}

/// The civil time within a gap that ends at `due` for which a fixed job is due then.
pub(super) fn skipped_before(
    crontab: &Crontab,
    zone: &TimeZone,
    due: Timestamp,
) -> Option<DateTime> {
    if crontab.pace() == Pace::Elapsed {
        return None;
    }
    let before = due.checked_sub(SignedDuration::from_nanos(1)).ok()?;
    let civil = crontab.next(zone.to_datetime(before))?;
    (civil < zone.to_datetime(due)).then_some(civil)
}
