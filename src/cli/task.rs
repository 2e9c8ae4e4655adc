//! `fleet task`.

use super::{Exit, Failure, Global};

/// Lists and runs tasks.
#[derive(Debug, clap::Args)]
pub struct TaskArgs {}

/// Carries out the verb.
pub fn run(args: TaskArgs, global: &Global) -> Result<Exit, Failure> {
    let _ = (args, global);
    todo!()
}
