//! `fleet sandbox`.

use super::{Exit, Failure, Global};

/// Builds the sandbox image and probes the seal.
#[derive(Debug, clap::Args)]
pub struct SandboxArgs {}

/// Carries out the verb.
pub fn run(args: SandboxArgs, global: &Global) -> Result<Exit, Failure> {
    let _ = (args, global);
    todo!()
}
