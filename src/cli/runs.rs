//! `fleet runs`: what ran, how it ended and what it left. Reads only; makes no state directory.

mod artifacts;
mod list;
mod show;

use super::follow::{self, Style};
use super::{Exit, Failure, Global};
use crate::run::RunId;
use crate::store::{Store, StoreError};

/// Shows runs, their logs and artifacts.
#[derive(Debug, clap::Args)]
pub struct RunsArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Lists runs, the newest due first
    List(list::ListArgs),
    /// Shows one run whole
    Show {
        /// The run's id, or the beginning of it
        id: String,
        /// JSON instead of text
        #[arg(long)]
        json: bool,
    },
    /// Prints a run's session log
    Logs {
        /// The run's id, or the beginning of it
        id: String,
        /// Go on until the run has ended
        #[arg(short, long)]
        follow: bool,
        /// One JSON object a line, with whole outputs
        #[arg(long)]
        json: bool,
    },
    /// Lists a run's artifacts, or copies them
    Artifacts(artifacts::ArtifactsArgs),
}

/// Carries out the verb.
pub fn run(args: RunsArgs, global: &Global) -> Result<Exit, Failure> {
    global.block_on(async {
        match args.verb {
            Verb::List(args) => list::run(args, global).await,
            Verb::Show { id, json } => {
                let (store, run) = find(global, &id).await?;
                show::print_run(&store.run_detail(run).await?, json)
            }
            Verb::Logs { id, follow, json } => {
                let (store, run) = find(global, &id).await?;
                let style = if json { Style::JsonLines } else { Style::Timeline };
                if follow {
                    follow::follow(&store, &run, style).await?;
                } else {
                    follow::recorded(&store, &run, style).await?;
                }
                Ok(Exit::Ok)
            }
            Verb::Artifacts(args) => {
                let (store, run) = find(global, &args.id).await?;
                let detail = store.run_detail(run).await?;
                artifacts::run(&args, &detail, &global.config.state)
            }
        }
    })?
}

/// The store, and the run that an id or the beginning of one names.
pub(super) async fn find(global: &Global, id: &str) -> Result<(Store, RunId), Failure> {
    let absent = StoreError::RunNotFound(id.to_owned());
    let found = match global.named_store()? {
        Some(store) => store.find_run(id.to_owned()).await.map(|run| (store, run)),
        None => Err(absent),
    };
    found.map_err(|error| match error {
        StoreError::RunNotFound(_) => {
            let root = global.config.state.root().display();
            Failure::from(error).hint(format!(
                "fleet runs list shows the runs of {root}; another state directory: --state DIR"
            ))
        }
        error => error.into(),
    })
}
