//! Logs to standard error, redacted: human text on a terminal, JSON lines with FLEET_LOG_FORMAT=json.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;

use crate::secrets::{RedactingWriter, Redactor};

/// Starts logging for a daemon. FLEET_LOG picks what is logged (default `info`), in the syntax of
/// `RUST_LOG`.
pub(super) fn start(redactor: &Redactor) {
    start_at(redactor, "info");
}

/// Starts logging for a verb that prints its own progress: warnings alone by default.
pub(super) fn start_quiet(redactor: &Redactor) {
    start_at(redactor, "warn");
}

fn start_at(redactor: &Redactor, default: &str) {
    let filter = EnvFilter::try_from_env("FLEET_LOG").unwrap_or_else(|_| EnvFilter::new(default));
    let writer = RedactingWriter::new(redactor.clone(), std::io::stderr);
    let json = std::env::var("FLEET_LOG_FORMAT").is_ok_and(|format| format == "json");
    let colour = std::io::IsTerminal::is_terminal(&std::io::stderr());
    let builder = fmt().with_env_filter(filter).with_target(false).with_writer(writer);
    // A second start in one process keeps the first.
    let _ = if json { builder.json().try_init() } else { builder.with_ansi(colour).try_init() };
}
