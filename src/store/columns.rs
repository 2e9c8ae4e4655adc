//! Between Rust values and columns.

use jiff::Timestamp;
use rusqlite::Row;
use rusqlite::types::Type;

use crate::run::{NanoUsd, RunState, Usage};

/// Nanoseconds since 1970.
pub(super) fn instant(at: Timestamp) -> i64 {
    // Holds until 2262; the calendar of schedules ends before.
    i64::try_from(at.as_nanosecond()).unwrap_or(i64::MAX)
}

fn unreadable(column: &str, value: impl std::fmt::Display) -> rusqlite::Error {
    let text = format!("column {column} holds {value}");
    rusqlite::Error::FromSqlConversionFailure(0, Type::Text, text.into())
}

/// An instant that must be there.
pub(super) fn get_instant(row: &Row<'_>, column: &str) -> rusqlite::Result<Timestamp> {
    let nanos: i64 = row.get(column)?;
    Timestamp::from_nanosecond(i128::from(nanos)).map_err(|error| unreadable(column, error))
}

/// An instant that may be missing.
pub(super) fn get_instant_opt(row: &Row<'_>, column: &str) -> rusqlite::Result<Option<Timestamp>> {
    let nanos: Option<i64> = row.get(column)?;
    nanos
        .map(|nanos| Timestamp::from_nanosecond(i128::from(nanos)))
        .transpose()
        .map_err(|error| unreadable(column, error))
}

/// A run's state.
pub(super) fn get_state(row: &Row<'_>, column: &str) -> rusqlite::Result<RunState> {
    let text: String = row.get(column)?;
    RunState::parse(&text).ok_or_else(|| unreadable(column, text))
}

/// JSON that may be missing.
pub(super) fn get_json_opt(
    row: &Row<'_>,
    column: &str,
) -> rusqlite::Result<Option<serde_json::Value>> {
    let text: Option<String> = row.get(column)?;
    text.map(|text| serde_json::from_str(&text))
        .transpose()
        .map_err(|error| unreadable(column, error))
}

/// JSON of a known shape.
pub(super) fn get_json<T: serde::de::DeserializeOwned>(
    row: &Row<'_>,
    column: &str,
) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    serde_json::from_str(&text).map_err(|error| unreadable(column, error))
}

/// A number that is never negative.
pub(super) fn get_unsigned(row: &Row<'_>, column: &str) -> rusqlite::Result<u64> {
    let value: i64 = row.get(column)?;
    u64::try_from(value).map_err(|error| unreadable(column, error))
}

/// A small number that is never negative.
pub(super) fn get_small(row: &Row<'_>, column: &str) -> rusqlite::Result<u32> {
    let value: i64 = row.get(column)?;
    u32::try_from(value).map_err(|error| unreadable(column, error))
}

/// The five usage columns.
pub(super) fn get_usage(row: &Row<'_>) -> rusqlite::Result<Usage> {
    Ok(Usage {
        input_tokens: get_unsigned(row, "input_tokens")?,
        cached_tokens: get_unsigned(row, "cached_tokens")?,
        output_tokens: get_unsigned(row, "output_tokens")?,
        cost_nano_usd: NanoUsd(get_unsigned(row, "cost")?),
        estimated: row.get("cost_is_estimated")?,
    })
}

/// The largest amount that is stored at once. No run really has a million dollars or a thousand
/// million million tokens; sums of such amounts must stay far from SQLite's largest integer, beyond
/// which it would turn to floating point.
const LARGEST: u64 = 1 << 50;

/// An amount as SQLite keeps it; absurd ones, which only a lying provider has, are cut.
pub(super) fn signed(value: u64) -> i64 {
    i64::try_from(value.min(LARGEST)).expect("it fits by the line above")
}
