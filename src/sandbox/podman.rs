//! The one door to Podman: always fleet's own storage, a clean environment, a deadline and bounded
//! output. Refuses to run as root and never touches another program's containers.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::process::Command;
use tokio_util::task::TaskTracker;
use tracing::warn;

use super::command::{self, ChildError, Finished};
use super::error::{PodmanError, PreflightError};
use super::host::{Host, Surroundings};
use super::image::Image;
use super::namespace;
use super::runtime::Runtime;
use crate::config::Config;

/// How long an ordinary Podman call may take on a real host.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// fleet's Podman: its storage, its runtime directory, its environment. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Podman {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    program: PathBuf,
    root: PathBuf,
    /// `$XDG_RUNTIME_DIR/fleet/<hash of root>`: Podman's run state and the sockets.
    run_dir: PathBuf,
    runtime: Runtime,
    /// Value of the label `fleet.state`.
    state_label: String,
    host: Host,
    /// Images that were inspected, by the name they were asked for.
    images: Mutex<HashMap<String, Image>>,
    /// Removals of what was given up half-way.
    removals: TaskTracker,
}

impl Podman {
    /// Checks what costs nothing: not root, Podman installed, a usable runtime directory. Starts no
    /// process.
    pub fn connect(config: &Config) -> Result<Self, PreflightError> {
        Self::connect_in(config, Surroundings::real())
    }

    /// The same on a host that need not be this one.
    pub fn connect_in(config: &Config, around: Surroundings) -> Result<Self, PreflightError> {
        let host = Host::look(around)?;
        let program = host.around.find_program("podman").ok_or(PreflightError::NoPodman)?;
        if !mountable(&config.podman_root) {
            return Err(PreflightError::Path(config.podman_root.clone()));
        }
        let run_dir = host.runtime_dir.join("fleet").join(short_hash(&config.podman_root));
        make_private(&run_dir)?;
        make_private(&config.podman_root)?;
        let runtime = match &config.runtime {
            Some(name) => Runtime::named(name).ok_or_else(|| PreflightError::Runtime {
                runtime: name.clone(),
                reason: "fleet does not know it".to_owned(),
            })?,
            None => host.cgroups.default_runtime(),
        };
        let inner = Inner {
            program,
            root: config.podman_root.clone(),
            run_dir,
            runtime,
            state_label: short_hash(config.state.root()),
            host,
            images: Mutex::default(),
            removals: TaskTracker::new(),
        };
        Ok(Podman { inner: Arc::new(inner) })
    }

    pub(super) fn host(&self) -> &Host {
        &self.inner.host
    }

