//! `fleet dlq`.

use super::{Exit, Failure, Global};

/// Reviews and replays dead letters (also `fleet sched dlq`).
#[derive(Debug, clap::Args)]
pub struct DlqArgs {}

/// Carries out the verb.
pub fn run(args: DlqArgs, global: &Global) -> Result<Exit, Failure> {
    let _ = (args, global);
    todo!()
}
