//! Which bundle and which state directory a verb works on.

use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use super::{Exit, Failure};
use crate::config::{Config, StateDir};

/// The bundle repository: the flag, or `bundle` of fleet.toml.
pub(super) fn bundle_dir(flag: Option<PathBuf>, config: &Config) -> Result<PathBuf, Failure> {
    let dir = flag.or_else(|| config.bundle.clone()).ok_or_else(|| {
        Failure::new(Exit::Usage, "no bundle repository is given").hint(
            "give one with --bundle DIR, or set `bundle` in fleet.toml; fleet init DIR makes one",
        )
    })?;
    std::path::absolute(&dir).map_err(|error| {
        Failure::new(Exit::Usage, format!("cannot use {}: {error}", dir.display()))
    })
}

/// Makes the state directory for its owner alone.
pub(super) fn make_state_dir(state: &StateDir) -> Result<(), Failure> {
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(state.root());
    made.map_err(|error| {
        Failure::new(
            Exit::Io,
            format!("cannot make the state directory {}: {error}", state.root().display()),
        )
        .hint("give a writable directory with --state DIR or FLEET_STATE_DIR")
    })
}
