//! The meaning of expressions, and what is refused. Clock changes by the table, a second
//! implementation and properties are in `tests/it/schedule`.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::Schedule;

const SECOND: SignedDuration = SignedDuration::from_secs(1);

fn schedule(expression: &str, zone: &str) -> Schedule {
    Schedule::parse(expression, zone).expect("the expression is a schedule")
}

fn at(text: &str) -> Timestamp {
    text.parse().expect("an instant")
}

fn upcoming(expression: &str, zone: &str, after: &str, count: usize) -> Vec<String> {
    let schedule = schedule(expression, zone);
    let mut now = at(after);
    let mut found = Vec::new();
    while found.len() < count {
        now = schedule.next_after(now).expect("there is a next time");
        found.push(schedule.local(now).split('[').next().unwrap_or_default().to_owned());
    }
    found
}

fn refusal(expression: &str) -> String {
    Schedule::parse(expression, "UTC").expect_err("is refused").to_string()
}

#[test]
fn numeric_weekdays_mean_monday_to_friday() {
    let days = upcoming("0 9 * * 1-5", "UTC", "2026-11-06T09:00:00Z", 5);
    assert_eq!(
        days,
        [
            "2026-11-09T09:00:00+00:00",
            "2026-11-10T09:00:00+00:00",
            "2026-11-11T09:00:00+00:00",
            "2026-11-12T09:00:00+00:00",
            "2026-11-13T09:00:00+00:00",
        ]
    );
}

#[test]
fn zero_and_seven_are_both_sunday() {
    for weekday in ["0", "7", "SUN", "sun"] {
        let expression = format!("0 9 * * {weekday}");
        let next = upcoming(&expression, "UTC", "2026-11-02T00:00:00Z", 1);
        assert_eq!(next, ["2026-11-08T09:00:00+00:00"]);
    }
}

#[test]
fn half_hours_of_a_repeated_hour_come_once_each_and_in_order() {
    assert_eq!(
        upcoming("*/30 * * * *", "America/New_York", "2026-11-01T04:50:00Z", 6),
        [
            "2026-11-01T01:00:00-04:00",
            "2026-11-01T01:30:00-04:00",
            "2026-11-01T01:00:00-05:00",
            "2026-11-01T01:30:00-05:00",
            "2026-11-01T02:00:00-05:00",
            "2026-11-01T02:30:00-05:00",
        ]
    );
    let next = schedule("*/30 * * * *", "America/New_York").next_after(at("2026-11-01T06:10:00Z"));
    assert_eq!(next, Some(at("2026-11-01T06:30:00Z")));
}

#[test]
fn daily_job_in_a_repeated_hour_is_due_once() {
    assert_eq!(
        upcoming("30 1 * * *", "America/New_York", "2026-10-31T12:00:00Z", 2),
        ["2026-11-01T01:30:00-04:00", "2026-11-02T01:30:00-05:00"]
    );
}

#[test]
fn restricted_day_fields_are_either_or() {
    assert_eq!(
        upcoming("0 9 13 * 5", "UTC", "2026-11-01T00:00:00Z", 5),
        [
            "2026-11-06T09:00:00+00:00",
            "2026-11-13T09:00:00+00:00",
            "2026-11-20T09:00:00+00:00",
            "2026-11-27T09:00:00+00:00",
            "2026-12-04T09:00:00+00:00",
        ]
    );
}

#[test]
fn refusals_name_the_field_and_the_value() {
    let seen: Vec<String> = [
        "0 9 * *",
        "@every 5m",
        "0 25 * * *",
        "60 * * * *",
        "0 0 30 2 *",
        "0 0 9 * * 1",
        "*/0 * * * *",
        "5/10 * * * *",
        "0 9 L * *",
        "0 9 * * 5-0",
        "+5 * * * *",
        "1,,2 * * * *",
        "",
    ]
    .map(refusal)
    .into();
    assert_eq!(
        seen,
        [
            "schedule \"0 9 * *\" has 4 fields instead of 5: day of week is missing",
            "\"@every 5m\" is not a schedule name",
            "hour 25 is out of range",
            "minute 60 is out of range",
            "schedule \"0 0 30 2 *\" is never due: no such date before 2100",
            "schedule \"0 0 9 * * 1\" has 6 fields instead of 5: there are no seconds and no years",
            "minute \"*/0\": \"0\" is not a step",
            "minute \"5/10\": a step needs a range before it",
            "day of month \"L\": \"L\" is not a number from 1 to 31",
            "day of week \"5-0\": the range runs backward",
            "minute \"+5\": \"+5\" is not a number from 0 to 59",
            "minute: there is an empty entry in the list",
            "schedule \"\" is empty: minute is missing",
        ]
    );
    assert!(Schedule::parse("0 9 * * 1", "UTC").is_ok());
}

