//! The runtimes that start a virtual machine for each container: whether the program can do what
//! fleet asks of it. Pure decisions over what it prints.

use super::super::error::PreflightError;

/// What Kata's machine takes beside the container's memory: its kernel, its agent and the monitor,
/// as Kata's own deployment for Kubernetes reserves it.
pub(super) const KATA_OVERHEAD_MB: u64 = 160;

/// Podman starts runtimes by command line. Since its version 2 Kata speaks containerd's shim protocol
/// alone, and its program lists no `create` and no `start` any more.
pub(super) fn kata(help: &str) -> Result<(), PreflightError> {
    let lists = |verb: &str| {
        help.lines().any(|line| {
            line.split_whitespace().next().map(|word| word.trim_end_matches(',')) == Some(verb)
        })
    };
    if lists("create") && lists("start") {
        return Ok(());
    }
    Err(PreflightError::RuntimeBuild {
        runtime: "kata",
        reason: "kata-runtime has no command `create`".to_owned(),
        wanted: "a kata-runtime with the command line of the OCI (Kata 1), which is what Podman starts",
    })
}

/// crun tells what it was built with; started as `krun` it makes a machine only with libkrun.
pub(super) fn libkrun(version: &str) -> Result<(), PreflightError> {
    if version.split_whitespace().any(|word| word == "+LIBKRUN") {
        return Ok(());
    }
    Err(PreflightError::RuntimeBuild {
        runtime: "libkrun",
        reason: "`krun --version` does not list +LIBKRUN".to_owned(),
        wanted: "the package crun-krun (Fedora), or a crun built with --with-libkrun as krun",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kata_without_the_command_line_of_the_oci_is_refused() {
        let first = "COMMANDS:\n     create   Create a container\n     start    executes it\n";
        let second = "COMMANDS:\n     check, kata-check  tests if system can run Kata Containers\n";
        assert!(kata(first).is_ok());
        let told = kata(second).expect_err("refused").to_string();
        assert!(told.contains("kata-runtime has no command `create`"), "{told}");
    }

    #[test]
    fn crun_without_libkrun_is_refused() {
        let with = "crun version 1.21\n+SYSTEMD +SELINUX +CAP +SECCOMP +EBPF +LIBKRUN +YAJL";
        assert!(libkrun(with).is_ok());
        let told = libkrun(&with.replace("+LIBKRUN ", "")).expect_err("refused").to_string();
        assert!(told.contains("crun-krun"), "{told}");
    }
}
