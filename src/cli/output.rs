//! Prints results to standard output. A reader that went away is no failure.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Exit, Failure};

/// Nobody reads standard output any more.
static CLOSED: AtomicBool = AtomicBool::new(false);

/// Prints a text and a line end. When the reader went away nothing more is printed, and the verb goes
/// on: what it does, and its exit code, do not depend on who reads.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    if is_closed() {
        return Ok(());
    }
    let mut out = io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            CLOSED.store(true, Ordering::Relaxed);
            Ok(())
        }
        Err(error) => {
            Err(Failure::new(Exit::Io, format!("cannot write to standard output: {error}")))
        }
    }
}

/// Whether the reader of standard output went away: a verb that only prints may end.
pub(super) fn is_closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}

/// Prints a value as indented JSON.
pub(super) fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Failure::new(Exit::Io, format!("cannot write JSON: {error}")))?;
    print(&text)
}

/// A table without borders, with these column heads.
pub(super) fn table(heads: &[&str]) -> comfy_table::Table {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING).set_header(heads);
    table
}
