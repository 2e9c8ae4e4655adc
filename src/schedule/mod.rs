//! A crontab expression in a time zone, and the instants at which it is due. Pure; refuses to read
//! the clock.

use jiff::Timestamp;

/// When a task is due: a five-field crontab expression or an `@daily`-style name, in a zone.
#[derive(Clone, Debug)]
pub struct Schedule {
    _todo: (),
}

/// Why an expression is not a schedule. `Display` gives one lower-case line that names the field and
/// the value; `hint` the way out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ScheduleError {
    pub message: String,
    pub hint: Option<String>,
}

impl Schedule {
    /// Parses an expression (POSIX crontab meaning) for a zone of the IANA database.
    pub fn parse(expression: &str, zone: &str) -> Result<Self, ScheduleError> {
        let _ = (expression, zone);
        todo!()
    }

    /// The first due instant strictly later than `after`; `None` when there is none before 2100.
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        let _ = after;
        todo!()
    }

    /// The zone's IANA name.
    pub fn zone_name(&self) -> &str {
        todo!()
    }

    /// The expression as it was written.
    pub fn expression(&self) -> &str {
        todo!()
    }

    /// RFC 9557 local time of an instant in the schedule's zone, for people.
    pub fn local(&self, instant: Timestamp) -> String {
        let _ = instant;
        todo!()
    }

    /// A remark when a clock change moves the due time on that day.
    pub fn note(&self, due: Timestamp) -> Option<String> {
        let _ = due;
        todo!()
    }
}
