//! One diagnostic about a bundle.

use serde::Serialize;

/// How bad a problem is: warnings do not keep a bundle from loading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Error,
    Warning,
}

/// A place in a file, counted from 1; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Position {
    pub line: u32,
    pub column: u32,
}

/// One thing that is wrong with a bundle. Sorted by file, line, column, code. The fields and their
/// order are the documented JSON.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Problem {
    pub file: String,
    pub line: u32,
    pub column: u32,
    pub end_line: u32,
    pub end_column: u32,
    /// Stable, for example `unknown-key`.
    pub code: &'static str,
    pub severity: Severity,
    /// One lower-case line: what is wrong, and the value seen.
    pub message: String,
    /// The way out.
    pub hint: Option<String>,
}

impl Problem {
    /// Whether the host lacks something that the bundle names: it may be there tomorrow, and only the
    /// task that needs it is concerned.
    pub fn is_of_host(&self) -> bool {
        self.code == "missing-repo"
    }
}
