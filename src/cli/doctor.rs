//! `fleet doctor`.

use super::{Exit, Failure, Global};

/// Checks that this host can run fleet.
#[derive(Debug, clap::Args)]
pub struct DoctorArgs {}

/// Carries out the verb.
pub fn run(args: DoctorArgs, global: &Global) -> Result<Exit, Failure> {
    let _ = (args, global);
    todo!()
}
