//! When a task is due by the rules of the page on schedules, worked out without fleet: every civil day
//! or every ten minutes of the year is looked at.

use std::collections::BTreeSet;

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Timestamp};
use sha2::{Digest, Sha256};

/// Five fields as sets of numbers; `None` is `*`.
struct Fields([Option<BTreeSet<i8>>; 5]);

impl Fields {
    fn parse(expression: &str) -> Self {
        let fields: Vec<&str> = expression.split(' ').collect();
        let last = [59, 23, 31, 12, 6];
        let first = [0, 0, 1, 1, 0];
        Fields(std::array::from_fn(|i| numbers(fields[i], first[i], last[i])))
    }

    fn has(&self, field: usize, value: i8) -> bool {
        self.0[field].as_ref().is_none_or(|values| values.contains(&value))
    }

    /// Day of the month or of the week, where both are restricted.
    fn names_day(&self, day: DateTime) -> bool {
        let (month_day, week_day) =
            (self.has(2, day.day()), self.has(4, day.weekday().to_sunday_zero_offset()));
        let day_matches = match (&self.0[2], &self.0[4]) {
            (Some(_), Some(_)) => month_day || week_day,
            _ => month_day && week_day,
        };
        day_matches && self.has(3, day.month())
    }
}

fn numbers(text: &str, first: i8, last: i8) -> Option<BTreeSet<i8>> {
    if text == "*" {
        return None;
    }
    let number = |text: &str| text.parse::<i8>().expect("a number");
    let values = text.split(',').flat_map(|part| {
        let (range, step) = part.split_once('/').map_or((part, 1), |(r, s)| (r, number(s)));
        let (from, to) = match range.split_once('-') {
            _ if range == "*" => (first, last),
            Some((from, to)) => (number(from), number(to)),
            None => (number(range), number(range)),
        };
        (from..=to).step_by(usize::try_from(step).expect("positive"))
    });
    Some(values.collect())
}

/// Everything due after `from` and until `to`.
pub fn due(expression: &str, zone: &str, from: Timestamp, to: Timestamp) -> BTreeSet<Timestamp> {
    let zone = TimeZone::get(zone).expect("a zone");
    let fields = Fields::parse(expression);
    let minute_or_hour: Vec<&str> = expression.split(' ').take(2).collect();
    let found = if minute_or_hour.iter().any(|field| field.starts_with('*')) {
        elapsed(&fields, &zone, from, to)
    } else {
        fixed(&fields, &zone, from, to)
    };
    found.into_iter().filter(|at| *at > from && *at <= to).collect()
}

/// Each civil time of each civil day: in a gap the first instant after it, else the first of two.
fn fixed(fields: &Fields, zone: &TimeZone, from: Timestamp, to: Timestamp) -> BTreeSet<Timestamp> {
    let mut found = BTreeSet::new();
    let last = zone.to_datetime(to).date().tomorrow().expect("a day");
    let mut day = zone.to_datetime(from).date().yesterday().expect("a day");
    while day <= last {
        let midnight = day.at(0, 0, 0, 0);
        if fields.names_day(midnight) {
            for hour in fields.0[1].iter().flatten() {
                for minute in fields.0[0].iter().flatten() {
                    found.insert(instant(zone, day.at(*hour, *minute, 0, 0)));
                }
            }
        }
        day = day.tomorrow().expect("a day");
    }
    found
}

fn instant(zone: &TimeZone, civil: DateTime) -> Timestamp {
    match zone.to_ambiguous_timestamp(civil).offset() {
        AmbiguousOffset::Unambiguous { offset } | AmbiguousOffset::Fold { before: offset, .. } => {
            offset.to_timestamp(civil).expect("in range")
        }
        AmbiguousOffset::Gap { before, .. } => {
            let beyond = before.to_timestamp(civil).expect("in range");
            let change = zone.preceding(beyond + SignedDuration::from_nanos(1)).next();
            change.expect("a gap has its transition").timestamp()
        }
    }
}

/// Each instant whose civil time is named, in all copies of an hour.
fn elapsed(
    fields: &Fields,
    zone: &TimeZone,
    from: Timestamp,
    to: Timestamp,
) -> BTreeSet<Timestamp> {
    let mut found = BTreeSet::new();
    let mut at = Timestamp::from_second(from.as_second() / 600 * 600).expect("in range");
    while at <= to {
        let civil = zone.to_datetime(at);
        if fields.has(0, civil.minute()) && fields.has(1, civil.hour()) && fields.names_day(civil) {
            found.insert(at);
        }
        at += SignedDuration::from_mins(10);
    }
    found
}

/// The part of a jitter that is a name's own.
pub fn jitter(name: &str, seconds: u64) -> SignedDuration {
    let digest = Sha256::digest(name.as_bytes());
    let number = u64::from_be_bytes(digest[..8].try_into().expect("eight bytes"));
    SignedDuration::from_secs(number.checked_rem(seconds).unwrap_or(0).try_into().expect("small"))
}
