//! The sandbox: what `podman info` and the probe say, then one real container through the path that
//! every run takes.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::check::Check;
use crate::cli::Global;
use crate::runner::{HolderLock, with_causes};
use crate::sandbox::{
    Call, CommandOutput, ContainerLimits, ImageKind, KernelOutput, Podman, PodmanSandbox, Reply,
    Sandbox, SandboxSpec, SealReport, preflight,
};

/// No good call of the smoke test takes so long.
const PATIENCE: Duration = Duration::from_secs(30);
const LIMITS: ContainerLimits =
    ContainerLimits { memory_mb: 512, cpus: 1.0, pids: 128, disk_mb: 64, nofile: 1024 };

/// Every check of the sandbox; the first refusal ends them.
pub(super) async fn checks(global: &Global) -> Vec<Check> {
    let podman = match Podman::connect(&global.config) {
        Ok(podman) => podman,
        Err(error) => return vec![Check::refused(&error)],
    };
    let seal = match preflight(&podman, &global.config).await {
        Ok(seal) => seal,
        Err(error) => return vec![Check::refused(&error)],
    };
    let kind = match seal.image_kind {
        ImageKind::Complete => "",
        ImageKind::Skeleton => ", over the host's /usr: for development and tests only",
    };
    vec![
        Check::ok("podman", format!("{}, usable without root", seal.podman_version)),
        Check::ok("storage driver", format!("overlay in {}", global.config.podman_root.display())),
        Check::ok("seccomp profile", seal.profile.display().to_string()),
        Check::ok("image", format!("{}, id {}{kind}", global.config.image, seal.image_id)),
        Check::ok("sandbox seal", format!("holds with {}, limits {}", seal.runtime, seal.limits)),
        Check::ok_or("smoke test", smoke(&podman, &seal, global).await),
    ]
}

/// Starts a sandbox as a run does, and lets bash and Python answer.
async fn smoke(podman: &Podman, seal: &SealReport, global: &Global) -> Result<String, String> {
    let state = &global.config.state;
    crate::cli::make_state_dir(state).map_err(|failure| failure.message)?;
    // A holder like any other, so that no sweep takes its container.
    let holder = HolderLock::acquire(state).map_err(|error| with_causes(&error))?;
    let name = format!("doctor-{}", holder.holder().instance);
    let workspace = state.root().join(&name);
    std::fs::create_dir(&workspace)
        .map_err(|error| format!("cannot make {}: {error}", workspace.display()))?;
    let spec = SandboxSpec {
        run_id: name,
        task: "doctor".to_owned(),
        instance: holder.holder().instance.clone(),
        boot: holder.holder().boot.as_str().to_owned(),
        image: seal.image_id.clone(),
        runtime: Some(seal.runtime.clone()),
        workspace: workspace.clone(),
        git: None,
        limits: LIMITS,
        egress: None,
    };
    let began = std::time::Instant::now();
    let answered = answers(podman, seal, spec).await;
    let removed = podman.remove_tree(&workspace).await;
    answered?;
    removed.map_err(|error| error.to_string())?;
    let millis = began.elapsed().as_millis();
    Ok(format!("bash and Python answered in a sealed container, {millis} ms in all"))
}

async fn answers(podman: &Podman, seal: &SealReport, spec: SandboxSpec) -> Result<(), String> {
    let sandbox = PodmanSandbox::start(podman, seal, spec).await.map_err(|error| error.message)?;
    let cancel = CancellationToken::new();
    let bash = Call::Bash { command: "echo $((6 * 7))".to_owned(), cwd: None, timeout: PATIENCE };
    let python = Call::Python {
        code: "6 * 7".to_owned(),
        timeout: PATIENCE,
        reset_kernel: false,
        return_vars: Vec::new(),
    };
    let by_bash = sandbox.call(bash, &cancel).await;
    let by_python = sandbox.call(python, &cancel).await;
    sandbox.close().await;
    match by_bash.map_err(|error| error.to_string())? {
        Reply::Command(CommandOutput { output, .. }) if output == b"42\n" => {}
        other => return Err(format!("bash answered {other:?}")),
    }
    match by_python.map_err(|error| error.to_string())? {
        Reply::Kernel(KernelOutput { value, .. }) if value.as_deref() == Some("42") => Ok(()),
        other => Err(format!("Python answered {other:?}")),
    }
}
