//! Podman's own complaints, each as one version or another really wrote it, and what fleet says.

use std::time::Duration;

use super::{refusal, user};
use crate::env::fake_host::FakeHost;

const BEST_EFFORT: &str =
    "accept rlimits instead with\n[sandbox]\nlimits = \"best_effort\"\nin fleet.toml";

/// The refusal when this verb fails with that status and those words.
async fn failing(host: &FakeHost, verb: &str, status: i32, stderr: &str) -> (&'static str, String) {
    host.answer(verb, status, "", stderr);
    refusal(host).await
}

#[tokio::test]
async fn crun_on_hybrid_cgroups_names_runc() {
    let mut host = FakeHost::whole().hybrid();
    host.config.runtime = Some("crun".into());
    host.config.limits = fleet::config::LimitsMode::BestEffort;
    let words = "Error: OCI runtime error: crun: cgroups in hybrid mode not supported, drop all \
                 controllers from cgroupv2";
    assert_eq!(
        failing(&host, "run", 126, words).await,
        (
            "crun-on-hybrid",
            "the OCI runtime crun starts nothing on this host's hybrid cgroups: remove \
             sandbox.runtime from fleet.toml and FLEET_SANDBOX_RUNTIME, so that fleet takes runc \
             (package runc), or boot with the kernel parameter \
             systemd.unified_cgroup_hierarchy=1"
                .into()
        )
    );
}

#[tokio::test]
async fn cgroups_that_containers_conf_turns_off_are_named() {
    let mut host = FakeHost::whole();
    host.config.runtime = Some("runc".into());
    let words =
        "Error: requested OCI runtime runc is not compatible with NoCgroups: invalid argument";
    assert_eq!(
        failing(&host, "run", 125, words).await,
        (
            "cgroups-disabled",
            "Podman turns control groups off, and runc starts nothing without them: remove \
             `cgroups = \"disabled\"` from containers.conf in ~/.config/containers and \
             /etc/containers"
                .into()
        )
    );
}

#[tokio::test]
async fn missing_swap_limit_is_told_and_best_effort_goes_on_with_rlimits() {
    let mut host = FakeHost::whole();
    host.config.runtime = Some("runc".into());
    let words = "Error: OCI runtime error: runc: runc create failed: unable to start container \
                 process: unable to apply cgroup configuration: failed to write 201326592: openat2 \
                 /sys/fs/cgroup/x/memory.swap.max: no such file or directory";
    assert_eq!(
        failing(&host, "run", 127, words).await,
        (
            "no-swap-limit",
            format!(
                "this host's control groups have no memory.swap.max, so no memory limit can be set: \
                 boot with the kernel parameters swapaccount=1 and \
                 systemd.unified_cgroup_hierarchy=1, or {BEST_EFFORT}"
            )
        )
    );
    let with_memory = host.calls().iter().filter(|call| call.contains("--memory=192m")).count();
    host.config.limits = fleet::config::LimitsMode::BestEffort;
    // Rlimits are tried next; this Podman refuses whatever it is asked.
    refusal(&host).await;
    let again = host.calls().iter().filter(|call| call.contains("--memory=192m")).count();
    let rlimits = host.calls().iter().filter(|call| call.contains("--ulimit=nproc=61:61")).count();
    assert_eq!((with_memory, again, rlimits), (1, 2, 1));
}

#[tokio::test]
async fn hard_limits_of_the_account_are_named() {
    let told = "the OCI runtime may not set a container's limit of open files or processes (";
    for (words, reason) in [
        (
            "Error: OCI runtime error: crun: setrlimit `RLIMIT_NOFILE`: Operation not permitted",
            "OCI runtime error: crun: setrlimit `RLIMIT_NOFILE`: Operation not permitted",
        ),
        (
            "Error: OCI runtime error: runc: runc create failed: error setting rlimit type 7: \
             operation not permitted",
            "OCI runtime error: runc: runc create failed: error setting rlimit type 7: operation \
             not permitted",
        ),
    ] {
        let fix = "): raise this account's hard limits, with LimitNOFILE= and LimitNPROC= in \
                   fleet's unit or in /etc/security/limits.conf";
        assert_eq!(
            failing(&FakeHost::whole(), "run", 126, words).await,
            ("hard-limit", format!("{told}{reason}{fix}"))
        );
    }
}

#[tokio::test]
async fn storage_of_another_runtime_directory_is_named() {
    let words = "Error: database storage temporary directory (runroot) \"/run/user/1000/rr\" does \
                 not match our storage temporary directory \"/run/user/1001/rr\": database \
                 configuration mismatch";
    let want = "fleet's storage ~/storage was first used with another path or runtime directory \
                (database storage temporary directory (runroot) \"/run/user/1000/rr\" does not match \
                our storage temporary directory \"/run/user/1001/rr\": database configuration \
                mismatch): set XDG_RUNTIME_DIR and sandbox.storage as they were then, or let `fleet \
                doctor --fix` make it anew";
    let host = FakeHost::whole();
    host.answer("image", 125, "", words);
    assert_eq!(failing(&host, "info", 125, words).await, ("storage-moved", want.into()));
}

