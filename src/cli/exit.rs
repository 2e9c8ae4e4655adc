//! Exit codes and the one place that prints a failure.

use std::io::Write;
use std::process::ExitCode;

use crate::runner::with_causes;

/// The documented exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Ok = 0,
    /// Bad input, or problems found.
    Problems = 1,
    /// Wrong usage, or a thing that does not exist.
    Usage = 2,
    Conflict = 3,
    WrongState = 4,
    /// The store, or input and output.
    Io = 5,
    Unhealthy = 6,
    /// The run failed.
    RunFailed = 7,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// What a verb could not do: a message, the way out, and the exit code.
#[derive(Debug)]
pub struct Failure {
    pub exit: Exit,
    /// What failed, on which thing, the value seen.
    pub message: String,
    /// The way out.
    pub hint: Option<String>,
}

impl Failure {
    /// A failure with its exit code.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Failure { exit, message: message.into(), hint: None }
    }

    /// Adds the way out.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// A failure of that code from an error and its causes.
    pub fn from_error(exit: Exit, error: &dyn std::error::Error) -> Self {
        Failure::new(exit, with_causes(error))
    }
}

/// Prints a failure to standard error and gives its code.
pub(super) fn report(failure: &Failure) -> ExitCode {
    let mut err = std::io::stderr().lock();
    // Nothing can be done when standard error is closed.
    let _ = writeln!(err, "error: {}", failure.message);
    if let Some(hint) = &failure.hint {
        let _ = writeln!(err, "  hint: {hint}");
    }
    failure.exit.into()
}

/// Prints clap's message: help and version go to standard output with code 0.
pub(super) fn usage(error: &clap::Error) -> ExitCode {
    let _ = error.print();
    if error.use_stderr() { Exit::Usage.into() } else { Exit::Ok.into() }
}
