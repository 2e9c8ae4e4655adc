//! Starts one container and brings its helper through the door. Leaves nothing behind when it fails,
//! not even when its caller goes away in the middle.

use std::ffi::OsString;
use std::time::Duration;

use rustix::process::{Resource, getrlimit};
use tokio::net::UnixStream;

use super::call::StartError;
use super::door::{Door, OpenDoor, Peers};
use super::helper;
use super::image::Image;
use super::podman::{Podman, mountable, random_hex};
use super::preflight::complaint;
use super::report::SealReport;
use super::runtime::Runtime;
use super::seal::{self, Seal};
use super::spec::SandboxSpec;
use crate::egress::{self, Proxy};

/// How long the container has until its helper answers.
const HELLO_PATIENCE: Duration = Duration::from_secs(20);
/// How long a helper that failed may take to fail again.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// Between looks whether the container is still there.
const LOOK: Duration = Duration::from_secs(1);

/// A container whose helper was let in.
pub(super) struct Launched {
    pub name: String,
    pub stream: UnixStream,
    pub door: Door,
    /// The way out, which outlives the container.
    pub proxy: Option<Proxy>,
}

fn transient(message: impl Into<String>) -> StartError {
    StartError { message: message.into(), transient: true }
}

fn permanent(message: impl Into<String>) -> StartError {
    StartError { message: message.into(), transient: false }
}

/// Starts the container of `spec`.
pub(super) async fn launch(
    podman: &Podman,
    report: &SealReport,
    spec: &SandboxSpec,
) -> Result<Launched, StartError> {
    check_paths(spec)?;
    check_open_files(spec, getrlimit(Resource::Nofile).maximum)?;
    check_runtime(report, spec)?;
    let image = image(podman, &spec.image).await?;
    let name = format!("fleet-{}-{}", spec.run_id, random_hex(3).map_err(transient)?);
    let owner = format!("{}\n{}\n{}\n", podman.state_label(), spec.instance, name);
    let (door, open) = Door::make(podman.run_dir(), &owner).map_err(transient)?;
    let peers = Peers { uid: podman.host().uid, subordinate: report.speakers.clone() };
    // Opened before the container, and closed after it.
    let proxy = open_proxy(report, spec, &door, &peers)?;
    let args = run_args(podman, report, spec, &image, &name, &door);
    let started = Started { podman: podman.clone(), name: Some(name) };
    let failed = match bring_up(podman, spec, &args, &door, &open, &peers).await {
        Ok(stream) => return Ok(Launched { name: started.keep(), stream, door, proxy }),
        Err(Failed::Run(message)) if image_is_gone(podman, &spec.image).await => {
            permanent(format!("{message}: {}", no_image(&spec.image)))
        }
        Err(Failed::Run(message) | Failed::Podman(message)) => transient(message),
        Err(Failed::Vanished) => transient(last_words(podman, spec, &args).await),
    };
    let removed = podman.remove_given_up(started.name()).await;
    started.keep();
    // The error that is told is the first one; the sweep tries the removal again.
    let note = removed.err().map(|error| format!(" ({error})")).unwrap_or_default();
    Err(StartError { message: format!("{}{note}", failed.message), ..failed })
}

fn check_paths(spec: &SandboxSpec) -> Result<(), StartError> {
    match seal::mount_paths(&spec.workspace, spec.git.as_ref()).iter().find(|path| !mountable(path))
    {
        Some(path) => Err(permanent(format!(
            "the path {} has a character that mounts cannot carry (: or ,)",
            path.display()
        ))),
        None => Ok(()),
    }
}

/// No process may give another more open files than its own account has.
fn check_open_files(spec: &SandboxSpec, most: Option<u64>) -> Result<(), StartError> {
    let asked = spec.limits.nofile;
    match most {
        Some(most) if u64::from(asked) > most => Err(permanent(format!(
            "limits.sandbox.nofile = {asked}, and this account may open {most} files: lower the key, or \
             raise the account's hard limit with LimitNOFILE= in fleet's unit or in \
             /etc/security/limits.conf"
        ))),
        _ => Ok(()),
    }
}

/// Only the runtime whose seal was read back may run anything.
fn check_runtime(report: &SealReport, spec: &SandboxSpec) -> Result<(), StartError> {
    match &spec.runtime {
        Some(runtime) if *runtime != report.runtime => Err(permanent(format!(
            "the seal was probed with the runtime {}, not with {runtime}: set `[sandbox]\nruntime = \
             \"{runtime}\"` in fleet.toml",
            report.runtime
        ))),
        _ if spec.git.is_some() && Runtime::named(&report.runtime).is_some_and(lacks_overlays) => {
            Err(permanent(format!(
                "the OCI runtime {} cannot show a run its repository's history, which is an overlay: \
                 take crun or runc, or give the task `worktree_config: {{enabled: false}}`",
                report.runtime
            )))
        }
        _ => Ok(()),
    }
}

fn lacks_overlays(runtime: Runtime) -> bool {
    !runtime.has_overlays()
}