#[tokio::test]
async fn unwritable_run_directory_names_linger_whatever_podman_calls_it() {
    let fix = format!(
        ": run `loginctl enable-linger {}` as root, or set XDG_RUNTIME_DIR to a directory of this \
         user's on a tmpfs with mode 0700",
        user()
    );
    for (words, problem) in [
        (
            "Error: RunRoot is pointing to a path (/run/user/1000/containers) which is not writable. \
             Most likely podman will fail.\nError: creating tmpdir: mkdir /run/user/1000: permission \
             denied",
            "podman cannot write its run directory (creating tmpdir: mkdir /run/user/1000: \
             permission denied)",
        ),
        (
            "Error: default OCI runtime \"crun\" not found: invalid argument",
            "podman cannot use the OCI runtime crun, which is there",
        ),
    ] {
        let host = FakeHost::whole();
        host.answer("image", 125, "", words);
        assert_eq!(
            failing(&host, "info", 125, words).await,
            ("runtime-directory", format!("{problem}{fix}"))
        );
    }
}

#[tokio::test]
async fn missing_oci_runtime_is_named() {
    let words = "Error: default OCI runtime \"crun\" not found: invalid argument";
    let host = FakeHost::whole();
    host.without_program("crun");
    host.answer("image", 125, "", words);
    assert_eq!(
        failing(&host, "info", 125, words).await,
        (
            "runtime",
            "the OCI runtime crun is not usable: it is not on PATH; install it, or name another \
             with `[sandbox]\\nruntime = \"crun\"` in fleet.toml"
                .into()
        )
    );
}

#[tokio::test]
async fn namespace_that_apparmor_forbids_names_its_setting() {
    let words = "time=\"2026-01-01T00:00:00Z\" level=error msg=\"running `/usr/bin/newuidmap 42 0 \
                 1001 1 1 100000 65536`: newuidmap: write to uid_map failed: Operation not \
                 permitted\"\nError: cannot set up namespace using \"/usr/bin/newuidmap\": exit \
                 status 1";
    let host = FakeHost::whole();
    host.file("proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n");
    host.answer("image", 125, "", words);
    assert_eq!(
        failing(&host, "info", 125, words).await,
        (
            "apparmor",
            "AppArmor keeps ~/bin/podman from making a user namespace \
             (kernel.apparmor_restrict_unprivileged_userns=1; cannot set up namespace using \
             \"/usr/bin/newuidmap\": exit status 1): use the distribution's podman in /usr/bin, \
             which its profile allows, or as root run `sysctl -w \
             kernel.apparmor_restrict_unprivileged_userns=0`, and put it into /etc/sysctl.d for \
             the next boot"
                .into()
        )
    );
    host.file("proc/sys/kernel/apparmor_restrict_unprivileged_userns", "0\n");
    assert_eq!(
        refusal(&host).await,
        (
            "id-mapper",
            "newuidmap and newgidmap cannot map subordinate ids (cannot set up namespace using \
             \"/usr/bin/newuidmap\": exit status 1): install the package uidmap (Debian, Ubuntu) or \
             shadow-utils (Fedora); it makes them setuid root"
                .into()
        )
    );
}

#[tokio::test]
async fn file_system_without_overlay_and_a_full_disk_are_named() {
    let overlay = "Error: kernel does not support overlay fs: 'overlay' is not supported over \
                   <unknown> at \"/x/overlay\": backing file system is unsupported for this graph \
                   driver";
    let full = "Error: mkdir /x/overlay/l: no space left on device";
    for (words, want) in [(overlay, "no-overlay"), (full, "disk-full")] {
        let host = FakeHost::whole();
        host.answer("image", 125, "", words);
        let (code, text) = failing(&host, "info", 125, words).await;
        assert_eq!(code, want);
        assert!(text.contains("~/storage"), "{text}");
    }
}

#[tokio::test]
async fn complaint_that_nobody_knows_is_told_as_podman_said_it() {
    assert_eq!(
        failing(&FakeHost::whole(), "run", 125, "Error: the moon is full").await,
        ("probe", "the probe container did not run: status 125: Error: the moon is full".into())
    );
}

#[tokio::test]
async fn podman_that_hangs_is_killed_at_its_deadline() {
    let mut host = FakeHost::whole();
    host.patience = Duration::from_secs(1);
    host.hangs("image");
    host.hangs("info");
    let user = user();
    assert_eq!(
        refusal(&host).await,
        (
            "hung",
            format!(
                "podman info did not answer within 1 s and was killed: look for another podman of \
                 this user that hangs (`pgrep -u {user} -a podman`), end it, and start again"
            )
        )
    );
}

#[tokio::test]
async fn podman_that_prints_garbage_is_named() {
    let host = FakeHost::whole();
    host.answer("info", 0, "Welcome to podman!\n", "");
    assert_eq!(
        refusal(&host).await,
        (
            "garbage",
            "podman info printed something that is not what was asked for (expected value at line 1 \
             column 1): check that ~/bin/podman is Podman itself and no wrapper"
                .into()
        )
    );
    let host = FakeHost::whole();
    host.answer("image", 0, "[", "");
    assert_eq!(refusal(&host).await.0, "garbage");
}
