//! What the page answers.

use std::sync::Arc;

use fleet::status::BundleView;
use tokio::io::AsyncReadExt;

use super::site::{ATTACK, DEAD, FINISHED, RUNNING, Site, bundle};

const PAGES: [&str; 7] =
    ["/", "/runs", "/schedule", "/dead-letters", "/problems", "/seal", "/runs?state=success"];

#[tokio::test]
async fn every_page_is_served_and_nothing_of_a_run_is_markup() {
    let site = Site::with_runs().await;
    let runs = [FINISHED, DEAD, RUNNING].map(|run| format!("/runs/{run}"));
    for path in PAGES.into_iter().map(str::to_owned).chain(runs) {
        let answer = site.get(&path).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        assert!(!answer.body.contains(ATTACK), "{path}");
        assert!(!answer.body.contains("<img src=x"), "{path}");
        assert!(!answer.body.contains(" style="), "{path}: inline style");
        assert!(!answer.body.contains("http://") || path == "/", "{path}: outside address");
    }
    let page = site.get(&format!("/runs/{FINISHED}")).await.body;
    for wanted in ["Round 1", "exit 2", "report.html", "Seal report", "best effort: not enforced"] {
        assert!(page.contains(wanted), "{wanted}");
    }
}

#[tokio::test]
async fn an_empty_store_tells_what_to_do_next() {
    let site = Site::empty(BundleView::default()).await;
    for (path, wanted) in [
        ("/", "No bundle is loaded."),
        ("/runs", "No runs yet."),
        ("/schedule", "Nothing is due this week."),
        ("/dead-letters", "No dead letters."),
        ("/problems", "No bundle has been read yet."),
    ] {
        let answer = site.get(path).await;
        assert_eq!(answer.status, 200, "{path}");
        assert!(answer.body.contains(wanted), "{path}: {}", answer.body);
    }
    assert_eq!(site.get("/readyz").await.status, 503);
}

#[tokio::test]
async fn what_does_not_exist_is_404_and_what_cannot_exist_is_told() {
    let site = Site::with_runs().await;
    for path in [
        "/nothing",
        "/runs/zzzz",
        "/runs?state=bogus",
        "/runs?task=../x",
        "/assets/../render.rs",
        "/assets/none.css",
        "/api/runs/zzzz",
    ] {
        assert_eq!(site.get(path).await.status, 404, "{path}");
    }
    let body = site.get("/api/runs?state=bogus").await.body;
    assert_eq!(body, "{\"error\":\"\\\"bogus\\\" is not a state of a run\"}\n");
}

#[tokio::test]
async fn another_hosts_name_and_writing_methods_are_refused() {
    let site = Site::with_runs().await;
    let port = site.address.port();
    for host in ["evil.example", "127.0.0.1.evil.example", "10.0.0.1"] {
        assert_eq!(site.ask("GET", "/api/runs", host).await.status, 421, "{host}");
    }
    assert_eq!(site.ask("GET", "http://evil.example/", "localhost").await.status, 421);
    for host in [format!("localhost:{port}"), "localhost:9999".into(), "[::1]:1".into()] {
        assert_eq!(site.ask("GET", "/api/runs", &host).await.status, 200, "{host}");
    }
    for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
        let answer = site.ask(method, "/", "localhost").await;
        assert_eq!((answer.status, answer.header("allow")), (405, Some("GET, HEAD")), "{method}");
    }
    assert_eq!(site.ask("HEAD", "/", "localhost").await.status, 200);
}

#[tokio::test]
async fn every_answer_carries_the_policy() {
    let site = Site::with_runs().await;
    let policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; \
                  connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    for path in ["/", "/nothing", "/api/overview", "/metrics", "/assets/fleet.css", "/healthz"] {
        let answer = site.get(path).await;
        assert_eq!(answer.header("content-security-policy"), Some(policy), "{path}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
    }
    assert_eq!(site.ask("GET", "/", "evil").await.header("content-security-policy"), Some(policy));
}

#[tokio::test]
async fn an_artifact_is_an_attachment_and_only_the_manifest_is_served() {
    let site = Site::with_runs().await;
    let answer = site.get(&format!("/runs/{FINISHED}/artifacts/1")).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some("application/octet-stream"));
    assert_eq!(
        answer.header("content-disposition"),
        Some("attachment; filename*=UTF-8''report.html")
    );
    assert_eq!(answer.body, "<script>alert('artifact')</script>");
    for path in [format!("/runs/{FINISHED}/artifacts/2"), format!("/runs/{DEAD}/artifacts/1")] {
        assert_eq!(site.get(&path).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn health_metrics_and_json_tell_the_same_numbers() {
    let site = Site::with_runs().await;
    assert_eq!(site.get("/healthz").await.status, 200);
    assert_eq!(site.get("/readyz").await.status, 200);
    let metrics = site.get("/metrics").await.body;
    for wanted in [
        "fleet_runs_total{outcome=\"success\"} 1\n",
        "fleet_dead_letters_open 1\n",
        "fleet_runs_running 1\n",
        "fleet_task_next_due_timestamp_seconds{task=\"report\"}",
        "# EOF\n",
    ] {
        assert!(metrics.contains(wanted), "{wanted} in {metrics}");
    }
    let json = |answer: super::site::Answer| -> serde_json::Value {
        serde_json::from_str(&answer.body).expect("JSON")
    };
    let overview = json(site.get("/api/overview").await);
    assert_eq!(overview["totals"]["dead_letters_open"], 1);
    assert_eq!(overview["bundle"]["tasks"][0]["schedule"], "0 7 * * *");
    let runs = json(site.get("/api/runs?task=report").await);
    assert_eq!((&runs[0]["run_id"], &runs[1]["run_id"]), (&RUNNING.into(), &FINISHED.into()));
    assert_eq!(json(site.get("/api/problems").await)["problems"][0]["line"], 14);
    assert_eq!(json(site.get("/api/dead-letters").await)[0]["run_id"], DEAD);
}

#[tokio::test]
async fn a_live_stream_tells_of_a_new_bundle_and_ends_with_the_server() {
    let site = Site::with_runs().await;
    let mut stream = site.send("GET", "/live", "localhost").await;
    let mut seen = String::new();
    read_until(&mut stream, &mut seen, |seen| seen.matches("event: changed").count() == 1).await;
    site.bundle.send_replace(Arc::new(bundle()));
    read_until(&mut stream, &mut seen, |seen| seen.matches("event: changed").count() == 2).await;
    site.stop.cancel();
    stream.read_to_string(&mut seen).await.expect("the stream ends");
    site.server.await.expect("the server ends while the page was open");
}

async fn read_until(
    stream: &mut tokio::net::TcpStream,
    seen: &mut String,
    enough: impl Fn(&str) -> bool,
) {
    let mut chunk = [0; 1024];
    while !enough(seen) {
        let length = stream.read(&mut chunk).await.expect("the stream goes on");
        assert!(length > 0, "the stream ended: {seen}");
        seen.push_str(&String::from_utf8_lossy(&chunk[..length]));
    }
}