    /// The OCI runtime of containers that name none.
    pub(super) fn runtime(&self) -> &'static str {
        self.inner.runtime.name()
    }

    pub(super) fn oci(&self) -> Runtime {
        self.inner.runtime
    }

    /// Value of the label that tells this state directory's containers from others.
    pub(super) fn state_label(&self) -> &str {
        &self.inner.state_label
    }

    /// Where the sockets of running sandboxes lie.
    pub(super) fn run_dir(&self) -> &Path {
        &self.inner.run_dir
    }

    /// How long an ordinary Podman call may take.
    pub(super) fn patience(&self) -> Duration {
        self.inner.host.around.patience
    }

    pub(super) fn root(&self) -> &Path {
        &self.inner.root
    }

    pub(super) fn program(&self) -> &Path {
        &self.inner.program
    }

    /// An image that was inspected before under that name.
    pub(super) fn known_image(&self, name: &str) -> Option<Image> {
        self.images().get(name).cloned()
    }

    pub(super) fn remember_image(&self, name: &str, image: &Image) {
        self.images().insert(name.to_owned(), image.clone());
    }

    /// Forgets what was asked about images: one was built.
    pub(super) fn forget_images(&self) {
        self.images().clear();
    }

    /// Forgets one image: it may be gone.
    pub(super) fn forget_known_image(&self, name: &str) {
        self.images().remove(name);
    }

    /// Removes a container that nobody waits for any more, beside whatever follows.
    pub(super) fn remove_later(&self, name: String) {
        let podman = self.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let removal = async move {
                if let Err(error) = podman.remove_given_up(&name).await {
                    warn!(container = %name, %error, "cannot remove a container that was given up");
                }
            };
            self.inner.removals.spawn_on(removal, &runtime);
        }
    }

    /// Waits until everything that was given up so far is removed.
    pub(super) async fn settle(&self) {
        self.inner.removals.close();
        self.inner.removals.wait().await;
    }

    /// Removes an image's name, if it is there.
    pub(super) async fn forget_image(&self, name: &str) -> Result<(), PodmanError> {
        self.forget_images();
        self.output(["image", "rm", "--force", "--ignore", name], self.patience()).await.map(drop)
    }

    fn images(&self) -> std::sync::MutexGuard<'_, HashMap<String, Image>> {
        self.inner.images.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The environment of every Podman process.
    pub(super) fn environment(&self) -> Vec<(OsString, OsString)> {
        let host = &self.inner.host;
        // The programs that Podman looks for are in the system's directories.
        let mut path = host.around.path.clone();
        path.push(":/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
        let mut env = vec![
            (OsString::from("HOME"), host.home.clone().into_os_string()),
            (OsString::from("PATH"), path),
            (OsString::from("XDG_RUNTIME_DIR"), host.runtime_dir.clone().into_os_string()),
        ];
        if let Some(bus) = &host.systemd_bus {
            let mut address = OsString::from("unix:path=");
            address.push(bus);
            env.push((OsString::from("DBUS_SESSION_BUS_ADDRESS"), address));
        }
        env
    }

    /// `podman` with fleet's own storage and this runtime (default: the host's).
    pub(super) fn command(&self, runtime: Option<&str>) -> Command {
        let inner = &self.inner;
        let mut command = command::command(&inner.program, &self.environment());
        let manager = if inner.host.systemd_bus.is_some() { "systemd" } else { "cgroupfs" };
        command.arg("--root").arg(&inner.root);
        command.arg("--runroot").arg(inner.run_dir.join("rr"));
        command.arg("--tmpdir").arg(inner.run_dir.join("tmp"));
        command.args(["--storage-driver", "overlay", "--cgroup-manager", manager]);
        // Whoever starts a container has checked the name.
        let runtime = runtime.and_then(Runtime::named).unwrap_or(inner.runtime);
        command.args(["--runtime", runtime.podman_name()]);
        command
    }

    /// Runs one Podman verb to its end, whatever its status.
    pub(super) async fn finish<I, S>(
        &self,
        runtime: Option<&str>,
        args: I,
        timeout: Duration,
    ) -> Result<Finished, PodmanError>
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let args: Vec<OsString> = args.into_iter().map(|arg| arg.as_ref().to_owned()).collect();
        let finished = self.finish_once(runtime, &args, timeout).await?;
        if !namespace::is_lost(&finished) {
            return Ok(finished);
        }
        let renewed = |error: std::io::Error| PodmanError::NotRun {
            verb: "system".to_owned(),
            reason: format!("its namespace cannot be renewed: {error}"),
        };
        let _lock = self.namespace_lock().await.map_err(renewed)?;
        let finished = self.finish_once(runtime, &args, timeout).await?;
        if !namespace::is_lost(&finished) {
            return Ok(finished);
        }
        self.renew_namespace().map_err(renewed)?;
        self.finish_once(runtime, &args, timeout).await
    }

    async fn finish_once(
        &self,
        runtime: Option<&str>,
        args: &[OsString],
        timeout: Duration,
    ) -> Result<Finished, PodmanError> {
        let mut command = self.command(runtime);
        command.args(args);
        let verb = verb(&command);
        command::finish(command, timeout).await.map_err(|error| not_run(verb, &error))
    }

    /// Runs one Podman verb that must succeed; its standard output.
    pub(super) async fn output<I, S>(
        &self,
        args: I,
        timeout: Duration,
    ) -> Result<Vec<u8>, PodmanError>
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let args: Vec<OsString> = args.into_iter().map(|arg| arg.as_ref().to_owned()).collect();
        let finished = self.finish(None, &args, timeout).await?;
        let verb = args.first().map(|verb| verb.to_string_lossy().into_owned());
        match finished.code {
            Some(0) => Ok(finished.stdout),
            code => Err(PodmanError::Failed {
                verb: verb.unwrap_or_default(),
                status: code.unwrap_or(-1),
                stderr: finished.stderr_tail(),
            }),
        }
    }
}

fn not_run(verb: String, error: &ChildError) -> PodmanError {
    match error {
        ChildError::Timeout(after) => PodmanError::Hung { verb, seconds: after.as_secs() },
        other => PodmanError::NotRun { verb, reason: other.to_string() },
    }
}

/// The verb of a Podman command: the first word after the global flags, all of which take a value,
/// after a `=` or as a word of its own.
fn verb(command: &Command) -> String {
    let mut args = command.as_std().get_args();
    while let Some(arg) = args.next() {
        if !arg.as_encoded_bytes().starts_with(b"--") {
            return arg.to_string_lossy().into_owned();
        }
        if !arg.as_encoded_bytes().contains(&b'=') {
            args.next();
        }
    }
    String::new()
}

/// The first 8 hexadecimal digits of a path's hash.
pub(super) fn short_hash(path: &Path) -> String {
    hex(&Sha256::digest(path.as_os_str().as_encoded_bytes())[..4])
}

/// Bytes in lower-case hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `n` random bytes in hexadecimal.
pub(super) fn random_hex(n: usize) -> Result<String, String> {
    let mut bytes = vec![0_u8; n];
    getrandom::fill(&mut bytes).map_err(|error| format!("cannot get random bytes: {error}"))?;
    Ok(hex(&bytes))
}

/// Whether a path can be named in a mount option.
pub(super) fn mountable(path: &Path) -> bool {
    path.is_absolute()
        && !path.as_os_str().as_encoded_bytes().iter().any(|byte| b":,\n".contains(byte))
}

/// Makes a directory for its owner alone.
pub(super) fn make_private(path: &Path) -> Result<(), PreflightError> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|source| {
        PreflightError::Files { verb: "make", path: path.display().to_string(), source }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_a_mount_option_cannot_carry_are_told() {
        let seen = ["/a/b", "/a:b", "/a,b", "a/b", "/a\nb"].map(|path| mountable(Path::new(path)));
        assert_eq!(seen, [true, false, false, false, false]);
    }
}
