//! The end of a schedule as people write it.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::{ScheduleError, civil};

/// An RFC 3339 instant, or a date in `zone`: its last second.
pub(super) fn parse(text: &str, zone: &TimeZone) -> Result<Timestamp, ScheduleError> {
    let refuse = |why: &str| {
        ScheduleError::new(
            format!("{text:?} {why}"),
            "write the last day, for example 2026-12-31, or an instant, for example \
             2026-12-31T18:00:00+01:00",
        )
    };
    if is_date(text) {
        let date: Date = text.parse().map_err(|_| refuse("is not a date of the calendar"))?;
        let next = date.tomorrow().map_err(|_| refuse("is too late"))?;
        let midnight = civil::instant(zone, next.to_datetime(jiff::civil::Time::midnight()));
        let end = midnight.and_then(|start| start.checked_sub(SignedDuration::from_secs(1)).ok());
        return end.ok_or_else(|| refuse("is too late"));
    }
    text.parse().map_err(|_| match text.parse::<jiff::civil::DateTime>() {
        Ok(_) => refuse("has no offset from UTC"),
        Err(_) => refuse("is neither a date nor an instant"),
    })
}

/// Four digits, two and two; the calendar is asked afterwards.
fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let digits = |part: &&str| part.bytes().all(|byte| byte.is_ascii_digit());
    matches!(parts.as_slice(), [year, month, day] if year.len() == 4 && month.len() == 2 && day.len() == 2)
        && parts.iter().all(digits)
}

#[cfg(test)]
mod tests {
    use crate::schedule::Schedule;

    fn end(text: &str, zone: &str) -> Result<String, (String, bool)> {
        let end = Schedule::parse_end(text, zone).map(|end| end.to_string());
        end.map_err(|error| (error.message, error.hint.is_some()))
    }

    #[test]
    fn a_date_includes_its_whole_day_in_the_zone() {
        let table = [
            ("2026-12-31", "UTC", "2026-12-31T23:59:59Z"),
            ("2026-12-31", "Europe/Berlin", "2026-12-31T22:59:59Z"),
            ("2026-12-31", "America/New_York", "2027-01-01T04:59:59Z"),
            // Midnight of the day after does not exist; that day begins at 01:00.
            ("2026-04-23", "Africa/Cairo", "2026-04-23T21:59:59Z"),
            // The hour before midnight comes twice, and both belong to the day.
            ("2026-10-29", "Africa/Cairo", "2026-10-29T21:59:59Z"),
            ("2028-02-29", "UTC", "2028-02-29T23:59:59Z"),
        ];
        for (date, zone, instant) in table {
            assert_eq!(end(date, zone), Ok(instant.to_owned()), "{date} {zone}");
        }
    }

    #[test]
    fn an_instant_is_taken_as_it_is() {
        assert_eq!(end("2026-12-31T18:00:00+01:00", "UTC"), Ok("2026-12-31T17:00:00Z".to_owned()));
        assert_eq!(
            end("2026-12-31T18:00:00Z", "Europe/Berlin"),
            Ok("2026-12-31T18:00:00Z".to_owned())
        );
    }

    #[test]
    fn anything_else_says_what_to_write() {
        let refused = |message: &str| Err((message.to_owned(), true));
        assert_eq!(
            end("2026-02-29", "UTC"),
            refused("\"2026-02-29\" is not a date of the calendar")
        );
        assert_eq!(
            end("2026-13-01", "UTC"),
            refused("\"2026-13-01\" is not a date of the calendar")
        );
        assert_eq!(
            end("2026-12-31T18:00:00", "UTC"),
            refused("\"2026-12-31T18:00:00\" has no offset from UTC")
        );
        for text in ["", "soon", "2026", "31.12.2026", "9999-12-31", "2026-W01-1", "-"] {
            assert!(end(text, "UTC").is_err_and(|(_, hint)| hint), "{text}");
        }
    }
}
