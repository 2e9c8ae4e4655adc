//! `fleet backup`: a verified copy of the store, taken while a daemon writes.

use std::path::PathBuf;

use super::{Exit, Failure, Global, print, print_json};
use crate::clock::Clock;
use crate::runner::size;
use crate::store;

/// Copies the store while it is in use, and opens the copy to see that it is whole. Artifacts and
/// repositories are not part of it.
#[derive(Debug, clap::Args)]
pub struct BackupArgs {
    /// The file to be made; an existing one is not overwritten
    /// [default: backups/fleet-<UTC time>.db in the state directory]
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
    /// JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Carries out the verb.
pub fn run(args: BackupArgs, global: &Global) -> Result<Exit, Failure> {
    super::open::refuse_root()?;
    let state = &global.config.state;
    let database = state.database();
    if !database.exists() {
        let message = format!("there is no store in {} to copy", state.root().display());
        return Err(Failure::new(Exit::Usage, message)
            .hint("name its directory with --state DIR or FLEET_STATE_DIR"));
    }
    let to = match args.to {
        Some(to) => to,
        None => default_place(global)?,
    };
    let made = store::backup(&database, &to)?;
    if args.json {
        print_json(&made)?;
    } else {
        print(&format!(
            "{}\n{}, {} runs, opened and found whole",
            made.path.display(),
            size(made.bytes),
            made.runs
        ))?;
    }
    Ok(Exit::Ok)
}

fn default_place(global: &Global) -> Result<PathBuf, Failure> {
    use std::os::unix::fs::DirBuilderExt;
    let dir = global.config.state.backups();
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir);
    made.map_err(|error| {
        Failure::new(Exit::Io, format!("cannot make {}: {error}", dir.display()))
            .hint("say with --to FILE where the copy goes")
    })?;
    store::sweep_parts(&dir);
    let stamp = Clock::System.now().strftime("%Y%m%dT%H%M%SZ");
    Ok(dir.join(format!("fleet-{stamp}.db")))
}
