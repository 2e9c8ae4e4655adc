//! What a process says that cannot open the state directory, the store or the sandbox.

use std::os::unix::fs::DirBuilderExt;

use super::{Exit, Failure};
use crate::config::StateDir;
use crate::runner::OpenError;

/// What a process that cannot open its context says.
pub(super) fn failure(error: OpenError) -> Failure {
    let error = match error {
        OpenError::Store(error) => return Failure::from(error),
        other => other,
    };
    let exit = match &error {
        OpenError::Preflight(_) => Exit::Unhealthy,
        OpenError::StateDir { .. }
        | OpenError::FileSystem(_)
        | OpenError::Store(_)
        | OpenError::Holder(_) => Exit::Io,
    };
    let failure = Failure::from_error(exit, &error);
    match error {
        OpenError::StateDir { .. } => {
            failure.hint("give a writable directory with --state DIR or FLEET_STATE_DIR")
        }
        OpenError::FileSystem(_) => {
            failure.hint("give a directory on a local disk with --state DIR or FLEET_STATE_DIR")
        }
        OpenError::Preflight(_) => {
            failure.hint("fleet doctor checks everything that the sandbox needs")
        }
        OpenError::Store(_) | OpenError::Holder(_) => failure,
    }
}

/// Root's files would lock the service user out, and rootless Podman is not for root.
pub(super) fn refuse_root() -> Result<(), Failure> {
    if rustix::process::geteuid().is_root() {
        return Err(Failure::new(Exit::Unhealthy, "fleet refuses to run as root").hint(
            "run it as the user that owns the state directory, for example after `su - fleet`",
        ));
    }
    Ok(())
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
