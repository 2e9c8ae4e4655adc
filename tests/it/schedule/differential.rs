//! Due times against croner, an independent implementation: where the two differ, the difference has
//! a name, and croner agrees once it is asked by fleet's rule.

use std::collections::BTreeMap;

use croner::parser::CronParser;
use fleet::schedule::{Schedule, zone_names};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp, Zoned};

use super::expressions::Random;
use super::years::ZONES;

const PAIRS: usize = 5000;
/// Due instants of each pair.
const DUES: usize = 6;
const SEED: u64 = 20_260_101;

/// Debian's rule: a day field that begins with `*` restricts nothing by itself, so both must match.
/// croner takes only a plain `*` for unrestricted, and joins a `*/n` by OR.
const DAY_FIELDS: &str = "day fields are joined by AND where one begins with `*`";
/// fleet: a time of day is fixed however many are listed. croner: only a single one is.
const LISTED_TIMES: &str = "lists and ranges of times are fixed times";
/// fleet: a skipped time is due after the gap, whatever day that is. croner: if the day still matches.
const ANOTHER_DAY: &str = "a gap that ends on another day does not swallow a fixed time";
/// fleet: a written step follows elapsed time. croner: not a step of one that leaves a single number.
const STEP_OF_ONE: &str = "a step follows elapsed time even where it leaves one number";

fn bundled(zone: &str) -> TimeZone {
    TimeZoneDatabase::bundled().get(zone).expect("a zone")
}

/// croner's next time. An error is one of croner's limits.
fn croner(expression: &str, days: Days, after: &Zoned) -> Result<Timestamp, String> {
    let parser = CronParser::builder().dom_and_dow(days == Days::And).build();
    let cron = parser.parse(expression).map_err(|error| error.to_string())?;
    let next = cron.find_next_occurrence(after, false).map_err(|error| error.to_string())?;
    Ok(next.timestamp())
}

/// How croner joins the day fields.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Days {
    /// By OR when both are restricted.
    Or,
    And,
}

/// The numbers of a field without `*` and steps; `None` for others.
fn listed(field: &str) -> Option<Vec<u8>> {
    let mut found = Vec::new();
    for item in field.split(',') {
        let (first, last) = item.split_once('-').unwrap_or((item, item));
        found.extend(first.parse::<u8>().ok()?..=last.parse::<u8>().ok()?);
    }
    Some(found)
}

/// croner's next time when each listed time of day is asked for by itself, as a fixed one.
fn croner_each(expression: &str, days: Days, after: &Zoned) -> Option<Timestamp> {
    let fields: Vec<&str> = expression.splitn(3, ' ').collect();
    let (minutes, hours) = (listed(fields[0])?, listed(fields[1])?);
    if minutes.len() * hours.len() == 1 {
        return None;
    }
    let rest = fields[2];
    let times = hours.iter().flat_map(|hour| minutes.iter().map(move |minute| (minute, hour)));
    let all = times.map(|(minute, hour)| format!("{minute} {hour} {rest}"));
    all.filter_map(|single| croner(&single, days, after).ok()).min()
}

/// Whether one day field begins with `*`, and neither is free.
fn day_rule_applies(expression: &str) -> bool {
    let fields: Vec<&str> = expression.split(' ').collect();
    let (day, weekday) = (fields[2], fields[4]);
    day != "*" && weekday != "*" && (day.starts_with('*') || weekday.starts_with('*'))
}

/// Whether a gap ends at the instant, and the civil time before it is of another day.
fn gap_ends_on_another_day(zone: &TimeZone, due: Timestamp) -> bool {
    let Ok(before) = due.checked_sub(SignedDuration::from_secs(1)) else { return false };
    let (before, after) = (zone.to_datetime(before), zone.to_datetime(due));
    let skipped = after.duration_since(before) > SignedDuration::from_secs(1);
    skipped && before.date() != after.date()
}

/// The expression with `7-7/2` for `7-7/1`: the same number, and to croner a step.
fn with_step_of_two(expression: &str) -> Option<String> {
    let mut fields: Vec<String> = expression.split(' ').map(ToOwned::to_owned).collect();
    for field in fields.iter_mut().take(2) {
        let range = field.strip_suffix("/1").map(ToOwned::to_owned);
        let one = range.filter(|range| range.split_once('-').is_some_and(|(a, b)| a == b));
        if let Some(range) = one {
            *field = format!("{range}/2");
            return Some(fields.join(" "));
        }
    }
    None
}

