//! `fleet config`.

use super::{Exit, Failure, Global};

/// Shows the host's configuration.
#[derive(Debug, clap::Args)]
pub struct ConfigArgs {}

/// Carries out the verb.
pub fn run(args: ConfigArgs, global: &Global) -> Result<Exit, Failure> {
    let _ = (args, global);
    todo!()
}
