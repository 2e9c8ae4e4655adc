//! What the probe container read back is believed, and no flag is.

use serde_json::json;

use super::refusal;
use crate::env::fake_host::FakeHost;

/// A host whose Podman takes every limit flag and sets none, as several do.
fn silent() -> FakeHost {
    let mut host = FakeHost::whole();
    for (limit, seen) in [("memory.max", "max"), ("memory.swap.max", "max"), ("pids.max", "2346")] {
        host.seen(limit, json!(seen));
    }
    host
}

#[tokio::test]
async fn limits_that_podman_drops_in_silence_are_refused_and_named() {
    let (code, text) = refusal(&silent()).await;
    assert_eq!(code, "limits-not-delegated");
    let seen = "this host does not enforce every limit (memory.max is \"max\" instead of \
                \"201326592\", memory.swap.max is \"max\" instead of \"0\", pids.max is \"2346\" \
                instead of \"61\"): ";
    assert!(text.starts_with(seen), "{text}");
}

#[tokio::test]
async fn limits_without_a_user_manager_name_linger() {
    let mut host = silent();
    std::fs::remove_file(host.path("runtime/bus")).expect("it was there");
    host.info("/host/cgroupManager", json!("cgroupfs"));
    let (code, text) = refusal(&host).await;
    assert_eq!(code, "limits-no-user-manager");
    assert!(text.contains("as root, run `loginctl enable-linger`"), "{text}");
}

#[tokio::test]
async fn limits_that_podman_says_it_ignores_are_best_effort_only_where_that_is_asked_for() {
    let mut host = silent();
    host.config.limits = fleet::config::LimitsMode::BestEffort;
    host.connect().expect("connects");
    let seen = std::fs::read_to_string(host.path("answers/run.out")).expect("an answer");
    let words = "Resource limits are not supported and ignored on cgroups V1 rootless systems";
    host.answer("run", 0, &seen, words);
    assert_eq!(host.preflight().await.expect("best effort").limits, "best_effort");
    host.config.limits = fleet::config::LimitsMode::Enforced;
    assert_eq!(refusal(&host).await.0, "limits-not-delegated");
}

#[tokio::test]
async fn what_stands_in_for_limits_that_podman_drops_is_read_back_and_has_no_best_effort() {
    let mut host = silent();
    host.config.limits = fleet::config::LimitsMode::BestEffort;
    let report = host.preflight().await.expect("best effort");
    let line = |property: &str| {
        let found = report.lines.iter().find(|line| line.property == property);
        found.map(|line| (line.seen.as_str(), line.holds))
    };
    assert_eq!((line("nproc"), line("data")), (Some(("61", true)), Some(("201326592", true))));
    for (property, value) in [("nproc", "4096"), ("data", "-1")] {
        let mut host = silent();
        host.config.limits = fleet::config::LimitsMode::BestEffort;
        host.seen(property, json!(value));
        let (code, text) = refusal(&host).await;
        assert_eq!(code, "seal", "{property}");
        assert!(
            text.starts_with(&format!("the seal does not hold: {property} is {value:?} ")),
            "{text}"
        );
    }
}

#[tokio::test]
async fn seal_that_does_not_hold_has_no_best_effort() {
    for (property, value) in [
        ("seccomp", json!("0")),
        ("cap_eff", json!("000001ffffffffff")),
        ("interfaces", json!("eth0 lo")),
        ("root", json!("allowed")),
        ("tmp", json!("755 not writable")),
        ("nofile", json!("1048576")),
        ("fsize", json!("-1")),
        ("core", json!("0, and -1 when asked for")),
        ("user_namespace", json!("allowed")),
    ] {
        let mut host = FakeHost::whole();
        host.config.limits = fleet::config::LimitsMode::BestEffort;
        host.seen(property, value.clone());
        let (code, text) = refusal(&host).await;
        assert_eq!(code, "seal", "{property}");
        let start = format!("the seal does not hold: {property} is {value} instead of ");
        assert!(text.starts_with(&start), "{text}");
        assert!(text.ends_with("; fleet runs nothing on this host until it does"), "{text}");
    }
}
