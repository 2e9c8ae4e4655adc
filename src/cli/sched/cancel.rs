//! `fleet sched cancel`: ends a run that waits or runs.

use super::wake;
use crate::cli::runs::find;
use crate::cli::{Exit, Failure, Global, print};
use crate::clock::Clock;
use crate::run::RunState;
use crate::store::{Cancelled, StoreError};

#[derive(Debug, clap::Args)]
pub(super) struct CancelArgs {
    /// The run's id, or an unambiguous beginning of it
    run: String,
    /// Why, for the run's record
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

pub(super) fn run(args: &CancelArgs, global: &Global) -> Result<Exit, Failure> {
    let (store, run) = global.block_on(find(global, &args.run))??;
    let reason = match args.reason.as_deref().map(str::trim) {
        None | Some("") => "cancelled by the operator".to_owned(),
        Some(why) => format!("cancelled by the operator: {why}"),
    };
    let cancelled = global
        .block_on(store.cancel_run(run.clone(), Clock::System.now(), reason))?
        .map_err(failure)?;
    wake(global);
    print(&match cancelled {
        Cancelled::AtOnce => format!("{run} is cancelled"),
        Cancelled::Requested => {
            format!("{run} is told to end; fleet runs logs -f {run} follows it")
        }
    })?;
    Ok(Exit::Ok)
}

fn failure(error: StoreError) -> Failure {
    let hint = match &error {
        StoreError::WrongState { state, .. } if *state == RunState::DeadLettered.as_str() => {
            "it has ended; fleet dlq drop closes a dead letter"
        }
        StoreError::WrongState { .. } => "it has ended; fleet runs show says how",
        _ => return error.into(),
    };
    Failure::from(error).hint(hint)
}
