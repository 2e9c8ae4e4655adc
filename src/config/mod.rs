//! `fleet.toml` and the documented environment names, read once into one struct. Refuses values that
//! it cannot parse; keeps no secrets in text.

mod document;
mod sources;
mod state_dir;
mod table;
mod value;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

pub use document::{document, meaning};
pub use sources::{Environment, Origin, Setting};
pub use state_dir::StateDir;

/// What happens when a limit flag cannot be enforced on this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitsMode {
    /// Refuse to start.
    Enforced,
    /// Resource limits stand in as rlimits, and every run says so. The network seal, capabilities,
    /// seccomp and the read-only root have no best effort.
    BestEffort,
}

/// The host's configuration, complete.
#[derive(Clone, Debug)]
pub struct Config {
    pub state: StateDir,
    /// The bundle repository, where configured (`--bundle` wins).
    pub bundle: Option<PathBuf>,
    pub limits: LimitsMode,
    /// The OCI runtime, `None` = Podman's default, with runc on hybrid cgroups.
    pub runtime: Option<String>,
    /// The image's name in fleet's own Podman storage.
    pub image: String,
    /// fleet's own Podman storage; default `podman` in the state directory.
    pub podman_root: PathBuf,
    /// The status page's address. Default 127.0.0.1:8707.
    pub listen: SocketAddr,
    /// Runs at once. Default 4.
    pub max_concurrent_runs: u32,
    /// How long SIGTERM waits for running work. Default 30 s.
    pub shutdown_grace: Duration,
    /// FLEET_TASK_WALL_TIMEOUT; `None` = no ceiling. Default 4 h.
    pub task_wall_timeout: Option<Duration>,
    /// FLEET_PYTHON_CELL_TIMEOUT; `None` = no ceiling.
    pub python_cell_timeout: Option<Duration>,
    /// FLEET_BUDGET_WINDDOWN_FRACTION, in (0, 1]. Default 0.8.
    pub budget_winddown_fraction: f64,
    /// The share of a model's context window from which a warning is recorded.
    pub context_warn_fraction: f64,
    /// The share from which the conversation is compacted, for tasks with `auto_compact`.
    pub context_compact_fraction: f64,
    /// `auto_compact` of tasks that do not say.
    pub auto_compact: bool,
    /// How long ended runs are kept; `None` = for ever. Default 90 days.
    pub retention: Option<Duration>,
    /// Runs of each task that are kept however old they are. Default 10.
    pub retention_keep_runs: u32,
    /// Free bytes below which nothing new is claimed; 0 = never. Default 1 GiB.
    pub disk_min_free: u64,
    /// Warnings from reading: out-of-range values and what they became, names that are not read.
    pub warnings: Vec<String>,
    /// Each value as it was written, and where: what `fleet config show` prints.
    pub settings: Vec<Setting>,
}

/// What the command line says over `fleet.toml` and the environment.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    pub state: Option<PathBuf>,
}

/// Why the configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("{name}: {value:?} is not {wanted}")]
    Unparsable { name: String, value: String, wanted: &'static str },
    #[error("{file}: unknown key {key}{hint}")]
    UnknownKey { file: String, key: String, hint: String },
    #[error("{file}: not TOML: {message}")]
    NotToml { file: String, message: String },
    #[error("cannot read {file}")]
    Unreadable {
        file: String,
        #[source]
        source: std::io::Error,
    },
    #[error("no state directory: set FLEET_STATE_DIR, or HOME")]
    NoStateDir,
}

impl Config {
    /// Reads `fleet.toml` and the environment. A value of the environment wins over one of the file;
    /// the file in the state directory is read instead of the user's, not besides it.
    pub fn read(overrides: Overrides) -> Result<Self, ConfigError> {
        Self::read_with(overrides, &Environment::of_process())
    }

    /// Reads with that environment and no other.
    pub fn read_with(overrides: Overrides, env: &Environment) -> Result<Self, ConfigError> {
        let state = sources::state_dir(overrides.state, env)?;
        let mut config = table::defaults(StateDir::new(state));
        let file = sources::File::find(&config.state, env)?;
        for key in table::KEYS {
            sources::apply(&mut config, key, &file, env)?;
        }
        config.warnings.extend(sources::names_not_read(env));
        Ok(config)
    }
}
