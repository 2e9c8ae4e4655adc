//! What goes wrong, and what class it is.

use std::time::Duration;

use fleet::clock::{Clock, SimulatedClock};
use fleet::model::{HttpModel, HttpSettings, Model, ModelErrorClass, WireFormat};
use secrecy::SecretString;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{KEY, ask, model, request};
use crate::env::model_server::{ModelServer, Reply, StreamEnd, delta, refuses, streams};

/// The class, the text and the wait of the error to that reply.
async fn fails(reply: Reply) -> (ModelErrorClass, String, Option<Duration>) {
    let error = ask(reply).await.expect_err("the reply is a failure");
    (error.class, error.to_string(), error.retry_after)
}

fn whole(status: u16, headers: &[(&str, &str)], body: &str) -> Reply {
    let headers =
        headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Reply::Whole { status, headers, body: body.to_owned() }
}

#[tokio::test]
async fn refusals_are_classed_by_status_and_told_in_the_providers_words() {
    for (status, class) in [
        (408, ModelErrorClass::Transient),
        (429, ModelErrorClass::Transient),
        (500, ModelErrorClass::Transient),
        (529, ModelErrorClass::Transient),
        (400, ModelErrorClass::Config),
        (401, ModelErrorClass::Config),
        (403, ModelErrorClass::Config),
        (404, ModelErrorClass::Config),
    ] {
        let seen = fails(refuses(status, json!({"message": "no luck"}))).await;
        assert_eq!(seen, (class, format!("model lab: status {status}: no luck"), None));
    }
}

#[tokio::test]
async fn a_prompt_that_is_too_long_is_an_overflow_in_every_wording() {
    let overflow = ModelErrorClass::ContextOverflow;
    for reply in [
        refuses(400, json!({"code": "context_length_exceeded", "message": "too long"})),
        whole(
            400,
            &[],
            r#"{"object":"error","message":"This model's maximum context length is 4096 tokens.","type":"BadRequestError","code":400}"#,
        ),
        refuses(
            400,
            json!({"code": 400, "type": "exceed_context_size_error", "message":
                "the request exceeds the available context size, try increasing it"}),
        ),
        whole(400, &[], ""),
        streams(&[json!({"error": {"code": "context_length_exceeded", "message": "too long"}})]),
    ] {
        let told = format!("{reply:?}");
        assert_eq!(fails(reply).await.0, overflow, "{told}");
    }
}

#[tokio::test]
async fn retry_after_is_read_as_seconds_or_date_and_capped() {
    let wait = async |name: &'static str, value: &'static str| {
        let reply = whole(429, &[(name, value)], "busy");
        let server = ModelServer::start(vec![reply]);
        let mut settings =
            HttpSettings::new("lab", WireFormat::ChatCompletions, server.base_url(), None);
        let now = "2026-12-01T00:00:00Z".parse().expect("a timestamp");
        settings.clock = Clock::Simulated(SimulatedClock::starting_at(now));
        let model = HttpModel::new(settings).expect("the settings are usable");
        let answered = model.complete(&request(), &CancellationToken::new()).await;
        answered.expect_err("429 is a failure").retry_after
    };
    assert_eq!(wait("retry-after", "7").await, Some(Duration::from_secs(7)));
    assert_eq!(
        wait("retry-after", "Tue, 01 Dec 2026 00:01:00 GMT").await,
        Some(Duration::from_secs(60))
    );
    assert_eq!(wait("retry-after-ms", "1500").await, Some(Duration::from_millis(1500)));
    assert_eq!(wait("retry-after", "86400").await, Some(Duration::from_secs(600)));
    assert_eq!(wait("retry-after", "soon").await, None);
}

#[tokio::test]
async fn an_overload_inside_a_200_stream_is_transient() {
    let overloaded = json!({"error": {"type": "overloaded_error", "message": "Overloaded"}});
    let told = "model lab: error inside the answer: Overloaded".to_owned();
    let expected = (ModelErrorClass::Transient, told, None);
    assert_eq!(
        fails(streams(&[delta(json!({"content": "x"})), overloaded.clone()])).await,
        expected
    );
    let events = vec![format!("event: error\ndata: {overloaded}\n\n")];
    assert_eq!(fails(Reply::Stream { events, end: StreamEnd::Clean }).await, expected);
}

#[tokio::test]
async fn an_error_body_with_status_200_is_an_error() {
    let body = json!({"error": {"code": 502, "message": "upstream"}}).to_string();
    let seen = fails(whole(200, &[("content-type", "application/json")], &body)).await;
    let told = "model lab: error 502 inside the answer: upstream".to_owned();
    assert_eq!(seen, (ModelErrorClass::Transient, told, None));
}

