//! Where everything is kept in the state directory.

use std::path::{Path, PathBuf};

/// The state directory and the names of its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateDir {
    root: PathBuf,
}

impl StateDir {
    /// A state directory at an absolute path; nothing is created.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        StateDir { root: root.into() }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The SQLite database.
    pub fn database(&self) -> PathBuf {
        self.root.join("fleet.db")
    }

    /// fleet's own Podman storage (`--root`).
    pub fn podman_root(&self) -> PathBuf {
        self.root.join("podman")
    }

    /// Private repositories of tasks without `workspace.repo`.
    pub fn repositories(&self) -> PathBuf {
        self.root.join("repos")
    }

    /// Per-run directories: the upper layer over `.git`, generated git config, masks.
    pub fn runs(&self) -> PathBuf {
        self.root.join("runs")
    }

    /// Copies of published files: `<run>/<attempt>/<n>`.
    pub fn artifacts(&self) -> PathBuf {
        self.root.join("artifacts")
    }

    /// Where `fleet backup` puts copies of the store when nobody says where.
    pub fn backups(&self) -> PathBuf {
        self.root.join("backups")
    }

    /// Lock files of living processes, one an instance.
    pub fn holders(&self) -> PathBuf {
        self.root.join("holders")
    }

    /// Touched to wake a daemon that shares this directory.
    pub fn wake_file(&self) -> PathBuf {
        self.root.join("wake")
    }

    /// Touches the wake file, so that a daemon looks at the store at once.
    pub fn wake(&self) -> std::io::Result<()> {
        std::fs::write(self.wake_file(), b"")
    }

    /// Held by the one `fleet serve` of this directory.
    pub fn serve_lock(&self) -> PathBuf {
        self.root.join("serve.lock")
    }

    /// Generated files of the sandbox: the seccomp filter, the helper, the cached seal report.
    pub fn sandbox_files(&self) -> PathBuf {
        self.root.join("sandbox")
    }
}
