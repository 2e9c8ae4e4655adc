//! Podman's user namespace is held by a process of its own, the pause process, and by the monitors of
//! running containers. Where all of these were killed at once and the runtime directory stayed (no
//! systemd removes it), Podman refuses every verb until it is told that its state is from before.

use std::fs::File;
use std::io::ErrorKind;

use tracing::warn;

use super::command::Finished;
use super::podman::Podman;

/// What Podman writes when it finds no process to join (containers/podman, `SetupRootless`).
const LOST: &[u8] = b"invalid internal status";

/// Whether a Podman verb did nothing because nobody holds its user namespace any more.
pub(super) fn is_lost(finished: &Finished) -> bool {
    finished.code != Some(0) && finished.stderr.windows(LOST.len()).any(|part| part == LOST)
}

impl Podman {
    /// Waits until no other process of fleet renews the namespace of this storage, and keeps others
    /// out until the file is dropped.
    pub(super) async fn namespace_lock(&self) -> std::io::Result<File> {
        let path = self.run_dir().join("namespace.lock");
        let locked = tokio::task::spawn_blocking(move || {
            let file = File::create(path)?;
            file.lock()?;
            Ok(file)
        });
        locked.await.map_err(std::io::Error::other)?
    }

    /// Tells Podman that whatever it has on record as running is dead, as after a reboot: the next verb
    /// makes a namespace. True only of a storage whose verb [`is_lost`] under the lock: had one
    /// monitor been alive, Podman would have joined it.
    pub(super) fn renew_namespace(&self) -> std::io::Result<()> {
        warn!(root = %self.root().display(), "every process of podman was killed: renewing its namespace");
        match std::fs::remove_file(self.run_dir().join("tmp").join("alive")) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}
