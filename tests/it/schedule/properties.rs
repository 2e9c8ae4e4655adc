//! What holds of every schedule: later than asked, in order, never a panic.

use std::time::Duration;

use fleet::schedule::{Schedule, zone_names};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use super::expressions::Random;

/// Walks through due instants and checks each.
fn walk(schedule: &Schedule, start: Timestamp) -> Result<(), TestCaseError> {
    let mut now = start;
    for _ in 0..5 {
        let Some(next) = schedule.next_after(now) else { break };
        prop_assert!(next > now, "{next} is not later than {now}");
        prop_assert!(schedule.end().is_none_or(|end| next <= end));
        // Asked just before, the answer is the same; asked earlier, it is not later.
        let just_before = next - SignedDuration::from_nanos(1);
        prop_assert_eq!(schedule.next_after(just_before.max(now)), Some(next));
        let _ = (schedule.note(next), schedule.local(next));
        now = next;
    }
    Ok(())
}

fn limited(
    schedule: Schedule,
    name: &str,
    jitter: Option<u64>,
    end: Option<Timestamp>,
) -> Schedule {
    let schedule = match jitter {
        Some(seconds) => schedule.with_jitter(name, Duration::from_secs(seconds)),
        None => schedule,
    };
    end.map_or(schedule.clone(), |end| schedule.until(end))
}

proptest! {
    #[test]
    fn due_times_are_later_than_asked_and_in_order_in_every_zone(
        seed: u64,
        zone in proptest::sample::select(zone_names().collect::<Vec<_>>()),
        start in -5_000_000_000_i64..4_200_000_000,
        name in "[a-z]{0,8}",
        jitter in proptest::option::of(0..=86_400_u64),
        left in proptest::option::of(0..400_000_000_i64),
    ) {
        let expression = Random(seed).expression();
        let Ok(schedule) = Schedule::parse(&expression, &zone) else { return Ok(()) };
        let end = left.and_then(|left| Timestamp::from_second(start + left).ok());
        let schedule = limited(schedule, &name, jitter, end);
        walk(&schedule, Timestamp::from_second(start).expect("an instant"))?;
    }

    #[test]
    fn due_times_near_a_clock_change_are_later_than_asked_and_in_order(
        seed: u64,
        zone in proptest::sample::select(zone_names().collect::<Vec<_>>()),
        jitter in proptest::option::of(0..=7200_u64),
    ) {
        let mut random = Random(seed);
        let expression = random.expression();
        let Ok(schedule) = Schedule::parse(&expression, &zone) else { return Ok(()) };
        walk(&limited(schedule, "task", jitter, None), random.near_a_change(&zone))?;
    }

    #[test]
    fn jitter_moves_every_due_time_by_the_same(
        seed: u64,
        start in 0_i64..4_000_000_000,
        jitter in 1..=86_400_u64,
    ) {
        let expression = Random(seed).expression();
        let Ok(plain) = Schedule::parse(&expression, "Europe/Berlin") else { return Ok(()) };
        let moved = plain.clone().with_jitter("task", Duration::from_secs(jitter));
        let offset = SignedDuration::try_from(moved.jitter()).expect("below a day");
        prop_assert!(moved.jitter() < Duration::from_secs(jitter));
        let start = Timestamp::from_second(start).expect("an instant");
        let expected = plain.next_after(start).map(|due| due + offset);
        prop_assert_eq!(moved.next_after(start + offset), expected);
    }

    #[test]
    fn no_text_makes_a_schedule_panic(
        text in "\\PC{0,40}",
        fields in "[-0-9*/,a-zA-Z@ ]{0,30}",
        end in "[-0-9TZ:+.]{0,25}",
        seconds: i64,
        jitter: u64,
    ) {
        let now = Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX);
        for text in [text, fields] {
            let _ = Schedule::parse_end(&text, "Europe/Berlin");
            let _ = Schedule::parse("@daily", &text);
            if let Ok(schedule) = Schedule::parse(&text, "Europe/Berlin") {
                let end = Schedule::parse_end(&end, "Europe/Berlin").ok();
                walk(&limited(schedule, &text, Some(jitter), end), now)?;
            }
        }
    }
}
