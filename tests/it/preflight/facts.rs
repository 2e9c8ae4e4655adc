//! What `podman info` and the host's own files say.

use serde_json::{Value, json};

use super::{refusal, user};
use crate::env::fake_host::FakeHost;

/// The refusal when a field of `podman info` says that.
async fn info(pointer: &str, value: Value) -> (&'static str, String) {
    let mut host = FakeHost::whole();
    host.info(pointer, value);
    refusal(&host).await
}

#[tokio::test]
async fn whole_host_holds_the_seal() {
    let host = FakeHost::whole();
    let report = host.preflight().await.expect("the seal holds");
    assert_eq!((report.limits.as_str(), report.runtime.as_str()), ("enforced", "crun"));
    let calls = host.calls().len();
    assert_eq!(host.preflight().await.expect("the seal holds"), report);
    // Only the image is looked at again: the report is kept for this boot.
    assert_eq!(host.calls().len(), calls + 1);
}

#[tokio::test]
async fn hybrid_cgroups_take_runc_and_enforce_nothing() {
    let mut host = FakeHost::whole().hybrid();
    host.info("/host/cgroupVersion", json!("v1"));
    let (code, text) = refusal(&host).await;
    assert_eq!(
        (code, text.as_str()),
        (
            "limits-hybrid",
            "this host does not enforce memory, pids, cpus: its cgroups are hybrid, where no \
             rootless limit exists: boot with the kernel parameter \
             systemd.unified_cgroup_hierarchy=1; or accept rlimits instead with\n[sandbox]\nlimits \
             = \"best_effort\"\nin fleet.toml"
        )
    );
    host.config.limits = fleet::config::LimitsMode::BestEffort;
    for limit in ["memory.max", "memory.swap.max", "pids.max", "cpu.max"] {
        host.seen(limit, json!("max"));
    }
    let report = host.preflight().await.expect("best effort");
    assert_eq!((report.limits.as_str(), report.runtime.as_str()), ("best_effort", "runc"));
}

#[tokio::test]
async fn every_field_that_is_not_as_it_must_be_has_its_own_message() {
    let user = user();
    for (pointer, value, code, start) in [
        ("/version/Version", json!("4.2.9"), "too-old", "podman 4.2.9 is too old: install 4.3"),
        (
            "/host/security/rootless",
            json!(false),
            "not-rootless",
            "podman is not rootless here: start",
        ),
        (
            "/store/graphDriverName",
            json!("vfs"),
            "storage-driver",
            "podman's storage driver is vfs, which fleet refuses: remove ~/storage so that it is \
             made anew with overlay (`fleet doctor --fix` does that)",
        ),
        (
            "/host/idMappings/uidmap",
            json!([{"size": 1}]),
            "no-subordinate-ids",
            &format!(
                "the user {user} has no subordinate ids in /etc/subuid and /etc/subgid: as root, run"
            ),
        ),
        (
            "/host/security/seccompEnabled",
            json!(false),
            "no-seccomp",
            "podman was built or started without seccomp: install",
        ),
        (
            "/host/security/seccompProfilePath",
            json!("/nonexistent/seccomp.json"),
            "seccomp-profile",
            "the seccomp profile /nonexistent/seccomp.json cannot be used: No such file or directory \
             (os error 2); install the package golang-github-containers-common (Debian, Ubuntu) or \
             containers-common (Fedora)",
        ),
        (
            "/host/ociRuntime/name",
            json!(""),
            "info",
            "podman info has no host.ociRuntime.name: this Podman is too old or too new",
        ),
        (
            "/host/cgroupControllers",
            json!(["memory", "pids"]),
            "limits-not-delegated",
            "this host does not enforce cpus: the systemd user manager does not delegate the \
             controllers: as root, put `[Service]\\nDelegate=cpu cpuset io memory pids` into \
             /etc/systemd/system/user@.service.d/delegate.conf",
        ),
        (
            "/host/cgroupControllers",
            json!(["hugetlb"]),
            "limits-not-delegated",
            "this host does not enforce memory, pids, cpus: ",
        ),
    ] {
        let (seen, text) = info(pointer, value).await;
        assert_eq!(seen, code, "{pointer}: {text}");
        assert!(text.starts_with(start), "{pointer}: {text}");
    }
}

#[tokio::test]
async fn settings_that_forbid_user_namespaces_are_named_before_podman_is_asked() {
    for (file, value, setting) in [
        ("proc/sys/user/max_user_namespaces", "0\n", "user.max_user_namespaces=0"),
        ("proc/sys/kernel/unprivileged_userns_clone", "0\n", "kernel.unprivileged_userns_clone=0"),
    ] {
        let host = FakeHost::whole();
        host.file(file, value);
        assert_eq!(
            refusal(&host).await,
            (
                "user-namespaces-off",
                format!(
                    "the setting {setting} forbids user namespaces, without which there is no \
                     rootless container: as root, set it otherwise with sysctl, and in \
                     /etc/sysctl.d for the next boot"
                )
            )
        );
        assert_eq!(host.calls(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn missing_podman_and_missing_runtime_directory_are_named() {
    let host = FakeHost::whole();
    host.without_program("podman");
    assert_eq!(
        refusal(&host).await,
        ("no-podman", "podman is not on PATH: install the package podman (4.3 or newer)".into())
    );
    let host = FakeHost::whole();
    std::fs::remove_dir_all(host.path("runtime")).expect("it was there");
    let (code, text) = refusal(&host).await;
    assert_eq!(code, "runtime-directory");
    assert_eq!(
        text,
        format!(
            "the runtime directory ~/runtime does not exist: run `loginctl enable-linger {}` as \
             root, or set XDG_RUNTIME_DIR to a directory of this user's on a tmpfs with mode 0700",
            user()
        )
    );
}

#[tokio::test]
async fn missing_image_is_told_after_the_host_s_own_faults() {
    let mut host = FakeHost::whole();
    host.answer("image", 125, "[]", "Error: localhost/x: image not known");
    let (code, text) = refusal(&host).await;
    assert_eq!(code, "image-missing");
    assert!(text.ends_with(": run `fleet sandbox build`"), "{text}");
    host.info("/store/graphDriverName", json!("vfs"));
    let stuck = "time=\"2026-01-01T00:00:00Z\" level=error msg=\"User-selected graph driver \
                 \\\"overlay\\\" overwritten by graph driver \\\"vfs\\\" from database\"";
    host.answer("image", 125, "[]", &format!("{stuck}\nError: localhost/x: image not known"));
    assert_eq!(refusal(&host).await.0, "storage-driver");
}

#[tokio::test]
async fn selinux_is_switched_off_for_the_container_and_nothing_is_relabelled() {
    let host = FakeHost::whole();
    host.file("sys/fs/selinux/enforce", "1");
    host.preflight().await.expect("the seal holds");
    let run = host.calls().into_iter().find(|call| call.starts_with("run ")).expect("a probe");
    assert!(run.contains(" --security-opt=label=disable "), "{run}");
    let relabelling = |flag: &&str| {
        flag.strip_prefix("--volume=").is_some_and(|volume| {
            volume.split([':', ',']).any(|option| option == "z" || option == "Z")
        })
    };
    assert_eq!(run.split(' ').find(relabelling), None);
}
