//! Any text as a schedule, a zone, a task's name and an end: never a panic, always later than asked,
//! in order, and not after the end.
//!
//! The input is lines: expression, zone, name, end; the first sixteen bytes are an instant and a jitter.

#![no_main]

// Not everything of the module is exercised here.
#[allow(dead_code, unused_imports)]
#[path = "../../src/schedule/mod.rs"]
mod schedule;

use std::time::Duration;

use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use schedule::Schedule;

const ZONES: [&str; 8] = [
    "UTC",
    "America/New_York",
    "Europe/Berlin",
    "Australia/Lord_Howe",
    "Africa/Cairo",
    "Europe/Dublin",
    "America/Sao_Paulo",
    "America/Nuuk",
];

fuzz_target!(|data: &[u8]| {
    let Some((numbers, text)) = data.split_first_chunk::<16>() else { return };
    let (instant, jitter) = numbers.split_at(8);
    let number = |bytes: &[u8]| bytes.iter().fold(0_u64, |n, byte| n << 8 | u64::from(*byte));
    let text = String::from_utf8_lossy(text);
    let mut lines = text.split('\n');
    let mut line = || lines.next().unwrap_or_default();
    let (expression, zone, name, end) = (line(), line(), line(), line());

    // Few texts are zones: the others stand for one that has clock changes.
    let fallback = ZONES[zone.len() % ZONES.len()];
    let zone = if Schedule::check_zone(zone).is_ok() { zone } else { fallback };
    let Ok(schedule) = Schedule::parse(expression, zone) else { return };
    assert!(Schedule::check_expression(expression).is_ok());
    let schedule = match number(jitter) {
        0 => schedule,
        // Mostly what a bundle may say, now and then anything.
        seconds if seconds % 16 == 0 => schedule.with_jitter(name, Duration::from_secs(seconds)),
        seconds => schedule.with_jitter(name, Duration::from_secs(seconds % 86_401)),
    };
    let schedule = match Schedule::parse_end(end, zone) {
        Ok(end) => schedule.until(end),
        Err(_) => schedule,
    };

    let seconds = number(instant).cast_signed();
    let near = Timestamp::from_second(seconds.rem_euclid(4_200_000_000));
    let mut now = Timestamp::from_second(seconds).or(near).expect("within the years of instants");
    for _ in 0..6 {
        let Some(next) = schedule.next_after(now) else { break };
        assert!(next > now, "{next} is not later than {now}");
        assert!(schedule.end().is_none_or(|end| next <= end), "{next} is after the end");
        let _ = (schedule.note(next), schedule.local(next));
        now = next;
    }
});
