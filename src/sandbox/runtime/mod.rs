//! The OCI runtimes that fleet knows: what Podman calls them, what each needs of the host, and the
//! flags of its own. Fail-closed: what cannot be seen to be there is refused, and no runtime stands in
//! for another.

mod machine;
mod runsc;

use super::command;
use super::error::PreflightError;
use super::host::user_name;
use super::podman::Podman;

/// What starts the container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runtime {
    Crun,
    Runc,
    /// gVisor: a kernel of its own, in user space.
    Runsc,
    /// A virtual machine for each container.
    Kata,
    /// A virtual machine for each container, by crun.
    Libkrun,
}

impl Runtime {
    /// Every one that fleet knows.
    pub const ALL: [Runtime; 5] =
        [Runtime::Crun, Runtime::Runc, Runtime::Runsc, Runtime::Kata, Runtime::Libkrun];

    /// The runtime that configurations and bundles call so.
    pub fn named(name: &str) -> Option<Self> {
        Runtime::ALL.into_iter().find(|runtime| runtime.name() == name)
    }

    /// What configurations and bundles call it.
    pub fn name(self) -> &'static str {
        match self {
            Runtime::Crun => "crun",
            Runtime::Runc => "runc",
            Runtime::Runsc => "runsc",
            Runtime::Kata => "kata",
            Runtime::Libkrun => "libkrun",
        }
    }

    /// What Podman calls it.
    pub(super) fn podman_name(self) -> &'static str {
        match self {
            Runtime::Libkrun => "krun",
            other => other.name(),
        }
    }

    /// The program that Podman starts for it.
    pub(super) fn program(self) -> &'static str {
        match self {
            Runtime::Kata => "kata-runtime",
            other => other.podman_name(),
        }
    }

    /// Whether each container is a virtual machine, which sees no socket of the host.
    pub fn is_machine(self) -> bool {
        matches!(self, Runtime::Kata | Runtime::Libkrun)
    }

    /// Whether the host's control groups hold its limits at all.
    pub(super) fn has_cgroups(self) -> bool {
        self != Runtime::Runsc
    }

    /// Whether it mounts Podman's overlay volumes, through which a run sees its repository's history.
    /// gVisor leaves them out in silence.
    pub(super) fn has_overlays(self) -> bool {
        self != Runtime::Runsc
    }

    /// Memory that the machine itself takes, beside what the limit leaves to the run.
    pub(super) fn overhead_mb(self) -> u64 {
        match self {
            Runtime::Kata => machine::KATA_OVERHEAD_MB,
            _ => 0,
        }
    }
}

/// Refuses a host that lacks what the runtime needs. Starts no process: asked before every use.
pub(super) fn check(podman: &Podman) -> Result<(), PreflightError> {
    let (runtime, host) = (podman.oci(), podman.host());
    if runtime.is_machine() {
        host.around.kvm().map_err(|reason| PreflightError::NoKvm {
            runtime: runtime.name(),
            reason,
            user: user_name(host.uid),
        })?;
        // The others are told by Podman, in the order of its own faults.
        if host.around.find_program(runtime.program()).is_none() {
            return Err(missing(runtime));
        }
    }
    Ok(())
}

/// Asks the runtime's program for what fleet needs of it; the flags that Podman is to pass on.
pub(super) async fn flags(podman: &Podman) -> Result<Vec<String>, PreflightError> {
    let runtime = podman.oci();
    match runtime {
        Runtime::Crun | Runtime::Runc => Ok(Vec::new()),
        Runtime::Runsc => runsc::flags(&told(podman, "flags").await?),
        Runtime::Kata => {
            machine::kata(&told(podman, "--help").await?)?;
            Ok(Vec::new())
        }
        Runtime::Libkrun => {
            machine::libkrun(&told(podman, "--version").await?)?;
            Ok(Vec::new())
        }
    }
}

/// Everything that the runtime's program prints when it is asked this.
async fn told(podman: &Podman, question: &str) -> Result<String, PreflightError> {
    let (runtime, host) = (podman.oci(), podman.host());
    let program = host.around.find_program(runtime.program()).ok_or_else(|| missing(runtime))?;
    let mut asked = command::command(&program, &podman.environment());
    asked.arg(question);
    let finished = command::finish(asked, host.around.patience).await.map_err(|error| {
        let runtime = runtime.name().to_owned();
        PreflightError::Runtime { runtime, reason: format!("{}: {error}", program.display()) }
    })?;
    let both = [finished.stdout, finished.stderr].concat();
    Ok(String::from_utf8_lossy(&both).into_owned())
}

fn missing(runtime: Runtime) -> PreflightError {
    let reason = format!("{} is not on PATH", runtime.program());
    PreflightError::Runtime { runtime: runtime.name().to_owned(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_runtime_has_the_name_that_podman_knows() {
        let seen = Runtime::ALL.map(|runtime| {
            assert_eq!(Runtime::named(runtime.name()), Some(runtime));
            format!(
                "{} --runtime={} {} machine={} cgroups={} +{}",
                runtime.name(),
                runtime.podman_name(),
                runtime.program(),
                runtime.is_machine(),
                runtime.has_cgroups(),
                runtime.overhead_mb()
            )
        });
        assert_eq!(
            seen,
            [
                "crun --runtime=crun crun machine=false cgroups=true +0",
                "runc --runtime=runc runc machine=false cgroups=true +0",
                "runsc --runtime=runsc runsc machine=false cgroups=false +0",
                "kata --runtime=kata kata-runtime machine=true cgroups=true +160",
                "libkrun --runtime=krun krun machine=true cgroups=true +0",
            ]
        );
        assert_eq!(Runtime::named("/usr/bin/crun"), None);
    }
}
