//! `fleet sched list` and `fleet sched next`, on the example bundle `schedules`.

use serde_json::{Value, json};

use crate::env::source_root;
use crate::env::world::World;

/// The example bundle, committed.
pub fn schedules() -> World {
    let root = source_root().join("examples/schedules");
    let mut files: Vec<(String, String)> = Vec::new();
    for directory in ["", "tasks", "scripted"] {
        for entry in std::fs::read_dir(root.join(directory)).expect("readable") {
            let path = entry.expect("an entry").path();
            if path.extension().is_some_and(|extension| extension == "yaml") {
                let name = path.strip_prefix(&root).expect("beneath the example");
                let text = std::fs::read_to_string(&path).expect("text");
                files.push((name.to_str().expect("UTF-8").to_owned(), text));
            }
        }
    }
    let files: Vec<(&str, &str)> =
        files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    World::new(&files)
}

fn bundle(world: &World) -> String {
    world.bundle().to_str().expect("UTF-8").to_owned()
}

fn next(world: &World, task: &str, from: &str, count: &str) -> Value {
    let bundle = bundle(world);
    world.json(&[
        "sched", "next", task, "--bundle", &bundle, "--from", from, "--count", count, "--json",
    ])
}

#[test]
fn next_due_times_are_shown_in_the_tasks_zone_with_a_note_on_clock_changes() {
    let world = schedules();
    // On 28 March 2027 the clocks of Berlin go from 02:00 to 03:00.
    assert_eq!(
        next(&world, "night-shift", "2027-03-28T00:00:00Z", "2"),
        json!([
            {
                "due": "2027-03-28T01:02:11Z",
                "local": "2027-03-28T03:02:11+02:00[Europe/Berlin]",
                "note": "the clock skips 02:30 that day; due at the first instant after it; \
                         2m 11s later by jitter",
            },
            {
                "due": "2027-03-29T00:32:11Z",
                "local": "2027-03-29T02:32:11+02:00[Europe/Berlin]",
                "note": "2m 11s later by jitter",
            },
        ])
    );
    let plain = next(&world, "pulse", "2027-03-28T00:40:00Z", "1");
    assert_eq!(
        plain,
        json!([{
            "due": "2027-03-28T01:00:00Z",
            "local": "2027-03-28T03:00:00+02:00[Europe/Berlin]",
            "note": null,
        }])
    );
}

#[test]
fn times_are_told_as_text_with_the_end_below_them() {
    let world = schedules();
    let bundle = bundle(&world);
    let told = |from: &str| {
        world.ok(&["sched", "next", "advent", "--bundle", &bundle, "--from", from, "--count", "3"])
    };
    assert_eq!(
        told("2027-12-22T12:00:00Z"),
        "2027-12-23T08:00:35+01:00[Europe/Berlin]  (35s later by jitter)\n\
         2027-12-24T08:00:35+01:00[Europe/Berlin]  (35s later by jitter; the last before the end \
         of the schedule)\n\
         ended: nothing is due after 2027-12-24T23:59:59+01:00[Europe/Berlin]\n"
    );
    assert_eq!(
        told("2027-12-24T12:00:00Z"),
        "ended: nothing is due after 2027-12-24T23:59:59+01:00[Europe/Berlin]\n"
    );
}

#[test]
fn the_list_shows_jitter_and_end_and_what_is_over() {
    let world = schedules();
    let task = "prompt: hi\nschedule: '@daily'\njitter: 10m\nschedule_until: 2001-09-09\n\
                timezone: America/New_York\ncompletion: {shell: 'true'}\n";
    let turns = "turns: [{text: hi}]\n";
    world.commit(&[("tasks/over.yaml", task), ("scripted/over.yaml", turns)], "one that is over");
    let bundle = bundle(&world);
    let listed = world.json(&["sched", "list", "--bundle", &bundle, "--json"]);
    let over = listed.as_array().and_then(|tasks| tasks.iter().find(|task| task["task"] == "over"));
    assert_eq!(
        over,
        Some(&json!({
            "task": "over",
            "enabled": true,
            "schedule": "@daily",
            "timezone": "America/New_York",
            // printf over | sha256sum: the first 16 digits modulo 600.
            "jitter_seconds": 485,
            "until": "2001-09-10T03:59:59Z",
            "left": null,
            "ended": true,
            "next_due": null,
            "next_due_local": null,
            "note": null,
            "held": null,
            "tags": [],
            "description": null,
        }))
    );
    let table = world.ok(&["sched", "list", "--bundle", &bundle]);
    let row = table.lines().find(|line| line.trim_start().starts_with("over"));
    let words: Vec<&str> = row.expect("a row").split_whitespace().collect();
    assert_eq!(
        words.join(" "),
        "over @daily until Sun 2001-09-09 23:59 EDT ended America/New_York"
    );
    assert!(table.contains("2m 11s later by jitter"), "{table}");
}
