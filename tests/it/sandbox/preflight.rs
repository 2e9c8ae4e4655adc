//! What this host is told before anything runs.

use fleet::config::{Config, LimitsMode};
use fleet::sandbox::{Podman, SealReport, is_limit, preflight};

use crate::env::sandbox::{Cell, config, image};

#[tokio::test]
async fn every_property_but_a_limit_holds_and_the_report_is_kept_for_this_boot() {
    let cell = Cell::new().await;
    let loose: Vec<_> =
        cell.seal.lines.iter().filter(|line| !line.holds && !is_limit(line)).collect();
    assert!(loose.is_empty(), "{loose:?}");
    let text = serde_json::to_string(&cell.seal).expect("JSON");
    assert_eq!(serde_json::from_str::<SealReport>(&text).expect("a report"), cell.seal);
    let again = preflight(&cell.podman, &cell.config).await.expect("the seal holds");
    assert_eq!(again, cell.seal);
}

#[tokio::test]
async fn missing_image_names_the_command_that_makes_one() {
    let dir = tempfile::tempdir().expect("scratch directory");
    let good = config(&dir.path().join("state"));
    let podman = Podman::connect(&good).expect("podman is usable");
    image(&podman, &good).await;
    let config = Config { image: "localhost/no-such-image".into(), ..good };
    let error = preflight(&podman, &config).await.expect_err("refused");
    assert_eq!(
        error.to_string(),
        "there is no sandbox image localhost/no-such-image: run `fleet sandbox build`"
    );
}

#[tokio::test]
async fn limits_that_are_not_enforced_are_refused_unless_best_effort_is_asked_for() {
    let cell = Cell::new().await;
    let strict = Config { limits: LimitsMode::Enforced, ..cell.config.clone() };
    match preflight(&cell.podman, &strict).await {
        Ok(report) => assert_eq!(report.limits, "enforced"),
        Err(error) => {
            assert_eq!(cell.seal.limits, "best_effort");
            let text = error.to_string();
            assert!(text.contains("[sandbox]\nlimits = \"best_effort\""), "{text}");
        }
    }
}
