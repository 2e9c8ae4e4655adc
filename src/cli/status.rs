//! `fleet status`.

use super::{Exit, Failure, Global};

/// Shows what runs, what is due and what is wrong.
#[derive(Debug, clap::Args)]
pub struct StatusArgs {}

/// Carries out the verb.
pub fn run(args: StatusArgs, global: &Global) -> Result<Exit, Failure> {
    let _ = (args, global);
    todo!()
}
