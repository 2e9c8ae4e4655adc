//! `fleet runs`.

use super::{Exit, Failure, Global};

/// Shows runs, their logs and artifacts.
#[derive(Debug, clap::Args)]
pub struct RunsArgs {}

/// Carries out the verb.
pub fn run(args: RunsArgs, global: &Global) -> Result<Exit, Failure> {
    let _ = (args, global);
    todo!()
}
