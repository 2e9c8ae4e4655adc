//! Expressions at random, for the other tests of schedules.

use jiff::Timestamp;
use jiff::tz::TimeZoneDatabase;

/// A small generator (splitmix64): the same numbers from the same seed in every build.
pub struct Random(pub u64);

impl Random {
    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number from `first` to `last`.
    pub fn between(&mut self, first: u64, last: u64) -> u64 {
        first + self.number() % (last - first + 1)
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let last = from.len() as u64 - 1;
        &from[self.between(0, last) as usize]
    }

    /// A field that goes from `min` to `max`.
    fn field(&mut self, min: u64, max: u64) -> String {
        let (a, b) = (self.between(min, max), self.between(min, max));
        let (low, high) = (a.min(b), a.max(b));
        match self.between(0, 9) {
            0..=2 => "*".to_owned(),
            3 => format!("*/{}", self.between(1, max)),
            4..=6 => a.to_string(),
            7 => format!("{low}-{high}"),
            8 => format!("{a},{b}"),
            _ => format!("{low}-{high}/{}", self.between(1, 12.min(max))),
        }
    }

    /// Five fields.
    pub fn expression(&mut self) -> String {
        // Half of all day fields are free, or hardly anything would be due near a clock change.
        let mut free = |min, max| match self.between(0, 1) {
            0 => "*".to_owned(),
            _ => self.field(min, max),
        };
        let (day, month, weekday) = (free(1, 31), free(1, 12), free(0, 7));
        let (minute, hour) = (self.field(0, 59), self.field(0, 6));
        let hour = match self.between(0, 3) {
            0 => self.field(0, 23),
            _ => hour,
        };
        format!("{minute} {hour} {day} {month} {weekday}")
    }

    /// An instant within 26 hours before a clock change of the zone, or anywhere if it has none.
    pub fn near_a_change(&mut self, zone: &str) -> Timestamp {
        let start = self.between(1_700_000_000, 2_000_000_000).cast_signed();
        let start = Timestamp::from_second(start).expect("an instant");
        let zone = TimeZoneDatabase::bundled().get(zone).expect("a zone");
        let change = zone.following(start).next().map(|change| change.timestamp());
        let before = jiff::SignedDuration::from_secs(self.between(0, 26 * 3600).cast_signed());
        change.map_or(start, |change| change - before)
    }
}
