//! The one table of configuration: key, environment name, default and meaning. It drives reading,
//! `fleet config show` and `docs/configuration.md`.

use std::path::PathBuf;

use super::value::{self, Taken};
use super::{Config, StateDir};

/// One configurable value.
pub(super) struct Key {
    /// Dotted, as in `fleet.toml`.
    pub toml: &'static str,
    pub env: &'static str,
    /// As it would be written; words in parentheses where it depends on the host.
    pub default: &'static str,
    pub meaning: &'static str,
    /// Puts a written value into the configuration; `Ok(Some)` says how it was out of range.
    pub set: fn(&mut Config, &str) -> Result<Option<&'static str>, &'static str>,
    /// The value in force, for keys whose written value may be replaced.
    pub read_back: fn(&Config) -> String,
}

/// Every key, in the order in which they are shown.
pub(super) const KEYS: &[Key] = &[
    Key {
        toml: "bundle",
        env: "FLEET_BUNDLE",
        default: "(none: pass --bundle)",
        meaning: "The bundle's repository, where --bundle does not name one.",
        set: |config, text| {
            config.bundle = Some(path(text)?);
            Ok(None)
        },
        read_back: |_| String::new(),
    },
    Key {
        toml: "sandbox.limits",
        env: "FLEET_SANDBOX_LIMITS",
        default: "enforced",
        meaning: "enforced: refuse to start where memory, CPU and process limits cannot be held. \
                  best_effort: stand in with rlimits, and mark every run so.",
        set: |config, text| {
            config.limits = value::limits(text)?;
            Ok(None)
        },
        read_back: |_| String::new(),
    },
    Key {
        toml: "sandbox.runtime",
        env: "FLEET_SANDBOX_RUNTIME",
        default: "(Podman's, or runc on hybrid cgroups)",
        meaning: "The OCI runtime: crun, runc, runsc, kata or libkrun. A bundle's sandbox.runtime wins.",
        set: |config, text| {
            config.runtime = Some(value::runtime(text)?);
            Ok(None)
        },
        read_back: |_| String::new(),
    },
    Key {
        toml: "sandbox.image",
        env: "FLEET_SANDBOX_IMAGE",
        default: DEFAULT_IMAGE,
        meaning: "The image of the sandbox in fleet's own Podman storage.",
        set: |config, text| {
            config.image = not_empty(text, "the name of an image")?;
            Ok(None)
        },
        read_back: |_| String::new(),
    },
    Key {
        toml: "sandbox.storage",
        env: "FLEET_SANDBOX_STORAGE",
        default: "(podman in the state directory)",
        meaning: "fleet's own Podman storage.",
        set: |config, text| {
            config.podman_root = path(text)?;
            Ok(None)
        },
        read_back: |_| String::new(),
    },
    Key {
        toml: "serve.listen",
        env: "FLEET_LISTEN",
        default: "127.0.0.1:8707",
        meaning: "The status page's address.",
        set: |config, text| {
            config.listen = value::address(text)?;
            Ok(None)
        },
        read_back: |_| String::new(),
    },
    Key {
        toml: "serve.max_concurrent_runs",
        env: "FLEET_MAX_CONCURRENT_RUNS",
        default: "4",
        meaning: "Runs at once. 0 is out of range and follows the default.",
        set: |config, text| {
            let taken = value::concurrency(text, config.max_concurrent_runs)?;
            Ok(put(&mut config.max_concurrent_runs, taken))
        },
        read_back: |config| config.max_concurrent_runs.to_string(),
    },
    Key {
        toml: "serve.shutdown_grace",
        env: "FLEET_SHUTDOWN_GRACE",
        default: "30s",
        meaning: "How long SIGTERM waits for running work before it is interrupted.",
        set: |config, text| {
            config.shutdown_grace = value::duration(text)?;
            Ok(None)
        },
        read_back: |_| String::new(),
    },
    Key {
        toml: "tasks.wall_timeout",
        env: "FLEET_TASK_WALL_TIMEOUT",
        default: "4h",
        meaning: "The most time that one attempt may take; 0 is no ceiling.",
        set: |config, text| {
            config.task_wall_timeout = value::ceiling(text)?;
            Ok(None)
        },
        read_back: |_| String::new(),
    },
    Key {
        toml: "tasks.python_cell_timeout",
        env: "FLEET_PYTHON_CELL_TIMEOUT",
        default: "0",
        meaning: "The most time that one run_python call may take; 0 is no ceiling of its own.",
        set: |config, text| {
            config.python_cell_timeout = value::ceiling(text)?;
            Ok(None)
        },
        read_back: |_| String::new(),
    },
    Key {
        toml: "tasks.budget_winddown_fraction",
        env: "FLEET_BUDGET_WINDDOWN_FRACTION",
        default: "0.8",
        meaning: "The share of a cost or token ceiling from which the model is told to wrap up; \
                  above 1 counts as 1, 0 and less follow the default.",
        set: |config, text| {
            let taken = value::fraction(text, config.budget_winddown_fraction)?;
            Ok(put(&mut config.budget_winddown_fraction, taken))
        },
        read_back: |config| config.budget_winddown_fraction.to_string(),
    },
    Key {
        toml: "tasks.context_warn_threshold",
        env: "FLEET_CONTEXT_PRESSURE_WARN_THRESHOLD",
        default: "0.75",
        meaning: "The share of a model's context window from which a run's log says that it fills up. \
                  Out of range it follows the default.",
        set: |config, text| {
            let taken = value::share(text, 0.75)?;
            Ok(put(&mut config.context_warn_fraction, taken))
        },
        read_back: |config| config.context_warn_fraction.to_string(),
    },
    Key {
        toml: "tasks.context_compaction_threshold",
        env: "FLEET_CONTEXT_COMPACTION_THRESHOLD",
        default: "0.9",
        meaning: "The share from which the conversation's older half is summarized, where auto_compact \
                  is on. Out of range it follows the default.",
        set: |config, text| {
            let taken = value::share(text, 0.9)?;
            Ok(put(&mut config.context_compact_fraction, taken))
        },
        read_back: |config| config.context_compact_fraction.to_string(),
    },
    Key {
        toml: "tasks.auto_compact",
        env: "FLEET_SCHEDULED_AUTO_COMPACT",
        default: "0",
        meaning: "1: conversations are compacted before a provider refuses them, in tasks that do not \
                  set auto_compact. A refused prompt is compacted in any case.",
        set: |config, text| {
            config.auto_compact = value::switch(text)?;
            Ok(None)
        },
        read_back: |config| u8::from(config.auto_compact).to_string(),
    },
    Key {
        toml: "retention.days",
        env: "FLEET_RETENTION_DAYS",
        default: "90",
        meaning: "Days after its end for which a run is kept, with its log and its artifacts; \
                  0 keeps all for ever. Dead letters are kept until they are replayed or dropped.",
        set: |config, text| {
            config.retention = value::days(text)?;
            Ok(None)
        },
        read_back: |_| String::new(),
    },
    Key {
        toml: "retention.keep_runs",
        env: "FLEET_RETENTION_KEEP_RUNS",
        default: "10",
        meaning: "The newest runs of each task that are kept however old they are.",
        set: |config, text| {
            config.retention_keep_runs = value::count(text)?;
            Ok(None)
        },
        read_back: |_| String::new(),
    },
    Key {
        toml: "disk.min_free",
        env: "FLEET_DISK_MIN_FREE",
        default: "1GiB",
        meaning: "Free space of the state directory's file system below which `fleet serve` starts \
                  no new run; 0 turns the guard off.",
        set: |config, text| {
            config.disk_min_free = value::bytes(text)?;
            Ok(None)
        },
        read_back: |_| String::new(),
    },
];

