//! The pages in a real browser: nothing is refused by the policy, nothing is wider than a phone.
//! With `FLEET_SHOTS=DIR` it also leaves pictures there, for people to look at.

use std::path::{Path, PathBuf};
use std::process::Output;

use tokio::process::Command;

use super::site::{DEAD, FINISHED, RUNNING, Site};

async fn chromium(profile: &Path, arguments: &[&str], url: &str) -> Output {
    Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--hide-scrollbars", "--enable-logging=stderr", "--log-level=0"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .args(arguments)
        .arg(url)
        .kill_on_drop(true)
        .output()
        .await
        .expect("chromium is installed by the test set-up")
}

/// A page of our own that loads another one in a window of a phone's width is forbidden by the
/// policy, so the widths are read from the dumped document: `live.js` marks a page that is too wide.
#[tokio::test(flavor = "multi_thread")]
async fn pages_load_without_policy_errors_and_fit_a_phone() {
    let site = Site::with_runs().await;
    let scratch = tempfile::tempdir().expect("scratch directory");
    let runs = [FINISHED, DEAD, RUNNING].map(|run| format!("/runs/{run}"));
    let pages = ["/", "/runs?state=success", "/schedule", "/dead-letters", "/problems", "/seal"];
    for path in pages.into_iter().map(str::to_owned).chain(runs) {
        let phone = ["--dump-dom", "--window-size=390,844", "--virtual-time-budget=1500"];
        let output = chromium(scratch.path(), &phone, &site.url(&path)).await;
        let log = String::from_utf8_lossy(&output.stderr);
        let dom = String::from_utf8_lossy(&output.stdout);
        let console: Vec<&str> = log.lines().filter(|line| line.contains("CONSOLE")).collect();
        assert_eq!(console, Vec::<&str>::new(), "{path}");
        assert!(dom.contains("</footer>"), "{path}: {dom}\n{log}");
        assert!(!dom.contains("<title>owned"), "{path}: a run's text ran as script");
        assert!(dom.contains("class=\"live on\""), "{path}: the page is not live");
    }
    if let Some(shots) = std::env::var_os("FLEET_SHOTS").map(PathBuf::from) {
        pictures(&site, scratch.path(), &shots).await;
    }
}

async fn pictures(site: &Site, profile: &Path, shots: &Path) {
    let run = format!("/runs/{FINISHED}");
    let dead = format!("/runs/{DEAD}");
    let pages = [
        ("overview", "/"),
        ("run", &run),
        ("dead", &dead),
        ("runs", "/runs"),
        ("schedule", "/schedule"),
        ("letters", "/dead-letters"),
        ("problems", "/problems"),
    ];
    for (name, path) in pages {
        for (size, window) in [("wide", "1280,900"), ("phone", "390,1600")] {
            for (tone, scheme) in [("light", "1"), ("dark", "0")] {
                let shot = shots.join(format!("{name}-{size}-{tone}.png"));
                let arguments = [
                    format!("--screenshot={}", shot.display()),
                    format!("--window-size={window}"),
                    format!("--blink-settings=preferredColorScheme={scheme}"),
                    "--virtual-time-budget=1500".to_owned(),
                ];
                let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
                chromium(profile, &arguments, &site.url(path)).await;
                assert!(shot.exists(), "{shot:?}");
            }
        }
    }
}
