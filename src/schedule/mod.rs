//! A crontab expression in a time zone, and the instants at which it is due. Pure; refuses to read
//! the clock. Civil time: a job fixed to a clock time runs once each civil day that it names (in a
//! gap at the first instant after it, in a repeated hour at the first of the two); a job whose minute
//! or hour is `*` or a step follows elapsed time.

mod civil;
mod crontab;
mod field;
#[cfg(test)]
mod tests;
mod zone;

use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::{AmbiguousOffset, TimeZone};

use crontab::{Crontab, Pace};

pub use zone::{TZDB_VERSION, zone_names};

/// When a task is due: a five-field crontab expression or an `@daily`-style name, in a zone.
#[derive(Clone, Debug)]
pub struct Schedule {
    expression: String,
    crontab: Arc<Crontab>,
    zone: TimeZone,
    zone_name: String,
}

/// Why an expression is not a schedule. `Display` gives one lower-case line that names the field and
/// the value; `hint` the way out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ScheduleError {
    pub message: String,
    pub hint: Option<String>,
}

impl ScheduleError {
    fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        ScheduleError { message: message.into(), hint: Some(hint.into()) }
    }
}

impl Schedule {
    /// Parses an expression (POSIX crontab meaning) for a zone of the IANA database.
    pub fn parse(expression: &str, zone: &str) -> Result<Self, ScheduleError> {
        let crontab = Crontab::parse(expression)?;
        let (zone, zone_name) = zone::find(zone)?;
        Ok(Schedule {
            expression: expression.to_owned(),
            crontab: Arc::new(crontab),
            zone,
            zone_name,
        })
    }

    /// Checks an expression apart from its zone.
    pub fn check_expression(expression: &str) -> Result<(), ScheduleError> {
        Crontab::parse(expression).map(drop)
    }

    /// Checks a zone apart from any expression.
    pub fn check_zone(zone: &str) -> Result<(), ScheduleError> {
        zone::find(zone).map(drop)
    }

    /// The first due instant strictly later than `after`; `None` when there is none before 2100.
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        match self.crontab.pace() {
            Pace::Fixed => civil::next_fixed(&self.crontab, &self.zone, after),
            Pace::Elapsed => civil::next_elapsed(&self.crontab, &self.zone, after),
        }
    }

    /// The zone's IANA name.
    pub fn zone_name(&self) -> &str {
        &self.zone_name
    }

    /// The expression as it was written.
    pub fn expression(&self) -> &str {
        &self.expression
    }

    /// RFC 9557 local time of an instant in the schedule's zone, for people.
    pub fn local(&self, instant: Timestamp) -> String {
        instant.to_zoned(self.zone.clone()).to_string()
    }

    /// A remark when a clock change moves the due time on that day.
    pub fn note(&self, due: Timestamp) -> Option<String> {
        let wall = self.zone.to_datetime(due);
        let clock = wall.time().strftime("%H:%M");
        if let AmbiguousOffset::Fold { before, .. } =
            self.zone.to_ambiguous_timestamp(wall).offset()
        {
            let first = before == self.zone.to_offset(due);
            return Some(match self.crontab.pace() {
                Pace::Fixed => format!("{clock} happens twice that day; this is the first"),
                Pace::Elapsed if first => format!("{clock} happens twice that day: first pass"),
                Pace::Elapsed => format!("{clock} happens twice that day: second pass"),
            });
        }
        let skipped = civil::skipped_before(&self.crontab, &self.zone, due)?;
        let skipped = skipped.time().strftime("%H:%M");
        Some(format!("the clock skips {skipped} that day; due at the first instant after it"))
    }
}
