//! The seal report: what a probe container read back, and where it is kept for this boot.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::PreflightError;
use super::image::ImageKind;
use super::seal::Holding;
use super::seccomp::Clone3;
use crate::run::SealLine;

/// What the seal is worth on this host, as seen from inside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealReport {
    /// `enforced` or `best_effort`.
    pub limits: String,
    /// The OCI runtime.
    pub runtime: String,
    /// What Podman is to pass to it.
    #[serde(default)]
    pub runtime_flags: Vec<String>,
    /// Subordinate ids (first, how many) under which the runtime may speak for a sandbox.
    #[serde(default)]
    pub speakers: Vec<(u32, u32)>,
    pub image_id: String,
    pub image_kind: ImageKind,
    pub podman_version: String,
    /// The kernel's id of the boot in which it was read.
    pub boot: String,
    /// The host's seccomp profile.
    pub profile: PathBuf,
    /// The generated filter.
    pub seccomp: PathBuf,
    pub seccomp_sha256: String,
    #[serde(default)]
    pub clone3: Clone3,
    pub lines: Vec<SealLine>,
}

pub(super) const ENFORCED: &str = "enforced";
pub(super) const BEST_EFFORT: &str = "best_effort";

impl SealReport {
    /// Every limit is a limit of the control group.
    pub fn limits_enforced(&self) -> bool {
        self.limits == ENFORCED
    }

    pub(super) fn holding(&self) -> Holding {
        if self.limits_enforced() { Holding::Cgroups } else { Holding::Rlimits }
    }

    /// The report of an earlier process in this boot, for the same key.
    pub(super) fn cached(dir: &Path, key: &str) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(cache_file(dir, key)).ok()?).ok()
    }

    pub(super) fn keep(&self, dir: &Path, key: &str) -> Result<(), PreflightError> {
        let text = serde_json::to_vec_pretty(self).expect("a report is plain data");
        write_whole(&cache_file(dir, key), &text)
    }
}

fn cache_file(dir: &Path, key: &str) -> PathBuf {
    dir.join(format!("seal-{key}.json"))
}

/// Writes a file whole or not at all; makes its directory.
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), PreflightError> {
    let failed =
        |source| PreflightError::Files { verb: "write", path: path.display().to_string(), source };
    let dir = path.parent().expect("a file has a directory");
    super::podman::make_private(dir)?;
    let draft = path.with_extension(format!("{}.new", std::process::id()));
    std::fs::write(&draft, bytes).and_then(|()| std::fs::rename(&draft, path)).map_err(failed)
}
