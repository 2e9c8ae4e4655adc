//! Numbers, durations and instants in words for people. Pure.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

/// An instant as a page shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Moment {
    /// RFC 3339 in UTC, for `<time datetime>`.
    pub iso: String,
    /// Short local time, for example `Tue 1 Dec 07:00`.
    pub local: String,
    /// Local time with seconds, year, zone and offset.
    pub full: String,
    /// `in 3 h 12 min` or `5 min ago`.
    pub relative: String,
}

/// Words for instants in one zone, seen from one instant.
#[derive(Clone, Debug)]
pub(crate) struct Words {
    zone: TimeZone,
    now: Timestamp,
}

impl Words {
    /// An unknown zone is shown as UTC.
    pub(crate) fn new(zone: &str, now: Timestamp) -> Self {
        Words { zone: crate::schedule::zone(zone), now }
    }

    pub(crate) fn moment(&self, at: Timestamp) -> Moment {
        let zoned = at.to_zoned(self.zone.clone());
        let same_year = zoned.year() == self.now.to_zoned(self.zone.clone()).year();
        let short = if same_year { "%a %-d %b %H:%M" } else { "%-d %b %Y %H:%M" };
        Moment {
            iso: at.to_string(),
            local: zoned.strftime(short).to_string(),
            full: zoned.strftime("%Y-%m-%d %H:%M:%S %Z (%:z)").to_string(),
            relative: relative(at.duration_since(self.now)),
        }
    }

    /// The day in words and its date, for headings.
    pub(crate) fn day(&self, at: Timestamp) -> String {
        let day = at.to_zoned(self.zone.clone()).date();
        let today = self.now.to_zoned(self.zone.clone()).date();
        let text = day.strftime("%A %-d %B").to_string();
        match today.until(day).map(|span| span.get_days()) {
            Ok(0) => format!("Today, {text}"),
            Ok(1) => format!("Tomorrow, {text}"),
            _ => text,
        }
    }
}

/// `in 3 h 12 min`, `5 min ago`, `now`.
pub(crate) fn relative(from_now: SignedDuration) -> String {
    let secs = from_now.as_secs();
    match secs {
        -4..=4 => "now".to_owned(),
        5.. => format!("in {}", coarse(secs.unsigned_abs())),
        _ => format!("{} ago", coarse(secs.unsigned_abs())),
    }
}

fn coarse(secs: u64) -> String {
    let (minutes, hours, days) = (secs / 60, secs / 3600, secs / 86_400);
    match secs {
        0..60 => format!("{secs} s"),
        60..3600 => format!("{minutes} min"),
        3600..86_400 => format!("{hours} h {:02} min", minutes % 60),
        86_400..1_209_600 => format!("{days} d {} h", hours % 24),
        _ => format!("{days} d"),
    }
}

/// `340 ms`, `4.2 s`, `3 min 12 s`, `2 h 05 min`.
pub(crate) fn duration(millis: u64) -> String {
    match millis {
        0..1000 => format!("{millis} ms"),
        1000..60_000 => format!("{}.{} s", millis / 1000, millis % 1000 / 100),
        60_000..3_600_000 => format!("{} min {:02} s", millis / 60_000, millis / 1000 % 60),
        _ => coarse(millis / 1000),
    }
}

/// The milliseconds from one instant to a later one; 0 where the clock went back.
pub(crate) fn millis_between(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.duration_since(from).as_millis()).unwrap_or(0)
}

/// `$1.23`; four decimals below a cent.
pub(crate) fn usd(amount: f64) -> String {
    if amount > 0.0 && amount < 0.01 { format!("${amount:.4}") } else { format!("${amount:.2}") }
}

/// `950`, `12.3k`, `4.1M`.
pub(crate) fn tokens(count: u64) -> String {
    match count {
        0..1000 => count.to_string(),
        1000..1_000_000 => format!("{}.{}k", count / 1000, count % 1000 / 100),
        _ => format!("{}.{}M", count / 1_000_000, count % 1_000_000 / 100_000),
    }
}

