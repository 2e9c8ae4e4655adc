//! `fleet.toml` and the documented environment names, read once into one struct. Refuses values that
//! it cannot parse; keeps no secrets in text.

mod state_dir;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

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
    /// Warnings from reading: out-of-range values that followed their default, names not read.
    pub warnings: Vec<String>,
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
}

impl Config {
    /// Reads `fleet.toml` in the state directory and the environment.
    pub fn read(overrides: Overrides) -> Result<Self, ConfigError> {
        let _ = overrides;
        todo!()
    }
}
