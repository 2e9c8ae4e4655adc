//! A crontab expression as civil times, without a zone. The `cron` crate searches; its own syntax
//! (seconds first, Sunday = 1, both day fields needed) never meets the user.

use std::str::FromStr;

use chrono::{DateTime as ChronoDateTime, Utc};
use jiff::civil::DateTime;
use jiff::tz::Offset;

use super::ScheduleError;
use super::field::{Field, UNITS};

/// Whether a job keeps to the clock on the wall or to elapsed time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    Fixed,
    Elapsed,
}

/// A parsed expression.
#[derive(Debug)]
pub(super) struct Crontab {
    /// Two when both day fields are restricted: either makes the day match.
    searches: Vec<cron::Schedule>,
    pace: Pace,
}

const NAMES: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

const NANOS: i128 = 1_000_000_000;

/// The last year whose times are due.
const LAST_YEAR: i16 = 2099;

impl Crontab {
    pub(super) fn parse(expression: &str) -> Result<Self, ScheduleError> {
        let expanded = expand(expression.trim())?;
        let texts = split(expanded)?;
        let mut fields = Vec::with_capacity(UNITS.len());
        for (text, unit) in texts.into_iter().zip(&UNITS) {
            fields.push(Field::parse(text, unit)?);
        }
        let crontab = Crontab {
            pace: if fields[0].elapsed || fields[1].elapsed { Pace::Elapsed } else { Pace::Fixed },
            searches: searches(&fields, expression)?,
        };
        // Every possible date, leap days on each weekday included, occurs within these years.
        if crontab.next(DateTime::constant(1999, 12, 31, 23, 59, 59, 0)).is_none() {
            return Err(ScheduleError::new(
                format!("schedule {expression:?} is never due: no such date before 2100"),
                "check day of month against month",
            ));
        }
        Ok(crontab)
    }

    pub(super) fn pace(&self) -> Pace {
        self.pace
    }

    /// The first civil time strictly later than `after`, at most in 2099.
    pub(super) fn next(&self, after: DateTime) -> Option<DateTime> {
        // Whole seconds, downward: a part of a second before 1970 would be rounded up to the next.
        let seconds = Offset::UTC.to_timestamp(after).ok()?.as_nanosecond().div_euclid(NANOS);
        let seconds = i64::try_from(seconds).ok()?;
        let after = ChronoDateTime::<Utc>::from_timestamp(seconds, 0)?;
        let found = self.searches.iter().filter_map(|search| search.after(&after).next()).min()?;
        let found = jiff::Timestamp::from_second(found.timestamp()).ok()?;
        let found = Offset::UTC.to_datetime(found);
        (found.year() <= LAST_YEAR).then_some(found)
    }
}

fn expand(expression: &str) -> Result<&str, ScheduleError> {
    if !expression.starts_with('@') {
        return Ok(expression);
    }
    let known = NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(expression));
    known.map(|(_, fields)| *fields).ok_or_else(|| {
        ScheduleError::new(
            format!("{expression:?} is not a schedule name"),
            "names are @hourly, @daily, @midnight, @weekly, @monthly, @yearly and @annually; \
             every five minutes is */5 * * * *",
        )
    })
}

fn split(expression: &str) -> Result<Vec<&str>, ScheduleError> {
    let fields: Vec<&str> = expression.split_ascii_whitespace().collect();
    if fields.len() == UNITS.len() {
        return Ok(fields);
    }
    let count = match fields.len() {
        0 => "is empty".to_owned(),
        1 => "has 1 field instead of 5".to_owned(),
        n => format!("has {n} fields instead of 5"),
    };
    let detail = match UNITS.get(fields.len()) {
        Some(unit) => format!("{} is missing", unit.name),
        None => "there are no seconds and no years".to_owned(),
    };
    Err(ScheduleError::new(
        format!("schedule {expression:?} {count}: {detail}"),
        "write minute, hour, day of month, month, day of week, for example 0 9 * * 1-5",
    ))
}

fn searches(fields: &[Field], expression: &str) -> Result<Vec<cron::Schedule>, ScheduleError> {
    let list = |index: usize| numbers(&fields[index].values, &UNITS[index]);
    let (day, weekday) = (list(2), weekdays(&fields[4].values));
    let pairs = if fields[2].starred || fields[4].starred {
        vec![(day, weekday)]
    } else {
        vec![(day, "*".to_owned()), ("*".to_owned(), weekday)]
    };
    let (minute, hour, month) = (list(0), list(1), list(3));
    pairs
        .into_iter()
        .map(|(day, weekday)| {
            let text = format!("0 {minute} {hour} {day} {month} {weekday}");
            cron::Schedule::from_str(&text).map_err(|error| {
                ScheduleError::new(
                    format!("schedule {expression:?} cannot be searched: {error}"),
                    "write it with plain numbers",
                )
            })
        })
        .collect()
}

fn numbers(values: &[u8], unit: &super::field::Unit) -> String {
    if values.len() == usize::from(unit.max - unit.min) + 1 {
        return "*".to_owned();
    }
    values.iter().map(u8::to_string).collect::<Vec<_>>().join(",")
}

/// The crate counts from Sunday = 1; crontab's Sunday is 0 and 7.
fn weekdays(values: &[u8]) -> String {
    let mut days: Vec<u8> = values.iter().map(|day| day % 7 + 1).collect();
    days.sort_unstable();
    days.dedup();
    if days.len() == 7 {
        return "*".to_owned();
    }
    days.iter().map(u8::to_string).collect::<Vec<_>>().join(",")
}
