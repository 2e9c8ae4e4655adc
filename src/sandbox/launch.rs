//! Starts one container and brings its helper through the door. Leaves nothing behind when it fails,
//! not even when its caller goes away in the middle.

use std::ffi::OsString;
use std::time::Duration;

use tokio::net::UnixStream;

use super::call::StartError;
use super::door::{Door, OpenDoor};
use super::image::Image;
use super::podman::{Podman, mountable, random_hex};
use super::report::SealReport;
use super::seal::{self, Seal};
use super::spec::SandboxSpec;

/// How long the container has until its helper answers.
const HELLO_PATIENCE: Duration = Duration::from_secs(20);
const RUN_PATIENCE: Duration = Duration::from_secs(60);

/// A container whose helper was let in.
#[derive(Debug)]
pub(super) struct Launched {
    pub name: String,
    pub stream: UnixStream,
    pub door: Door,
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
    let image = image(podman, &spec.image).await?;
    let name = format!("fleet-{}-{}", spec.run_id, random_hex(3).map_err(transient)?);
    let owner = format!("{}\n{}\n{}\n", podman.state_label(), spec.instance, name);
    let (door, open) = Door::make(podman.run_dir(), &owner).map_err(transient)?;
    let args = run_args(podman, report, spec, &image, &name, &door);
    let started = Started { podman: podman.clone(), name: Some(name) };
    match bring_up(podman, spec, args, &door, open).await {
        Ok(stream) => Ok(Launched { name: started.keep(), stream, door }),
        Err(error) => {
            let name = started.keep();
            // The error that is told is the first one; the sweep tries the removal again.
            let removed = podman.remove_container(&name).await;
            let note = removed.err().map(|error| format!(" ({error})")).unwrap_or_default();
            Err(StartError { message: format!("{}{note}", error.message), ..error })
        }
    }
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

async fn image(podman: &Podman, name: &str) -> Result<Image, StartError> {
    let found = podman.image(name).await.map_err(|error| transient(error.to_string()))?;
    found.ok_or_else(|| {
        permanent(format!("there is no sandbox image {name}: run `fleet sandbox build`"))
    })
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
    let mut args: Vec<OsString> = ["run", "--detach", "--rm"].map(OsString::from).to_vec();
    args.extend(seal::seal_flags(&Seal {
        name,
        labels: &labels,
        uid: host.uid,
        gid: host.gid,
        seccomp: &report.seccomp,
        limits: spec.limits,
        holding: report.holding(),
        selinux: host.selinux,
        kind: image.kind,
        door: door.dir(),
        workspace: Some(&spec.workspace),
        git: spec.git.as_ref(),
    }));
    args.push(OsString::from(&image.id));
    args.extend(["-ISu", "/fleet/helper.py"].map(OsString::from));
    args
}

/// Runs the container and waits for its helper, whichever fails first.
async fn bring_up(
    podman: &Podman,
    spec: &SandboxSpec,
    args: Vec<OsString>,
    door: &Door,
    open: OpenDoor,
) -> Result<UnixStream, StartError> {
    let run = podman.finish(spec.runtime.as_deref(), args, RUN_PATIENCE);
    let finished = run.await.map_err(|error| transient(error.to_string()))?;
    if finished.code != Some(0) {
        return Err(transient(format!(
            "podman run failed (status {}): {}",
            finished.code.unwrap_or(-1),
            finished.stderr_tail()
        )));
    }
    let workspace = spec.workspace.to_string_lossy();
    let admitted = open.admit(door, podman.host().uid, &workspace);
    match tokio::time::timeout(HELLO_PATIENCE, admitted).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(message)) => Err(transient(message)),
        Err(_) => Err(transient(format!(
            "its helper did not answer within {} s",
            HELLO_PATIENCE.as_secs()
        ))),
    }
}

/// Removes the container unless it is kept: also when the start is dropped half-way.
struct Started {
    podman: Podman,
    name: Option<String>,
}

impl Started {
    fn keep(mut self) -> String {
        self.name.take().expect("a name is taken once")
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let Some(name) = self.name.take() else { return };
        let podman = self.podman.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            // Its helper finds no door and ends; this is for a container that never ran one.
            runtime.spawn(async move { podman.remove_container(&name).await });
        }
    }
}
