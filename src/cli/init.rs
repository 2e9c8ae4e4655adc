//! `fleet init`.

use super::{Exit, Failure, Global};

/// Scaffolds a bundle and commits it.
#[derive(Debug, clap::Args)]
pub struct InitArgs {}

/// Carries out the verb.
pub fn run(args: InitArgs, global: &Global) -> Result<Exit, Failure> {
    let _ = (args, global);
    todo!()
}
