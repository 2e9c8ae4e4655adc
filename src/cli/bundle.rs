//! `fleet bundle`.

use super::{Exit, Failure, Global};

/// Checks and shows bundles.
#[derive(Debug, clap::Args)]
pub struct BundleArgs {}

/// Carries out the verb.
pub fn run(args: BundleArgs, global: &Global) -> Result<Exit, Failure> {
    let _ = (args, global);
    todo!()
}