/// The proxy's socket beside the helper's. No flag of the container changes with it.
fn open_proxy(
    report: &SealReport,
    spec: &SandboxSpec,
    door: &Door,
    peers: &Peers,
) -> Result<Option<Proxy>, StartError> {
    let Some(gate) = &spec.egress else { return Ok(None) };
    let runtime = &report.runtime;
    if !egress::carries_host_sockets(runtime) {
        return Err(permanent(format!(
            "the runtime {runtime} cannot carry the egress proxy's socket into a container: remove \
             allow_network, or choose crun, runc or runsc"
        )));
    }
    let peers = peers.clone();
    let listening = Proxy::listen(gate, &door.egress_socket(), move |uid| peers.include(uid));
    listening.map(Some).map_err(|error| transient(format!("cannot listen for egress: {error}")))
}

async fn image(podman: &Podman, name: &str) -> Result<Image, StartError> {
    let found = podman.image(name).await.map_err(|error| transient(error.to_string()))?;
    found.ok_or_else(|| permanent(no_image(name)))
}

fn no_image(name: &str) -> String {
    format!("there is no sandbox image {name}: run `fleet sandbox build`")
}

/// Whether an image that was there once has been removed since. In doubt it was not.
async fn image_is_gone(podman: &Podman, name: &str) -> bool {
    podman.forget_known_image(name);
    matches!(podman.image(name).await, Ok(None))
}

/// Everything after `podman` and its global flags.
fn run_args(
    podman: &Podman,
    report: &SealReport,
    spec: &SandboxSpec,
    image: &Image,
    name: &str,
    door: &Door,
) -> Vec<OsString> {
    let host = podman.host();
    let labels = [
        ("fleet.run", spec.run_id.as_str()),
        ("fleet.task", &spec.task),
        ("fleet.instance", &spec.instance),
        ("fleet.boot", &spec.boot),
        ("fleet.state", podman.state_label()),
    ];
    let mut args = seal::runtime_flags(&report.runtime_flags);
    args.extend(["run", "--detach", "--rm"].map(OsString::from));
    args.extend(seal::seal_flags(&Seal {
        name,
        labels: &labels,
        uid: host.uid,
        gid: host.gid,
        seccomp: &report.seccomp,
        runtime: Runtime::named(&report.runtime).unwrap_or(podman.oci()),
        limits: spec.limits,
        holding: report.holding(),
        selinux: host.selinux,
        kind: image.kind,
        door: door.dir(),
        workspace: Some(&spec.workspace),
        git: spec.git.as_ref(),
    }));
    args.push(OsString::from(&image.id));
    args.extend(helper::START.map(OsString::from));
    args
}

/// Runs the container and waits for its helper, whichever fails first.
async fn bring_up(
    podman: &Podman,
    spec: &SandboxSpec,
    args: &[OsString],
    door: &Door,
    open: &OpenDoor,
    peers: &Peers,
) -> Result<UnixStream, Failed> {
    let run = podman.finish(spec.runtime.as_deref(), args, podman.patience());
    let finished = run.await.map_err(|error| Failed::Podman(error.to_string()))?;
    if finished.code != Some(0) {
        let status = finished.code.unwrap_or(-1);
        let stderr = finished.stderr_tail();
        let told = complaint::of(podman, &stderr).map(|fault| fault.to_string());
        let plain = || format!("podman run failed (status {status}): {stderr}");
        return Err(Failed::Run(told.unwrap_or_else(plain)));
    }
    let name = name_of(args);
    let workspace = spec.workspace.to_string_lossy();
    tokio::select! {
        admitted = open.admit(door, peers, &workspace) => admitted.map_err(Failed::Podman),
        () = vanished(podman, &name) => Err(Failed::Vanished),
        () = tokio::time::sleep(HELLO_PATIENCE) => Err(Failed::Podman(format!(
            "its helper did not answer within {} s",
            HELLO_PATIENCE.as_secs()
        ))),
    }
}

/// How a start failed.
enum Failed {
    /// `podman run` said that it failed.
    Run(String),
    Podman(String),
    /// The container ended before its helper answered.
    Vanished,
}

/// Waits until the container is gone. An ordinary start is over before the first look.
async fn vanished(podman: &Podman, name: &str) {
    loop {
        tokio::time::sleep(LOOK).await;
        let exists = podman.finish(None, ["container", "exists", name], podman.patience()).await;
        if exists.is_ok_and(|finished| finished.code == Some(1)) {
            return;
        }
    }
}

/// What a container that ended at once says: the same one again, with its standard error. Its
/// output is kept nowhere otherwise.
async fn last_words(podman: &Podman, spec: &SandboxSpec, args: &[OsString]) -> String {
    let attached = args.iter().filter(|arg| *arg != "--detach");
    match podman.finish(spec.runtime.as_deref(), attached, LAST_WORDS).await {
        Ok(finished) => format!(
            "its helper ended before it answered (status {}): {}",
            finished.code.unwrap_or(-1),
            finished.stderr_tail()
        ),
        Err(_) => "its helper ended before it answered, but not when it was tried again".to_owned(),
    }
}

fn name_of(args: &[OsString]) -> String {
    let name = args.iter().find_map(|arg| arg.to_str()?.strip_prefix("--name="));
    name.expect("the seal names the container").to_owned()
}

/// Removes the container unless it is kept: also when the start is dropped half-way.
struct Started {
    podman: Podman,
    name: Option<String>,
}

impl Started {
    fn name(&self) -> &str {
        self.name.as_deref().expect("a name is taken once")
    }

    fn keep(mut self) -> String {
        self.name.take().expect("a name is taken once")
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let Some(name) = self.name.take() else { return };
        // Its helper finds no door and ends; this is for a container that never ran one.
        self.podman.remove_later(name);
    }
}
