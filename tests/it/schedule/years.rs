//! Schedules walked through whole years.

use std::collections::BTreeMap;

use fleet::schedule::Schedule;
use jiff::Timestamp;

pub const ZONES: [&str; 7] = [
    "America/New_York",
    "Europe/Berlin",
    "Australia/Lord_Howe",
    "Africa/Cairo",
    "Europe/Dublin",
    "America/Sao_Paulo",
    "UTC",
];

/// Every due time of three years that hold clock changes in each zone.
fn walk(expression: &str, zone: &str) -> Vec<Timestamp> {
    let schedule = Schedule::parse(expression, zone).expect("a schedule");
    let end: Timestamp = "2027-01-01T12:00:00Z".parse().expect("an instant");
    let mut now: Timestamp = "2024-01-01T12:00:00Z".parse().expect("an instant");
    let mut found = Vec::new();
    while let Some(next) = schedule.next_after(now).filter(|next| *next < end) {
        assert!(next > now);
        found.push(next);
        now = next;
    }
    found
}

#[test]
fn a_fixed_time_is_due_once_each_civil_day() {
    for zone in ZONES {
        for expression in ["0 0 * * *", "30 1 * * *", "15 2 * * *", "0 3 * * *"] {
            let mut days: BTreeMap<String, u32> = BTreeMap::new();
            for due in walk(expression, zone) {
                let local = due.in_tz(zone).expect("a zone");
                *days.entry(local.date().to_string()).or_default() += 1;
            }
            let odd: Vec<_> = days.iter().filter(|(_, times)| **times != 1).collect();
            assert_eq!(odd, [], "{expression} {zone}");
            assert!((1095..=1097).contains(&days.len()), "{expression} {zone}: {}", days.len());
        }
    }
}

#[test]
fn a_step_of_minutes_follows_elapsed_time() {
    for zone in ZONES {
        let due = walk("*/30 * * * *", zone);
        // Half an hour divides every clock change of these zones.
        let gaps: Vec<i64> =
            due.windows(2).map(|pair| pair[1].as_second() - pair[0].as_second()).collect();
        assert!(gaps.iter().all(|gap| *gap == 1800), "{zone}");
    }
}
