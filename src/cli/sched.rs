//! `fleet sched`.

use super::{Exit, Failure, Global};

/// Shows and changes what is scheduled.
#[derive(Debug, clap::Args)]
pub struct SchedArgs {}

/// Carries out the verb.
pub fn run(args: SchedArgs, global: &Global) -> Result<Exit, Failure> {
    let _ = (args, global);
    todo!()
}
