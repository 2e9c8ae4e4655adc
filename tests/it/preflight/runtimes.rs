//! Runtimes that need more of a host, by doubles of their programs. Fail-closed: nothing stands in.

use super::{refusal, user};
use crate::env::fake_host::FakeHost;

const KATA: &str = "#!/bin/sh\necho 'COMMANDS:'\necho '   create  Create a container'\n\
                    echo '   start   executes it'\n";
const KRUN: &str = "#!/bin/sh\necho 'crun version 1.21'\n\
                    echo '+SYSTEMD +SELINUX +CAP +SECCOMP +EBPF +LIBKRUN +YAJL'\n";

/// A host with the kernel's virtual machines and both programs.
fn with_machines(runtime: &str) -> FakeHost {
    let mut host = FakeHost::whole();
    host.config.runtime = Some(runtime.to_owned());
    host.file("dev/kvm", "");
    host.program("kata-runtime", KATA);
    host.program("krun", KRUN);
    host
}

#[tokio::test]
async fn machine_without_kvm_is_refused_and_no_container_stands_in() {
    for runtime in ["kata", "libkrun"] {
        let host = with_machines(runtime);
        std::fs::remove_file(host.path("dev/kvm")).expect("it was there");
        assert_eq!(
            refusal(&host).await,
            (
                "no-kvm",
                format!(
                    "the OCI runtime {runtime} needs the kernel's virtual machines (~/dev/kvm: No \
                     such file or directory (os error 2)): turn virtualization on in the firmware, \
                     load kvm_intel or kvm_amd, and as root run `usermod --append --groups kvm {}`; \
                     fleet takes no shared-kernel container in its place",
                    user()
                )
            )
        );
        assert_eq!(host.calls(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn kvm_that_went_away_is_refused_though_a_report_is_kept() {
    let host = with_machines("libkrun");
    host.preflight().await.expect("the seal holds");
    std::fs::remove_file(host.path("dev/kvm")).expect("it was there");
    assert_eq!(refusal(&host).await.0, "no-kvm");
}

#[tokio::test]
async fn machine_without_its_program_is_refused() {
    for (runtime, program) in [("kata", "kata-runtime"), ("libkrun", "krun")] {
        let host = with_machines(runtime);
        host.without_program(program);
        let (code, text) = refusal(&host).await;
        let start = format!("the OCI runtime {runtime} is not usable: {program} is not on PATH;");
        assert_eq!(code, "runtime");
        assert!(text.starts_with(&start), "{text}");
    }
}

#[tokio::test]
async fn program_that_was_built_without_what_is_needed_is_refused() {
    for (runtime, program, text) in [
        ("kata", "kata-runtime", "#!/bin/sh\necho '   check  tests the system'\n"),
        ("libkrun", "krun", "#!/bin/sh\necho '+SYSTEMD +SECCOMP'\n"),
        ("runsc", "runsc", "#!/bin/sh\necho '  -network value'\n"),
    ] {
        let host = with_machines(runtime);
        host.program(program, text);
        let (code, text) = refusal(&host).await;
        assert_eq!(code, "runtime-build", "{text}");
        assert!(text.starts_with(&format!("the OCI runtime {runtime} cannot be used")), "{text}");
    }
}

#[tokio::test]
async fn podman_is_told_the_runtime_and_the_memory_of_its_machine() {
    for (runtime, podman_says, memory) in [
        ("kata", "--runtime kata run ", "--memory=352m"),
        ("libkrun", "--runtime krun run ", "--memory=192m"),
    ] {
        let host = with_machines(runtime);
        let report = host.preflight().await.expect("the seal holds");
        assert_eq!((report.runtime.as_str(), report.limits.as_str()), (runtime, "enforced"));
        let run = host.calls_whole().into_iter().find(|call| call.contains(" run "));
        let run = run.expect("a probe");
        assert!(run.contains(podman_says) && run.contains(memory), "{run}");
    }
}

#[tokio::test]
async fn machine_that_cannot_carry_the_socket_is_refused() {
    let mut host = with_machines("kata");
    host.seen("door", serde_json::json!("refused: ECONNREFUSED"));
    assert_eq!(
        refusal(&host).await,
        (
            "no-socket",
            "the OCI runtime kata does not carry the socket through which fleet speaks to a sandbox \
             (inside, connecting is refused: ECONNREFUSED): use crun, runc or runsc"
                .into()
        )
    );
}

#[tokio::test]
async fn gvisor_gets_its_flags_before_the_verb_and_holds_no_limit() {
    let mut host = FakeHost::whole();
    host.config.runtime = Some("runsc".into());
    host.program(
        "runsc",
        "#!/bin/sh\nprintf '  -%s\\n' 'host-uds value' ignore-cgroups 'network value' oci-seccomp\n",
    );
    let (code, text) = refusal(&host).await;
    assert_eq!(code, "limits-runsc");
    assert!(text.contains("runsc uses no control groups without root"), "{text}");
    host.config.limits = fleet::config::LimitsMode::BestEffort;
    host.preflight().await.expect("best effort");
    let run = host.calls_whole().into_iter().find(|call| call.contains(" run ")).expect("a probe");
    let flags = "--runtime runsc --runtime-flag=ignore-cgroups --runtime-flag=network=none \
                 --runtime-flag=oci-seccomp --runtime-flag=host-uds=open run ";
    assert!(run.contains(flags), "{run}");
}

#[tokio::test]
async fn unknown_runtime_is_refused_before_podman_is_asked() {
    let mut host = FakeHost::whole();
    host.config.runtime = Some("youki".into());
    assert_eq!(refusal(&host).await.0, "runtime");
    assert_eq!(host.calls(), Vec::<String>::new());
}