/// The rule by which the two differ, if it is a known one.
fn name(expression: &str, zone: &TimeZone, now: &Zoned, ours: Timestamp) -> Option<&'static str> {
    let and = day_rule_applies(expression).then_some(Days::And);
    if let Some(days) = and
        && croner(expression, days, now) == Ok(ours)
    {
        return Some(DAY_FIELDS);
    }
    let days = and.unwrap_or(Days::Or);
    if croner_each(expression, days, now) == Some(ours) {
        return Some(LISTED_TIMES);
    }
    let fields: Vec<&str> = expression.split(' ').collect();
    if !fields[0].contains(['*', '/'])
        && !fields[1].contains(['*', '/'])
        && gap_ends_on_another_day(zone, ours)
    {
        return Some(ANOTHER_DAY);
    }
    let stepped = with_step_of_two(expression)?;
    (croner(&stepped, days, now) == Ok(ours)).then_some(STEP_OF_ONE)
}

/// What came of a pair.
#[derive(Default)]
struct Tally {
    dues: usize,
    /// By rule, how many due instants differ.
    differ: BTreeMap<&'static str, usize>,
    /// By reason, how many pairs were not compared to their end.
    excluded: BTreeMap<String, usize>,
    unnamed: Vec<String>,
}

impl Tally {
    fn compare(&mut self, expression: &str, zone_name: &str, start: Timestamp) {
        let zone = bundled(zone_name);
        let mut now = start.to_zoned(zone.clone());
        let Ok(schedule) = Schedule::parse(expression, zone_name) else {
            // A date that never comes; croner searches for it until its limit.
            match croner(expression, Days::Or, &now) {
                Err(_) => self.dues += 1,
                Ok(_) if day_rule_applies(expression) => self.exclude("never due by AND"),
                Ok(due) => self.unnamed.push(format!("{expression}: refused, croner: {due}")),
            }
            return;
        };
        for _ in 0..DUES {
            let ours = schedule.next_after(now.timestamp());
            let theirs = croner(expression, Days::Or, &now);
            let Some(ours) = ours else { return self.exclude("not due before 2100") };
            self.dues += 1;
            if theirs != Ok(ours) {
                match name(expression, &zone, &now, ours) {
                    Some(rule) => *self.differ.entry(rule).or_default() += 1,
                    None if theirs.is_err() => return self.exclude("croner's search ends"),
                    None => self.unnamed.push(format!(
                        "{expression} {zone_name} after {now}: {ours}, croner: {theirs:?}"
                    )),
                }
            }
            now = ours.to_zoned(zone.clone());
        }
    }

    fn exclude(&mut self, reason: &str) {
        *self.excluded.entry(reason.to_owned()).or_default() += 1;
    }
}

#[test]
fn every_difference_from_a_second_implementation_has_a_name() {
    let mut random = Random(SEED);
    let mut zones: Vec<String> = zone_names().collect();
    zones.sort();
    let mut tally = Tally::default();
    for pair in 0..PAIRS {
        let expression = random.expression();
        let zone = if pair % 2 == 0 {
            (*random.pick(&ZONES)).to_owned()
        } else {
            random.pick(&zones).clone()
        };
        let start = random.near_a_change(&zone);
        tally.compare(&expression, &zone, start);
    }
    println!("{PAIRS} pairs, {} due instants compared", tally.dues);
    tally.differ.iter().for_each(|(rule, times)| println!("{times} differ: {rule}"));
    tally.excluded.iter().for_each(|(reason, pairs)| println!("{pairs} pairs excluded: {reason}"));
    assert_eq!(tally.unnamed, Vec::<String>::new());
    let excluded: usize = tally.excluded.values().sum();
    assert!(excluded * 50 < PAIRS, "{excluded} of {PAIRS} pairs are excluded");
}

#[test]
fn each_named_difference_has_an_example() {
    let table = [
        ("0 9 */13 * 5", "UTC", "2026-11-01T00:00:00Z", DAY_FIELDS),
        ("15,45 2 * * *", "America/New_York", "2027-03-14T00:00:00Z", LISTED_TIMES),
        ("30 23 * * SAT", "America/Nuuk", "2027-03-27T12:00:00Z", ANOTHER_DAY),
        ("13 2-2/1 * * *", "America/New_York", "2027-03-14T00:00:00Z", STEP_OF_ONE),
    ];
    for (expression, zone, after, rule) in table {
        let schedule = Schedule::parse(expression, zone).expect("a schedule");
        let after: Timestamp = after.parse().expect("an instant");
        let ours = schedule.next_after(after).expect("a next time");
        let now = after.to_zoned(bundled(zone));
        assert_ne!(croner(expression, Days::Or, &now), Ok(ours), "{expression} {zone}");
        let found = name(expression, &bundled(zone), &now, ours);
        assert_eq!(found, Some(rule), "{expression} {zone}: {ours}");
    }
}
