//! One check, and what may be done about it.

use crate::sandbox::PreflightError;

/// What was looked at, and what came of it.
#[derive(Clone, Debug, serde::Serialize)]
pub(super) struct Check {
    pub name: &'static str,
    pub ok: bool,
    /// What was seen, or what is wrong and the way out.
    pub message: String,
    /// The command that root must run, where only root can help.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    #[serde(skip)]
    pub repair: Option<Repair>,
}

/// What `--fix` does by itself, with the rights of an ordinary user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repair {
    /// Removes fleet's own Podman storage, so that it is made anew with overlay.
    StorageAnew,
    BuildImage,
    /// Removes containers, doors, worktrees and overlays of dead processes.
    ClearStale,
}

impl Check {
    pub fn ok(name: &'static str, message: impl Into<String>) -> Self {
        Check { name, ok: true, message: message.into(), root: None, repair: None }
    }

    pub fn wrong(name: &'static str, message: impl Into<String>) -> Self {
        Check { ok: false, ..Check::ok(name, message) }
    }

    pub fn of<E: std::error::Error>(name: &'static str, result: Result<String, E>) -> Self {
        match result {
            Ok(message) => Check::ok(name, message),
            Err(error) => Check::wrong(name, crate::runner::with_causes(&error)),
        }
    }

    pub fn ok_or(name: &'static str, result: Result<String, String>) -> Self {
        result.map_or_else(|told| Check::wrong(name, told), |told| Check::ok(name, told))
    }

    pub fn by_root(self, command: impl Into<String>) -> Self {
        Check { root: Some(command.into()), ..self }
    }

    pub fn repaired_by(self, repair: Repair) -> Self {
        Check { repair: Some(repair), ..self }
    }

    /// A refusal of the sandbox, under the name of what it is about.
    pub fn refused(error: &PreflightError) -> Self {
        let (name, repair) = match error {
            PreflightError::Storage { .. } | PreflightError::StorageMoved { .. } => {
                ("storage driver", Some(Repair::StorageAnew))
            }
            PreflightError::NoOverlay { .. } | PreflightError::DiskFull { .. } => {
                ("storage driver", None)
            }
            PreflightError::ImageMissing { .. } => ("image", Some(Repair::BuildImage)),
            PreflightError::NoSeccomp | PreflightError::SeccompProfile { .. } => {
                ("seccomp profile", None)
            }
            PreflightError::NoSubordinateIds { .. } | PreflightError::IdMapper { .. } => {
                ("id mapping", None)
            }
            PreflightError::RuntimeDir { .. } => ("runtime directory", None),
            PreflightError::NoPodman
            | PreflightError::TooOld { .. }
            | PreflightError::Hung { .. }
            | PreflightError::Garbage { .. }
            | PreflightError::Info { .. }
            | PreflightError::Podman(_) => ("podman", None),
            _ => ("sandbox seal", None),
        };
        Check { repair, ..Check::wrong(name, crate::runner::with_causes(error)) }
    }
}
