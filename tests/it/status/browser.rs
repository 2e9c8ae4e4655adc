//! The pages in a real browser: nothing is refused by the policy, nothing is wider than a phone, and
//! an open page follows the store. With `FLEET_SHOTS=DIR` pictures are left there for people.

use std::path::Path;
use std::sync::Arc;

use fleet::status::BundleView;
use serde_json::json;

use super::chromium::Chromium;
use super::site::{DEAD, FINISHED, RUNNING, Site, bundle};

/// Resolves once the page has its live stream.
const LIVE: &str = "new Promise((done) => { const look = () =>
    document.querySelector('#live.on') ? done(true) : requestAnimationFrame(look); look(); })";
/// Resolves once the page says that no problem is left.
const CLEAN: &str = "new Promise((done) => { const look = () =>
    document.querySelector('.banner.bad') ? requestAnimationFrame(look) : done(true); look(); })";

fn pages() -> Vec<(&'static str, String)> {
    vec![
        ("overview", "/".into()),
        ("run", format!("/runs/{FINISHED}")),
        ("dead", format!("/runs/{DEAD}")),
        ("running", format!("/runs/{RUNNING}")),
        ("runs", "/runs?state=success".into()),
        ("schedule", "/schedule".into()),
        ("letters", "/dead-letters".into()),
        ("problems", "/problems".into()),
        ("seal", "/seal".into()),
        ("missing", "/nothing".into()),
    ]
}

#[tokio::test]
async fn pages_keep_to_the_policy_and_fit_a_phone() {
    let site = Site::with_runs().await;
    let profile = tempfile::tempdir().expect("scratch directory");
    let mut browser = Chromium::start(profile.path()).await;
    browser.screen(390, 844, "light").await;
    for (name, path) in pages() {
        browser.open(&site.url(&path)).await;
        if name != "missing" {
            browser.evaluate(LIVE).await;
        } else {
            browser.complaints.clear();
        }
        browser
            .evaluate("document.querySelectorAll('details').forEach((d) => d.open = true)")
            .await;
        let seen = browser
            .evaluate(
                "({width: document.documentElement.scrollWidth, owned: document.title === 'owned',
                   styled: document.styleSheets.length,
                   images: document.querySelectorAll('main img').length})",
            )
            .await;
        let wanted = json!({"width": 390, "owned": false, "styled": 1, "images": 0});
        assert_eq!((name, seen), (name, wanted));
        assert_eq!((name, &browser.complaints), (name, &Vec::<String>::new()));
    }
    if let Some(shots) = std::env::var_os("FLEET_SHOTS") {
        pictures(&site, &mut browser, Path::new(&shots)).await;
    }
}

#[tokio::test]
async fn an_open_page_follows_a_reload_and_keeps_what_was_opened() {
    let site = Site::with_runs().await;
    let profile = tempfile::tempdir().expect("scratch directory");
    let mut browser = Chromium::start(profile.path()).await;
    browser.open(&site.url(&format!("/runs/{FINISHED}"))).await;
    browser.evaluate(LIVE).await;
    browser.evaluate("document.querySelector('[data-key=call-1-1-0]').open = true").await;
    let clean = BundleView { problems: Vec::new(), ..bundle() };
    site.bundle.send_replace(Arc::new(clean));
    browser.evaluate(CLEAN).await;
    let open = "[...document.querySelectorAll('details.call')].map((d) => d.open)";
    assert_eq!(browser.evaluate(open).await, json!([true, false]));
    assert_eq!(browser.complaints, Vec::<String>::new());
}

async fn pictures(site: &Site, browser: &mut Chromium, shots: &Path) {
    for (name, path) in pages() {
        for (size, width, height) in [("wide", 1280, 900), ("phone", 390, 844)] {
            for colours in ["light", "dark"] {
                browser.screen(width, height, colours).await;
                browser.open(&site.url(&path)).await;
                let picture = browser.picture().await;
                let file = shots.join(format!("{name}-{size}-{colours}.png.base64"));
                std::fs::write(file, picture).expect("picture is written");
            }
        }
    }
}
