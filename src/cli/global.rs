//! What every verb may use: the global flags, the configuration, the store.

use std::path::{Path, PathBuf};

use super::{Exit, Failure};
use crate::config::{Config, Overrides};
use crate::secrets::Redactor;
use crate::store::{Store, StoreError};

/// Flags that every verb takes.
#[derive(Debug, clap::Args)]
pub(super) struct GlobalArgs {
    /// The state directory [default: $FLEET_STATE_DIR, $XDG_STATE_HOME/fleet or ~/.local/state/fleet]
    #[arg(long, global = true, value_name = "DIR")]
    state: Option<PathBuf>,
}

/// The flags and what is read because of them.
#[derive(Debug)]
pub struct Global {
    pub config: Config,
    pub redactor: Redactor,
    /// Whether `--state` chose the state directory.
    pub(super) state_by_flag: bool,
}

impl Global {
    pub(super) fn new(args: GlobalArgs) -> Result<Self, Failure> {
        let state_by_flag = args.state.is_some();
        let config = Config::read(Overrides { state: args.state })
            .map_err(|error| Failure::from_error(Exit::Problems, &error))?;
        Ok(Global { config, redactor: Redactor::default(), state_by_flag })
    }

    /// Opens the store, and makes it when it is missing.
    pub fn store(&self) -> Result<Store, Failure> {
        super::open::refuse_root()?;
        Store::open(&self.config.state.database(), self.redactor.clone()).map_err(Failure::from)
    }

    /// Opens the store if there is one: verbs that only read make nothing.
    pub(super) fn existing_store(&self) -> Result<Option<Store>, Failure> {
        super::open::refuse_root()?;
        let path = self.config.state.database();
        match path.try_exists() {
            Ok(true) => self.store().map(Some),
            Ok(false) => Ok(None),
            Err(error) => {
                Err(Failure::new(Exit::Io, format!("cannot look for {}: {error}", path.display())))
            }
        }
    }

    /// The store of verbs that show or change what ran: a state directory that somebody named and that
    /// is not there is a mistake, not a fleet without runs.
    pub(super) fn named_store(&self) -> Result<Option<Store>, Failure> {
        let state = self.config.state.root();
        if self.state_by_flag && state.try_exists().is_ok_and(|there| !there) {
            let message = format!("the state directory {} does not exist", state.display());
            return Err(Failure::new(Exit::Usage, message)
                .hint("give the directory that `fleet serve` uses, or leave --state out"));
        }
        self.existing_store()
    }

    /// Runs a future to its end on a small runtime of its own.
    pub fn block_on<F: Future>(&self, future: F) -> Result<F::Output, Failure> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map_err(|error| {
                Failure::new(Exit::Io, format!("cannot start the runtime: {error}"))
            })?;
        Ok(runtime.block_on(future))
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let exit = match &error {
            StoreError::RunNotFound(_) | StoreError::AmbiguousRun(..) => Exit::Usage,
            StoreError::WrongState { .. } => Exit::WrongState,
            StoreError::LeaseLost(_)
            | StoreError::KeyHeld { .. }
            | StoreError::InUse { .. }
            | StoreError::Exists { .. }
            | StoreError::DaemonReplaced(_) => Exit::Conflict,
            StoreError::Open { .. }
            | StoreError::NotWritten { .. }
            | StoreError::Corrupt { .. }
            | StoreError::Full { .. }
            | StoreError::ReadOnly { .. }
            | StoreError::NotAStore { .. }
            | StoreError::TooNew { .. }
            | StoreError::Sql { .. }
            | StoreError::Failed(_)
            | StoreError::Closed => Exit::Io,
        };
        let failure = Failure::from_error(exit, &error);
        match store_hint(&error) {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

/// The way out of what is wrong with the store's file.
fn store_hint(error: &StoreError) -> Option<String> {
    match error {
        StoreError::Corrupt { path, .. } | StoreError::NotAStore { path, .. } => Some(format!(
            "put the newest sound backup in its place with `fleet restore FILE`; `fleet backup` keeps \
             them in {}",
            Path::new(path).with_file_name("backups").display()
        )),
        StoreError::Full { path, .. } => {
            Some(format!("make room on the disk of {path}, then try again"))
        }
        StoreError::ReadOnly { path, .. } => Some(format!(
            "make {path} and its directory writable for this user, or give another directory with \
             --state DIR"
        )),
        StoreError::TooNew { .. } => {
            Some("use the newer fleet that wrote it, or `fleet restore` an older backup".to_owned())
        }
        StoreError::Exists { .. } => Some("give the name of a new file".to_owned()),
        StoreError::NotWritten { .. } => {
            Some("give a file in a directory that this user may write to".to_owned())
        }
        StoreError::InUse { .. } => {
            Some("stop `fleet serve` and wait until every other fleet command has ended".to_owned())
        }
        _ => None,
    }
}
