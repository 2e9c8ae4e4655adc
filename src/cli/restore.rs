//! `fleet restore`: puts a backup in the store's place, with everybody else out of it.

use std::path::PathBuf;

use jiff::Timestamp;

use super::{Exit, Failure, Global, make_state_dir, print, print_json};
use crate::clock::Clock;
use crate::runner::{DaemonInfo, ServeLock, ServeLockError, holders, host_name};
use crate::store::{self, Restored, SinceBackup, StoreError};

/// Puts a backup in the store's place and keeps the store that it replaces. What was due since the
/// backup is not run, and what waited in it becomes dead letters: both may have run already.
#[derive(Debug, clap::Args)]
pub struct RestoreArgs {
    /// A file that `fleet backup` made
    file: PathBuf,
    /// Runs what waited in the backup and what was due since, by each task's policy, perhaps a second
    /// time
    #[arg(long)]
    catch_up: bool,
    /// JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Carries out the verb.
pub fn run(args: RestoreArgs, global: &Global) -> Result<Exit, Failure> {
    super::open::refuse_root()?;
    if let Err(error) = args.file.metadata() {
        let message = format!("cannot read the backup {}: {error}", args.file.display());
        return Err(Failure::new(Exit::Usage, message).hint(format!(
            "`fleet backup` keeps them in {}",
            global.config.state.backups().display()
        )));
    }
    let _alone = keep_out(global)?;
    let since = if args.catch_up { SinceBackup::CatchUp } else { SinceBackup::Skip };
    let now = Clock::System.now();
    let restored =
        store::restore(&args.file, &global.config.state.database(), since, now).map_err(failure)?;
    if args.json {
        print_json(&restored)?;
    } else {
        print(&text(&restored, &args, now))?;
    }
    Ok(Exit::Ok)
}

/// No daemon and no `fleet task run` lives on the state directory, and no daemon starts meanwhile.
fn keep_out(global: &Global) -> Result<ServeLock, Failure> {
    const WAY_OUT: &str = "stop it first (kill -TERM with that pid), then restore";
    let state = &global.config.state;
    make_state_dir(state)?;
    let held = |error: &ServeLockError| Failure::from_error(Exit::Conflict, error).hint(WAY_OUT);
    // Asked before the lock is taken, which writes this process into its file.
    if let Some(daemon) = ServeLock::holder(state) {
        let state = state.root().display().to_string();
        return Err(held(&ServeLockError::Held { state, holder: daemon.to_string() }));
    }
    if let Some(pid) = holders(state).first() {
        let message = format!(
            "pid {pid} carries out a run on the state directory {}",
            state.root().display()
        );
        return Err(Failure::new(Exit::Conflict, message).hint(WAY_OUT));
    }
    let this = DaemonInfo {
        pid: std::process::id(),
        host: host_name(),
        since: Clock::System.now(),
        page: "a restoration".to_owned(),
        bundle: PathBuf::new(),
    };
    ServeLock::acquire(state, &this).map_err(|error| held(&error))
}

/// A backup that cannot be used is replaced by another one, not by itself.
fn failure(error: StoreError) -> Failure {
    let unusable = matches!(error, StoreError::Corrupt { .. } | StoreError::NotAStore { .. });
    let failure = Failure::from(error);
    if unusable { failure.hint("the store is as it was: give another backup") } else { failure }
}

fn text(restored: &Restored, args: &RestoreArgs, now: Timestamp) -> String {
    let mut lines = vec![format!("restored {} with {} runs", args.file.display(), restored.runs)];
    if let Some(replaced) = &restored.replaced {
        lines.push(format!("the store that it replaces is kept: {}", replaced.display()));
    }
    let tick = restored.last_tick.map_or("no tick".to_owned(), |tick| tick.to_string());
    lines.push(if args.catch_up {
        format!("what was due since {tick} runs by its task's policy, perhaps a second time")
    } else {
        format!("what was due from {tick} to {now} is unknown: none of it is run")
    });
    if restored.set_aside > 0 {
        lines.push(format!(
            "{} runs waited in the backup and are dead letters now: `fleet dlq list` shows them, \
             `fleet dlq replay` runs those that did not run since",
            restored.set_aside
        ));
    }
    if restored.running > 0 {
        lines.push(format!(
            "{} runs were under way: the next start records them as interrupted",
            restored.running
        ));
    }
    lines.push(
        "artifacts and repositories are as they were: a backup does not hold them".to_owned(),
    );
    lines.join("\n")
}