/// Environment names of the source document that belong to chat, which fleet does not have.
pub(super) const CHAT_ONLY: [&str; 3] = ["FLEET_PYTHON_REPL_", "CHAT_", "CUTLASS_"];

const DEFAULT_IMAGE: &str = "localhost/fleet-sandbox:latest";

/// The configuration when nothing is written anywhere.
pub(super) fn defaults(state: StateDir) -> Config {
    let mut config = Config {
        podman_root: state.podman_root(),
        state,
        bundle: None,
        limits: super::LimitsMode::Enforced,
        runtime: None,
        image: DEFAULT_IMAGE.to_owned(),
        listen: std::net::SocketAddr::from(([127, 0, 0, 1], 8707)),
        max_concurrent_runs: 4,
        shutdown_grace: std::time::Duration::ZERO,
        task_wall_timeout: None,
        python_cell_timeout: None,
        budget_winddown_fraction: 0.8,
        context_warn_fraction: 0.75,
        context_compact_fraction: 0.9,
        auto_compact: false,
        retention: None,
        retention_keep_runs: 10,
        disk_min_free: 0,
        warnings: Vec::new(),
        settings: Vec::new(),
    };
    for key in KEYS.iter().filter(|key| !key.default.starts_with('(')) {
        let taken = (key.set)(&mut config, key.default);
        debug_assert_eq!(taken, Ok(None), "the default of {} is in range", key.toml);
    }
    config
}

fn put<T>(slot: &mut T, taken: Taken<T>) -> Option<&'static str> {
    match taken {
        Taken::AsWritten(value) => {
            *slot = value;
            None
        }
        Taken::Replaced(value, why) => {
            *slot = value;
            Some(why)
        }
    }
}

fn not_empty(text: &str, wanted: &'static str) -> Result<String, &'static str> {
    if text.trim().is_empty() { Err(wanted) } else { Ok(text.to_owned()) }
}

fn path(text: &str) -> Result<PathBuf, &'static str> {
    const WANTED: &str = "the path of a directory";
    std::path::absolute(not_empty(text, WANTED)?).map_err(|_| WANTED)
}
