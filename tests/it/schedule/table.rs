//! The table of clock changes in `tests/fixtures/schedules`.

use fleet::schedule::Schedule;
use jiff::Timestamp;

use crate::env::source_root;

/// One line of the table.
struct Line {
    zone: String,
    expression: String,
    after: Timestamp,
    /// Local times with their offset.
    dues: Vec<String>,
    why: String,
}

fn lines() -> Vec<Line> {
    let path = source_root().join("tests/fixtures/schedules/clock_changes.txt");
    let text = std::fs::read_to_string(path).expect("the table");
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(line).collect()
}

fn line(text: &str) -> Line {
    let columns: Vec<&str> = text.split(" | ").collect();
    let [zone, expression, after, dues, why] = columns[..] else { panic!("five columns: {text}") };
    Line {
        zone: zone.to_owned(),
        expression: expression.to_owned(),
        after: after.parse().expect("an instant"),
        dues: dues.split(' ').map(ToOwned::to_owned).collect(),
        why: why.to_owned(),
    }
}

#[test]
fn clock_changes_move_due_times_as_the_table_says() {
    let lines = lines();
    let mut wrong = Vec::new();
    for Line { zone, expression, after, dues, why } in &lines {
        let schedule = Schedule::parse(expression, zone).expect("a schedule");
        let found: Vec<String> =
            std::iter::successors(schedule.next_after(*after), |due| schedule.next_after(*due))
                .take(dues.len())
                .map(|due| schedule.local(due).split('[').next().unwrap_or_default().to_owned())
                .collect();
        if found != *dues {
            wrong
                .push(format!("{zone} {expression} after {after}: {found:?}, not {dues:?}: {why}"));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn the_table_has_every_zone_in_every_year_and_both_kinds_of_jobs() {
    let lines = lines();
    for zone in super::years::ZONES {
        for year in ["2026", "2027", "2028"] {
            for elapsed in [false, true] {
                let has = |line: &&Line| {
                    line.zone == zone
                        && line.dues[0].starts_with(year)
                        && line.expression.contains("* * * *") == elapsed
                };
                let changes = lines.iter().filter(has).count();
                assert!(changes >= 2, "{zone} {year} elapsed: {elapsed}");
            }
        }
    }
}
