//! What a run published.

use serde::{Deserialize, Serialize};

/// A file that a run published as one of its results. The bytes are copied into the state directory
/// when the run's work is collected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// The name under which it is listed: the path's last part unless the agent gave another.
    pub name: String,
    /// Path relative to the workspace, `/`-separated.
    pub path: String,
    pub description: Option<String>,
    /// Bytes.
    pub size: u64,
    /// Lower-case hexadecimal SHA-256 of the content; absent until it is collected.
    pub sha256: Option<String>,
}