/// `512 B`, `3.4 KiB`, `1.2 MiB`.
pub(crate) fn bytes(count: u64) -> String {
    match count {
        0..1024 => format!("{count} B"),
        1024..1_048_576 => format!("{:.1} KiB", count as f64 / 1024.0),
        _ => format!("{:.1} MiB", count as f64 / 1_048_576.0),
    }
}

/// A word and its number: `1 run`, `2 runs`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// The first twelve characters of a commit.
pub(crate) fn short_commit(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}

/// A text cut in the middle so that a page stays bounded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Cut {
    pub head: String,
    /// Empty unless something was left out.
    pub tail: String,
    /// Bytes left out between head and tail.
    pub omitted: usize,
}

/// Keeps at most about `limit` bytes: two thirds from the beginning, the rest from the end.
pub(crate) fn cut(text: &str, limit: usize) -> Cut {
    if text.len() <= limit {
        return Cut { head: text.to_owned(), tail: String::new(), omitted: 0 };
    }
    let head = text.floor_char_boundary(limit / 3 * 2);
    let tail = text.ceil_char_boundary(text.len() - limit / 3);
    Cut { head: text[..head].to_owned(), tail: text[tail..].to_owned(), omitted: tail - head }
}

/// The beginning of the first line that says something, for a summary.
pub(crate) fn preview(text: &str, chars: usize) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("");
    let mut short: String = line.chars().take(chars).collect();
    if short.len() < line.len() || text.trim().lines().count() > 1 {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a timestamp")
    }

    #[test]
    fn instants_are_told_in_the_zone_and_from_now() {
        let words = Words::new("Europe/Berlin", at("2026-12-01T02:48:00Z"));
        let seen = words.moment(at("2026-12-01T06:00:00Z"));
        let wanted = Moment {
            iso: "2026-12-01T06:00:00Z".into(),
            local: "Tue 1 Dec 07:00".into(),
            full: "2026-12-01 07:00:00 CET (+01:00)".into(),
            relative: "in 3 h 12 min".into(),
        };
        assert_eq!(seen, wanted);
        assert_eq!(words.moment(at("2025-12-01T06:00:00Z")).local, "1 Dec 2025 07:00");
        assert_eq!(words.day(at("2026-12-01T22:59:00Z")), "Today, Tuesday 1 December");
        assert_eq!(words.day(at("2026-12-01T23:00:00Z")), "Tomorrow, Wednesday 2 December");
    }

    #[test]
    fn durations_and_amounts_have_sensible_units() {
        let seen = [340, 4_200, 192_000, 7_500_000].map(duration);
        assert_eq!(seen, ["340 ms", "4.2 s", "3 min 12 s", "2 h 05 min"]);
        assert_eq!([0.0, 0.00321, 0.5, 12.0].map(usd), ["$0.00", "$0.0032", "$0.50", "$12.00"]);
        assert_eq!([950, 12_345, 4_100_000].map(tokens), ["950", "12.3k", "4.1M"]);
        assert_eq!(relative(SignedDuration::from_secs(-300)), "5 min ago");
    }

    #[test]
    fn cut_keeps_both_ends_and_whole_characters() {
        let text = "ä".repeat(100);
        let seen = cut(&text, 61);
        assert_eq!((seen.head.chars().count(), seen.tail.chars().count()), (20, 10));
        assert_eq!(seen.omitted, 140);
        assert_eq!(cut("short", 61), Cut { head: "short".into(), tail: "".into(), omitted: 0 });
    }

    #[test]
    fn preview_marks_what_it_left_out() {
        assert_eq!(preview("\n  ls -la\ncd ..\n", 40), "ls -la…");
        assert_eq!(preview("abcdef", 3), "abc…");
        assert_eq!(preview("abc\n", 3), "abc");
    }
}
