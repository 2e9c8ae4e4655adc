//! Webhooks.

use std::process::Command;

use fleet::bundle::{ChannelKind, Webhook, WebhookUrl};
use fleet::notify::SendError;
use fleet::secrets::{MASK, Redactor};
use serde_json::json;

use super::{VARIABLE, key, send_to};
use crate::env::receiver::{Receiver, SILENCE};

fn webhook(url: &str) -> ChannelKind {
    let url = WebhookUrl::Plain(url.to_owned());
    ChannelKind::Webhook(Webhook { url, secret_env: VARIABLE.into() })
}

#[tokio::test]
async fn body_holds_the_notice_and_headers_its_key_and_time() {
    let receiver = Receiver::start(&[]);
    let said = send_to(webhook(&receiver.url()), &Redactor::default()).await.expect("sent");
    assert_eq!(said, format!("{} answered with status 204", receiver.address()));
    let received = &receiver.received()[0];
    assert_eq!(
        received.json(),
        json!({
            "version": 1,
            "test": false,
            "subject": "fleet: task report failed",
            "idempotency_key": "r1.1.failure.ops",
            "channel": "ops",
            "event": "failure",
            "task": "report",
            "run_id": "r1",
            "due": "2026-07-01T04:00:00Z",
            "at": "2026-07-01T04:00:00Z",
            "state": "dead_lettered",
            "outcome": "cost_ceiling",
            "reason": "spent $5 of $5",
            "attempts": 1,
            "failures_in_a_row": 2,
        })
    );
    assert_eq!(received.headers["idempotency-key"], "r1.1.failure.ops");
    assert_eq!(received.headers["x-fleet-timestamp"], "1782878410");
    assert_eq!(received.headers["content-type"], "application/json");
}

#[tokio::test]
async fn signature_is_what_openssl_computes() {
    let receiver = Receiver::start(&[]);
    send_to(webhook(&receiver.url()), &Redactor::default()).await.expect("sent");
    let received = &receiver.received()[0];
    let script =
        "printf '%s.%s' \"$1\" \"$2\" | openssl dgst -sha256 -hmac \"$3\" | sed 's/.*= //'";
    let timestamp = &received.headers["x-fleet-timestamp"];
    let output = Command::new("sh")
        .args(["-c", script, "sh", timestamp, &received.body, &key()])
        .output()
        .expect("openssl runs");
    let computed = String::from_utf8(output.stdout).expect("text");
    assert_eq!(received.headers["x-fleet-signature"], format!("v1={}", computed.trim()));
}

#[tokio::test]
async fn everything_but_a_2xx_is_a_failure_and_redirects_are_not_followed() {
    let statuses = [302, 400, 404, 410, 429, 500, 503];
    let receiver = Receiver::start(&statuses);
    for status in statuses {
        let failure = send_to(webhook(&receiver.url()), &Redactor::default()).await;
        let host = receiver.address().to_string();
        assert_eq!(failure, Err(SendError::Refused { host, status }));
    }
    assert_eq!(receiver.received().len(), statuses.len());
}

#[tokio::test]
async fn receiver_that_is_down_is_named_without_the_rest_of_the_url() {
    let address = Receiver::start(&[]).address();
    let url = format!("http://{address}/path-secret?token=query-secret");
    let failure = send_to(webhook(&url), &Redactor::default()).await.expect_err("it is down");
    let text = failure.to_string();
    assert!(text.starts_with(&format!("{address} cannot be reached: ")), "{text}");
    assert!(!text.contains("secret"), "{text}");
}

#[tokio::test]
async fn receiver_that_does_not_answer_is_left_after_ten_seconds() {
    let receiver = Receiver::start(&[SILENCE]);
    let failure = send_to(webhook(&receiver.url()), &Redactor::default()).await;
    assert_eq!(
        failure.expect_err("it is silent").to_string(),
        format!("{} took longer than 10 s", receiver.address())
    );
}

#[tokio::test]
async fn missing_key_names_the_variable_and_a_key_is_masked_once_it_is_read() {
    let receiver = Receiver::start(&[]);
    let url = WebhookUrl::Plain(receiver.url());
    let kind = ChannelKind::Webhook(Webhook { url, secret_env: "FLEET_TEST_UNSET".into() });
    let failure = send_to(kind, &Redactor::default()).await.expect_err("there is no key");
    assert_eq!(
        failure.to_string(),
        "the environment variable FLEET_TEST_UNSET (secret_env of channel ops) is not set: set it for \
         the daemon"
    );
    assert_eq!(receiver.received().len(), 0);
    let redactor = Redactor::default();
    send_to(webhook(&receiver.url()), &redactor).await.expect("sent");
    assert_eq!(redactor.redact(&key()), MASK);
}

#[tokio::test]
async fn url_of_the_environment_is_held_to_the_rules_of_the_bundle() {
    let url = WebhookUrl::Env("NEXTEST_RUN_ID".into());
    let kind = ChannelKind::Webhook(Webhook { url, secret_env: VARIABLE.into() });
    assert_eq!(
        send_to(kind, &Redactor::default()).await.expect_err("it is no URL").to_string(),
        "the environment variable NEXTEST_RUN_ID (url_env of channel ops): this is not an http(s) URL"
    );
}
