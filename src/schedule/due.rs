//! A schedule and its due instants: civil times of the crontab, later by the jitter, up to the end.

use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::crontab::{Crontab, Pace};
use super::{ScheduleError, civil, end, jitter, note, zone};

/// When a task is due: a five-field crontab expression or an `@daily`-style name, in a zone.
#[derive(Clone, Debug)]
pub struct Schedule {
    expression: String,
    crontab: Arc<Crontab>,
    zone: TimeZone,
    zone_name: String,
    /// By how much each due instant is later than the expression says.
    jitter: SignedDuration,
    /// Nothing is due later.
    end: Option<Timestamp>,
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
            jitter: SignedDuration::ZERO,
            end: None,
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

    /// Makes every due instant later by a part of `jitter` that the task's name alone decides: whole
    /// seconds, at least 0 and less than `jitter`.
    pub fn with_jitter(self, name: &str, jitter: Duration) -> Self {
        Schedule { jitter: jitter::offset(name, jitter), ..self }
    }

    /// Nothing is due later than `end`, the jitter included.
    pub fn until(self, end: Timestamp) -> Self {
        Schedule { end: Some(end), ..self }
    }

    /// Reads an end as people write it: an RFC 3339 instant, or a date, whose last second in `zone`
    /// is meant.
    pub fn parse_end(text: &str, zone: &str) -> Result<Timestamp, ScheduleError> {
        end::parse(text, &zone::find(zone)?.0)
    }

    /// The first due instant strictly later than `after`; `None` when there is none before 2100 or
    /// before the end.
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        let after = after.checked_sub(self.jitter).unwrap_or(Timestamp::MIN);
        let named = match self.crontab.pace() {
            Pace::Fixed => civil::next_fixed(&self.crontab, &self.zone, after),
            Pace::Elapsed => civil::next_elapsed(&self.crontab, &self.zone, after),
        }?;
        let due = named.checked_add(self.jitter).ok()?;
        self.end.is_none_or(|end| due <= end).then_some(due)
    }

    /// The zone's IANA name.
    pub fn zone_name(&self) -> &str {
        &self.zone_name
    }

    /// The expression as it was written.
    pub fn expression(&self) -> &str {
        &self.expression
    }

    /// By how much every due instant is later than the expression says.
    pub fn jitter(&self) -> Duration {
        self.jitter.unsigned_abs()
    }

    /// After which instant nothing is due any more.
    pub fn end(&self) -> Option<Timestamp> {
        self.end
    }

    /// RFC 9557 local time of an instant in the schedule's zone, for people.
    pub fn local(&self, instant: Timestamp) -> String {
        instant.to_zoned(self.zone.clone()).to_string()
    }

    /// Remarks on a due instant: a clock change that moves it, its jitter, and that it is the last.
    pub fn note(&self, due: Timestamp) -> Option<String> {
        let named = due.checked_sub(self.jitter).unwrap_or(due);
        let ended = self.end.is_some() && self.next_after(due).is_none();
        let notes = [
            note::clock_change(&self.crontab, &self.zone, named),
            note::jitter(self.jitter),
            ended.then(|| "the last before the end of the schedule".to_owned()),
        ];
        let notes: Vec<String> = notes.into_iter().flatten().collect();
        (!notes.is_empty()).then(|| notes.join("; "))
    }
}