#[test]
fn four_hourly_job_survives_the_spring_change() {
    assert_eq!(
        upcoming("20 */4 * * *", "America/Los_Angeles", "2023-03-12T04:00:00Z", 4),
        [
            "2023-03-11T20:20:00-08:00",
            "2023-03-12T00:20:00-08:00",
            "2023-03-12T04:20:00-07:00",
            "2023-03-12T08:20:00-07:00",
        ]
    );
}

#[test]
fn fixed_jobs_in_a_gap_are_due_at_the_first_instant_after_it() {
    let table = [
        ("0 0 * * *", "Africa/Cairo", "2026-04-23T12:00:00Z", "2026-04-24T01:00:00+03:00"),
        ("30 2 * * *", "America/New_York", "2027-03-14T00:00:00Z", "2027-03-14T03:00:00-04:00"),
        ("30 2 * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", "2026-03-29T03:00:00+02:00"),
        ("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T15:00:00Z", "2026-10-04T02:30:00+11:00"),
        ("30 1 * * *", "Europe/Dublin", "2026-03-29T00:00:00Z", "2026-03-29T02:00:00+01:00"),
        ("0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00:00Z", "2018-11-04T01:00:00-02:00"),
        ("30 2 * * *", "UTC", "2026-03-29T00:00:00Z", "2026-03-29T02:30:00+00:00"),
    ];
    for (expression, zone, after, due) in table {
        assert_eq!(upcoming(expression, zone, after, 1), [due], "{expression} {zone}");
    }
}

#[test]
fn a_gap_that_ends_on_the_next_day_does_not_swallow_a_fixed_time() {
    // On Saturday 27 March 2027 the clocks of Nuuk go from 23:00 to 24:00.
    assert_eq!(
        upcoming("30 23 * * SAT", "America/Nuuk", "2027-03-27T12:00:00Z", 2),
        ["2027-03-28T00:00:00-01:00", "2027-04-03T23:30:00-01:00"]
    );
}

#[test]
fn several_fixed_times_in_one_gap_are_due_once() {
    assert_eq!(
        upcoming("15,45 2 * * *", "America/New_York", "2027-03-14T00:00:00Z", 2),
        ["2027-03-14T03:00:00-04:00", "2027-03-15T02:15:00-04:00"]
    );
}

#[test]
fn elapsed_jobs_skip_a_gap() {
    assert_eq!(
        upcoming("30 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", 2),
        ["2026-03-29T01:30:00+01:00", "2026-03-29T03:30:00+02:00"]
    );
}

#[test]
fn notes_say_what_a_clock_change_does() {
    let note = |expression: &str, zone: &str, due: &str| schedule(expression, zone).note(at(due));
    assert_eq!(
        note("30 2 * * *", "America/New_York", "2027-03-14T07:00:00Z"),
        Some("the clock skips 02:30 that day; due at the first instant after it".into())
    );
    assert_eq!(
        note("30 1 * * *", "America/New_York", "2026-11-01T05:30:00Z"),
        Some("01:30 happens twice that day; this is the first".into())
    );
    assert_eq!(
        note("*/30 * * * *", "America/New_York", "2026-11-01T06:30:00Z"),
        Some("01:30 happens twice that day: second pass".into())
    );
    assert_eq!(note("30 1 * * *", "America/New_York", "2026-11-02T06:30:00Z"), None);
}

