//! `fleet worktree`.

use super::{Exit, Failure, Global};

/// Lists and prunes worktrees.
#[derive(Debug, clap::Args)]
pub struct WorktreeArgs {}

/// Carries out the verb.
pub fn run(args: WorktreeArgs, global: &Global) -> Result<Exit, Failure> {
    let _ = (args, global);
    todo!()
}
