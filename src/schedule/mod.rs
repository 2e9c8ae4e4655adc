//! A crontab expression in a time zone, and the instants at which it is due. Pure; refuses to read
//! the clock. Civil time: a job fixed to a clock time runs once each civil day that it names (in a
//! gap at the first instant after it, in a repeated hour at the first of the two); a job whose minute
//! or hour is `*` or a step follows elapsed time.

mod civil;
mod crontab;
mod due;
mod end;
mod field;
mod jitter;
mod note;
#[cfg(test)]
mod tests;
mod zone;

pub use due::Schedule;
pub use zone::{TZDB_VERSION, zone, zone_names};

/// Why an expression is not a schedule. `Display` gives one lower-case line that names the field and
/// the value; `hint` the way out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ScheduleError {
    pub message: String,
    pub hint: Option<String>,
}

impl ScheduleError {
    fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        ScheduleError { message: message.into(), hint: Some(hint.into()) }
    }
}
