//! `jitter` and `schedule_until`: what is refused, where, and what is inherited.

use std::time::Duration;

use super::{MANIFEST, SCRIPT, check, check_task, hints, load_files};

const NONE: [&str; 0] = [];

fn task(keys: &str) -> String {
    format!("prompt: hi\n{keys}")
}

#[test]
fn a_bad_jitter_is_named_where_it_stands() {
    let seen = |jitter: &str| check_task(&task(&format!("schedule: '@daily'\njitter: {jitter}\n")));
    assert_eq!(seen("soon"), ["tasks/t.yaml:3:9 invalid-duration: \"soon\" is not a duration"]);
    assert_eq!(
        seen("5"),
        [
            "tasks/t.yaml:3:9 wrong-type: jitter: the number 5 is not a duration with its unit, such \
             as 90s or 4h"
        ]
    );
    assert_eq!(seen("-5m"), ["tasks/t.yaml:3:9 invalid-duration: \"-5m\" is negative"]);
    assert_eq!(seen("25h"), ["tasks/t.yaml:3:9 invalid-value: jitter: 25h is out of range"]);
    assert_eq!(seen("24h"), NONE);
    assert_eq!(seen("0s"), NONE);
}

#[test]
fn a_bad_jitter_of_the_manifest_is_named_once_and_there() {
    let manifest = MANIFEST.replace("defaults: {", "defaults: {jitter: 48h, ");
    let daily = task("schedule: '@daily'\n");
    let files = [
        ("manifest.yaml", manifest.as_str()),
        ("tasks/a.yaml", &daily),
        ("tasks/b.yaml", &daily),
        ("scripted/a.yaml", SCRIPT),
        ("scripted/b.yaml", SCRIPT),
    ];
    assert_eq!(
        check(&files),
        ["manifest.yaml:4:20 invalid-value: defaults.jitter: 48h is out of range"]
    );
    assert_eq!(hints(&files), [Some("write 0s to 24h".to_owned())]);
}

#[test]
fn an_end_that_is_neither_a_date_nor_an_instant_is_named_where_it_stands() {
    let seen =
        |end: &str| check_task(&task(&format!("schedule: '@daily'\nschedule_until: {end}\n")));
    assert_eq!(
        seen("soon"),
        ["tasks/t.yaml:3:17 invalid-value: schedule_until: \"soon\" is neither a date nor an \
             instant"]
    );
    assert_eq!(
        seen("2027-02-29"),
        ["tasks/t.yaml:3:17 invalid-value: schedule_until: \"2027-02-29\" is not a date of the \
             calendar"]
    );
    assert_eq!(
        seen("2026-12-31T10:00:00"),
        ["tasks/t.yaml:3:17 invalid-value: schedule_until: \"2026-12-31T10:00:00\" has no offset \
             from UTC"]
    );
    assert_eq!(
        seen("2026"),
        ["tasks/t.yaml:3:17 wrong-type: schedule_until: the number 2026 is not text"]
    );
    assert_eq!(seen("2026-12-31"), NONE);
    assert_eq!(seen("'2026-12-31T10:00:00+01:00'"), NONE);
}

#[test]
fn keys_of_a_schedule_without_a_schedule_are_useless() {
    assert_eq!(
        check_task(&task("jitter: 5m\nschedule_until: 2026-12-31\n")),
        [
            "tasks/t.yaml:2:1 useless-key: jitter: the task has no schedule, it runs by hand only",
            "tasks/t.yaml:3:1 useless-key: schedule_until: the task has no schedule, it runs by hand \
             only",
        ]
    );
}

#[test]
fn a_broken_schedule_does_not_make_its_other_keys_useless() {
    assert_eq!(
        check_task(&task("schedule: 5\njitter: 5m\n")),
        ["tasks/t.yaml:2:11 wrong-type: schedule: the number 5 is not text"]
    );
}

#[test]
fn mistakes_of_a_schedule_and_of_its_end_are_two() {
    assert_eq!(
        check_task(&task("schedule: 0 25 * * *\nschedule_until: soon\n")),
        [
            "tasks/t.yaml:2:11 invalid-schedule: hour 25 is out of range",
            "tasks/t.yaml:3:17 invalid-value: schedule_until: \"soon\" is neither a date nor an \
             instant",
        ]
    );
}

#[test]
fn a_schedule_that_is_never_due_before_its_end_is_a_problem() {
    assert_eq!(
        check_task(&task("schedule: 0 0 29 2 *\nschedule_until: 1972-02-28\n")),
        ["tasks/t.yaml:3:17 invalid-schedule: schedule \"0 0 29 2 *\" is never due before its end"]
    );
    assert_eq!(check_task(&task("schedule: 0 0 29 2 *\nschedule_until: 1972-02-29\n")), NONE);
}

#[test]
fn the_manifests_jitter_is_inherited_and_a_task_may_do_away_with_it() {
    let manifest = MANIFEST.replace("defaults: {", "defaults: {jitter: 10m, ");
    let loaded = load_files(&[
        ("manifest.yaml", manifest.as_bytes()),
        ("tasks/inherits.yaml", b"prompt: hi\nschedule: '@daily'\n"),
        ("tasks/none.yaml", b"prompt: hi\nschedule: '@daily'\njitter: 0s\n"),
        ("tasks/by-hand.yaml", b"prompt: hi\n"),
        ("scripted/inherits.yaml", SCRIPT.as_bytes()),
        ("scripted/none.yaml", SCRIPT.as_bytes()),
        ("scripted/by-hand.yaml", SCRIPT.as_bytes()),
    ]);
    let bundle = loaded.bundle.expect("a bundle");
    let jitter: Vec<_> = bundle
        .tasks
        .values()
        .map(|task| (task.name.as_str(), task.schedule.as_ref().map(|s| s.schedule.jitter())))
        .collect();
    // printf inherits | sha256sum: the first 16 digits modulo 600.
    let own = Duration::from_secs(215);
    assert_eq!(
        jitter,
        [("by-hand", None), ("inherits", Some(own)), ("none", Some(Duration::ZERO))]
    );
}
