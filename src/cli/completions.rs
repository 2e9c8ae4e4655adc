//! `fleet completions`.

use super::{Exit, Failure, Global};

/// Prints shell completions.
#[derive(Debug, clap::Args)]
pub struct CompletionsArgs {}

/// Carries out the verb.
pub fn run(args: CompletionsArgs, global: &Global) -> Result<Exit, Failure> {
    let _ = (args, global);
    todo!()
}
