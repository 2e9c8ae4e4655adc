//! `fleet serve`.

use super::{Exit, Failure, Global};

/// Runs the scheduler and the status page.
#[derive(Debug, clap::Args)]
pub struct ServeArgs {}

/// Carries out the verb.
pub fn run(args: ServeArgs, global: &Global) -> Result<Exit, Failure> {
    let _ = (args, global);
    todo!()
}