#[test]
fn jitter_makes_every_due_time_later_by_the_same_seconds() {
    let plain = schedule("30 1 * * *", "America/New_York");
    let jittered = plain.clone().with_jitter("nightly", Duration::from_secs(300));
    let offset = SignedDuration::try_from(jittered.jitter()).expect("below five minutes");
    assert_eq!(offset, SignedDuration::from_secs(226));
    let mut now = at("2026-10-30T00:00:00Z");
    for _ in 0..4 {
        let named = plain.next_after(now).expect("a next time");
        assert_eq!(jittered.next_after(named), Some(named + offset), "it is still to come");
        assert_eq!(jittered.next_after(named + offset - SECOND), Some(named + offset));
        let following = plain.next_after(named).expect("a next time");
        assert_eq!(jittered.next_after(named + offset), Some(following + offset));
        now = named;
    }
}

#[test]
fn nothing_is_due_after_the_end_and_the_end_itself_is() {
    let daily = schedule("0 9 * * *", "UTC").until(at("2026-12-31T09:00:00Z"));
    assert_eq!(daily.next_after(at("2026-12-30T09:00:00Z")), Some(at("2026-12-31T09:00:00Z")));
    assert_eq!(daily.next_after(at("2026-12-31T09:00:00Z")), None);
    let earlier = schedule("0 9 * * *", "UTC").until(at("2026-12-31T08:59:59Z"));
    assert_eq!(earlier.next_after(at("2026-12-30T09:00:00Z")), None);
}

#[test]
fn a_due_time_that_the_jitter_moves_beyond_the_end_is_not_due() {
    let jitter = Duration::from_secs(300);
    let end = at("2026-12-31T23:59:59Z");
    let late = schedule("59 23 * * *", "UTC").with_jitter("nightly", jitter).until(end);
    assert_eq!(late.next_after(at("2026-12-31T00:10:00Z")), None);
}

#[test]
fn notes_look_at_the_time_without_jitter_and_tell_the_jitter_and_the_end() {
    let note = |expression: &str, due: &str, end: Option<&str>| {
        let mut jittered = schedule(expression, "America/New_York")
            .with_jitter("nightly", Duration::from_secs(300));
        if let Some(end) = end {
            jittered = jittered.until(at(end));
        }
        jittered.note(jittered.next_after(at(due)).expect("a next time"))
    };
    let jitter = "3m 46s later by jitter";
    assert_eq!(
        note("30 2 * * *", "2027-03-14T00:00:00Z", None),
        Some(format!(
            "the clock skips 02:30 that day; due at the first instant after it; {jitter}"
        ))
    );
    // 01:58 comes twice that night; with its jitter the first one is due after 02:00 would have been.
    assert_eq!(
        note("58 1 * * *", "2026-11-01T00:00:00Z", None),
        Some(format!("01:58 happens twice that day; this is the first; {jitter}"))
    );
    assert_eq!(
        note("0 9 * * *", "2026-12-31T00:00:00Z", Some("2026-12-31T23:00:00Z")),
        Some(format!("{jitter}; the last before the end of the schedule"))
    );
}

#[test]
fn unknown_zones_get_a_near_name() {
    let error = Schedule::parse("@daily", "Europe/Berln").expect_err("no such zone");
    assert_eq!(error.to_string(), "unknown time zone \"Europe/Berln\"");
    assert_eq!(error.hint.as_deref(), Some("did you mean \"Europe/Berlin\"?"));
}

#[test]
fn a_range_without_one_end_says_what_to_write() {
    let refusal = |minute: &str| {
        let error = Schedule::parse(&format!("{minute} * * * *"), "UTC").expect_err("is refused");
        (error.message, error.hint.unwrap_or_default())
    };
    let says = |message: &str, hint: &str| (message.to_owned(), hint.to_owned());
    assert_eq!(
        [refusal("-5"), refusal("5-"), refusal("-")],
        [
            says("minute \"-5\": a range has two ends", "write 0-5, or 5 alone"),
            says("minute \"5-\": a range has two ends", "write 5-59, or 5 alone"),
            says("minute \"-\": a range has two ends", "write 0-59, or *"),
        ]
    );
}