#[tokio::test]
async fn an_answer_that_ends_early_is_transient_and_perhaps_billed() {
    let events = vec![format!("data: {}\n\n", delta(json!({"content": "x"})))];
    for end in [StreamEnd::Clean, StreamEnd::Cut, StreamEnd::Stall] {
        let error = ask(Reply::Stream { events: events.clone(), end })
            .await
            .expect_err("the answer is not whole");
        assert_eq!((error.class, error.perhaps_billed), (ModelErrorClass::Transient, true));
    }
}

#[tokio::test]
async fn a_server_that_says_nothing_is_given_up() {
    let seen = fails(Reply::Silence).await;
    let told = "model lab: no byte came for 0.2 s".to_owned();
    assert_eq!(seen, (ModelErrorClass::Transient, told, None));
}

#[tokio::test]
async fn a_closed_port_is_transient_and_says_that_it_cannot_connect() {
    let closed = {
        let server = ModelServer::start(Vec::new());
        server.base_url()
    };
    let model = HttpModel::new(HttpSettings::new("lab", WireFormat::ChatCompletions, closed, None))
        .expect("usable settings");
    let error =
        model.complete(&request(), &CancellationToken::new()).await.expect_err("nobody listens");
    assert_eq!(error.class, ModelErrorClass::Transient);
    assert!(error.to_string().starts_with("model lab: cannot connect: "), "{error}");
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let seen = fails(whole(307, &[("location", "http://192.0.2.1/v1")], "")).await;
    let told =
        "model lab: status 307: it redirects, which is not followed; check base_url".to_owned();
    assert_eq!(seen, (ModelErrorClass::Config, told, None));
}

#[tokio::test]
async fn the_key_is_in_no_error_even_when_the_provider_repeats_it() {
    let message = format!("Incorrect API key provided: {KEY}\n\x1b[31m. {}", "x".repeat(2000));
    let error = ask(refuses(401, json!({"message": message}))).await.expect_err("refused");
    assert!(!format!("{error} {error:?}").contains(KEY), "{error:?}");
    assert!(error.message.starts_with("status 401: Incorrect API key provided: [key] [31m."));
    assert!(error.message.len() < 600, "{} bytes", error.message.len());
}

#[tokio::test]
async fn settings_that_cannot_work_are_refused_without_the_key() {
    let new = |base_url: &str, key: &str| {
        let key = Some(SecretString::from(key.to_owned()));
        HttpModel::new(HttpSettings::new("lab", WireFormat::ChatCompletions, base_url, key))
            .map(|_| ())
    };
    let error = new("https://example.invalid/v1", "sk-line\nbreak").expect_err("a bad key");
    assert_eq!(
        error.to_string(),
        "model lab: the key has characters that no HTTP header can carry"
    );
    let error = new("ftp://example.invalid", KEY).expect_err("a bad scheme");
    assert_eq!(error.to_string(), "model lab: base_url has the scheme \"ftp\"; use https or http");
    new("https://example.invalid/v1", KEY).expect("https works with the system's certificates");
}

#[tokio::test]
async fn cancelling_drops_the_request() {
    for reply in [
        Reply::Silence,
        Reply::Stream {
            events: vec![format!("data: {}\n\n", delta(json!({"content": "x"})))],
            end: StreamEnd::Stall,
        },
    ] {
        let server = ModelServer::start(vec![reply]);
        let mut settings =
            HttpSettings::new("lab", WireFormat::ChatCompletions, server.base_url(), None);
        settings.idle_timeout = Duration::from_secs(60);
        let model = HttpModel::new(settings).expect("the settings are usable");
        let cancel = CancellationToken::new();
        let request = request();
        let (answered, ()) = tokio::join!(model.complete(&request, &cancel), async {
            server.wait_for_requests(1).await;
            cancel.cancel();
        });
        assert_eq!(answered.expect_err("cancelled").class, ModelErrorClass::Cancelled);
        server.wait_for_abandoned().await;
    }
}

#[tokio::test]
async fn a_model_does_not_retry_by_itself() {
    let server = ModelServer::start(vec![refuses(503, json!({"message": "busy"}))]);
    let answered = model(&server).complete(&request(), &CancellationToken::new()).await;
    assert_eq!(answered.expect_err("busy").class, ModelErrorClass::Transient);
    assert_eq!(server.asked().len(), 1);
}
