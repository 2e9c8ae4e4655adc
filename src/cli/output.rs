//! Prints results to standard output. A reader that went away ends the program quietly, as users of
//! pipes expect.

use std::io::{self, Write};

use super::{Exit, Failure};

/// Prints a text and a line end.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => {
            Err(Failure::new(Exit::Io, format!("cannot write to standard output: {error}")))
        }
    }
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
