//! Everything that carrying out a run needs, opened once per process.

use std::sync::Arc;

use tokio::sync::Notify;
use tracing::{info, warn};

use super::executor::{Double, Executor};
use super::file_system::{self, NetworkFileSystem};
use super::holder::{self, HolderError, HolderLock};
use super::lease;
use super::models::ModelFactory;
use super::seals::Seals;
use crate::clock::Clock;
use crate::config::{Config, StateDir};
use crate::egress::Dialer;
use crate::run::{Alarms, RunId};
use crate::sandbox::{Podman, Pool, PreflightError, SealReport, preflight};
use crate::secrets::Redactor;
use crate::store::{ClaimRequest, Store, StoreError};

/// Shared by every run of a process.
pub struct Context {
    pub config: Config,
    pub store: Store,
    pub clock: Clock,
    pub redactor: Redactor,
    pub models: ModelFactory,
    pub podman: Podman,
    pub seal: SealReport,
    /// Under other OCI runtimes, which bundles name.
    pub(super) seals: Seals,
    /// Every sandbox of this process is started there.
    pub sandboxes: Pool,
    pub holder: HolderLock,
    pub executor: Executor,
    /// How names become connections. Only a test changes it.
    pub dialer: Dialer,
    /// What is wrong with the host, for the page and before claims.
    pub alarms: Alarms,
    /// Woken when notices were promised.
    pub promised: Notify,
}

/// Why nothing can be run here. Each says the way out.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("cannot make the state directory {path}")]
    StateDir { path: String, source: std::io::Error },
    #[error(transparent)]
    FileSystem(#[from] NetworkFileSystem),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Preflight(#[from] PreflightError),
    #[error(transparent)]
    Holder(#[from] HolderError),
}

impl Context {
    /// Opens the store, checks the sandbox and becomes a holder. Nothing is left behind on failure
    /// but the state directory itself.
    pub async fn open(
        config: Config,
        clock: Clock,
        redactor: Redactor,
    ) -> Result<Arc<Self>, OpenError> {
        make_private(&config.state)?;
        file_system::check(config.state.root())?;
        let store = Store::open(&config.state.database(), redactor.clone())?;
        let podman = Podman::connect(&config)?;
        let seal = preflight(&podman, &config).await?;
        if !seal.limits_enforced() {
            warn!(
                limits = "best_effort",
                "this host does not enforce every limit: rlimits stand in, and every run says so"
            );
        }
        Self::assemble(config, clock, redactor, store, podman, seal, Executor::Sandbox)
    }

    /// A context from its parts. Becomes a holder.
    fn assemble(
        config: Config,
        clock: Clock,
        redactor: Redactor,
        store: Store,
        podman: Podman,
        seal: SealReport,
        executor: Executor,
    ) -> Result<Arc<Self>, OpenError> {
        let holder = HolderLock::acquire(&config.state)?;
        holder::sweep_dead(&config.state);
        let models = ModelFactory::new(clock.clone(), redactor.clone());
        info!(holder.instance = %holder.holder().instance, state = %config.state.root().display(), "opened the state directory");
        let alarms = Alarms::default();
        Ok(Arc::new(Context {
            config,
            store,
            clock,
            redactor,
            models,
            sandboxes: Pool::new(podman.clone()),
            podman,
            seal,
            seals: Seals::default(),
            holder,
            executor,
            dialer: Dialer::default(),
            alarms,
            promised: Notify::new(),
        }))
    }

    /// A context in which nothing is run: a double says how each run ends. Podman must be installed,
    /// and is not started.
    pub fn open_with_double(
        config: Config,
        clock: Clock,
        redactor: Redactor,
        seal: SealReport,
        double: Double,
    ) -> Result<Arc<Self>, OpenError> {
        make_private(&config.state)?;
        let store = Store::open(&config.state.database(), redactor.clone())?;
        let podman = Podman::connect(&config)?;
        let executor = Executor::Double(double);
        Self::assemble(config, clock, redactor, store, podman, seal, executor)
    }

    /// A claim by this process, now: of that run alone, or of whatever is due.
    pub fn claim(&self, only: Option<RunId>) -> ClaimRequest {
        let now = self.clock.now();
        let holder = self.holder.holder().clone();
        ClaimRequest { holder, now, lease_until: now + lease::LEASE, only }
    }

    /// A fresh run id.
    pub fn new_run_id(&self) -> Result<RunId, HolderError> {
        new_run_id(&self.clock)
    }
}

/// A fresh run id, from the clock and 30 random bits.
pub fn new_run_id(clock: &Clock) -> Result<RunId, HolderError> {
    let mut random = [0_u8; 4];
    getrandom::fill(&mut random).map_err(|error| HolderError::Random(error.to_string()))?;
    let millis = u64::try_from(clock.now().as_millisecond()).unwrap_or(0);
    Ok(RunId::from_parts(millis, u32::from_le_bytes(random)))
}

/// Makes the state directory for its owner alone: the workspaces of private repositories lie in it.
fn make_private(state: &StateDir) -> Result<(), OpenError> {
    use std::os::unix::fs::DirBuilderExt;
    let failed = |source| OpenError::StateDir { path: state.root().display().to_string(), source };
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(state.root()).map_err(failed)
}
