//! Turns what went wrong into a `ModelError`: its class, a short text without the key, and when to
//! try again.

use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use crate::clock::Clock;

use super::super::fault::Fault;
use super::super::{ModelError, ModelErrorClass};
use super::HttpSettings;

/// The longest wait that a provider may ask for.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(600);
/// The most bytes of a provider's words that an error repeats.
const MAX_MESSAGE_BYTES: usize = 500;

/// Makes the errors of one provider.
#[derive(Clone, Debug)]
pub(super) struct Failures {
    provider: String,
    api_key: Option<SecretString>,
    clock: Clock,
    idle_timeout: Duration,
}

impl Failures {
    pub(super) fn new(settings: &HttpSettings) -> Self {
        Failures {
            provider: settings.provider_name.clone(),
            api_key: settings.api_key.clone(),
            clock: settings.clock.clone(),
            idle_timeout: settings.idle_timeout,
        }
    }

    pub(super) fn config(&self, message: String) -> ModelError {
        plain(ModelErrorClass::Config, &self.provider, self.safe(&message))
    }

    pub(super) fn cancelled(&self) -> ModelError {
        let message = "the request was cancelled".to_owned();
        plain(ModelErrorClass::Cancelled, &self.provider, message)
    }

    /// The network failed. `answering`: after the answer had begun.
    pub(super) fn transport(&self, error: reqwest::Error, answering: bool) -> ModelError {
        let message = if error.is_connect() {
            format!("cannot connect: {}", causes(&error.without_url()))
        } else if error.is_timeout() {
            format!("no byte came for {} s", self.idle_timeout.as_secs_f64())
        } else if answering {
            format!("the answer was cut off: {}", causes(&error.without_url()))
        } else {
            format!("the request failed: {}", causes(&error.without_url()))
        };
        let mut failure = plain(ModelErrorClass::Transient, &self.provider, self.safe(&message));
        failure.perhaps_billed = answering;
        failure
    }

    /// The stream ended early or broke its bounds.
    pub(super) fn broken_stream(&self, message: &str) -> ModelError {
        let mut failure = plain(ModelErrorClass::Transient, &self.provider, self.safe(message));
        failure.perhaps_billed = true;
        failure
    }

    /// The provider reported an error inside an answer with status 200.
    pub(super) fn in_stream(&self, fault: Fault) -> ModelError {
        let class = fault.class();
        let message = match fault.status {
            Some(status) => format!("error {status} inside the answer: {}", fault.message),
            None => format!("error inside the answer: {}", fault.message),
        };
        let mut failure = plain(class, &self.provider, self.safe(&message));
        failure.window_tokens = fault.window_tokens();
        failure.perhaps_billed = class == ModelErrorClass::Transient;
        failure
    }

    /// The provider answered with another status than 200.
    pub(super) fn refused(
        &self,
        status: u16,
        body: &[u8],
        retry_after: Option<Duration>,
    ) -> ModelError {
        let mut fault = body_fault(body);
        fault.status = Some(status);
        let words = match (fault.bare, status) {
            (true, 300..=399) => "it redirects, which is not followed; check base_url",
            (true, _) => "without a body",
            (false, _) => fault.message.as_str(),
        };
        let message = self.safe(&format!("status {status}: {words}"));
        let mut failure = plain(fault.class(), &self.provider, message);
        failure.retry_after = retry_after;
        failure.window_tokens = fault.window_tokens();
        failure
    }

    /// How long the provider wants to be left alone: milliseconds, seconds or a date, capped.
    pub(super) fn retry_after(&self, headers: &HeaderMap) -> Option<Duration> {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        if let Some(millis) = text("retry-after-ms").and_then(|text| text.trim().parse().ok()) {
            return Some(Duration::from_millis(millis).min(MAX_RETRY_AFTER));
        }
        let value = text(RETRY_AFTER.as_str())?.trim();
        let wait = match value.parse::<f64>() {
            Ok(seconds) => Duration::try_from_secs_f64(seconds.max(0.0)).ok()?,
            Err(_) => wait_until(value, self.clock.now())?,
        };
        Some(wait.min(MAX_RETRY_AFTER))
    }

    /// One bounded line without control characters and without the key.
    fn safe(&self, text: &str) -> String {
        let mut safe = text.to_owned();
        if let Some(key) = &self.api_key {
            let key = key.expose_secret();
            if !key.is_empty() {
                safe = safe.replace(key, "[key]");
            }
        }
        let line: Vec<_> = safe.split_whitespace().collect();
        let mut line = line.join(" ");
        line.retain(|c| !c.is_control());
        if line.len() > MAX_MESSAGE_BYTES {
            let cut = (0..=MAX_MESSAGE_BYTES).rev().find(|at| line.is_char_boundary(*at));
            line.truncate(cut.unwrap_or(0));
            line.push('…');
        }
        line
    }
}

/// The time until an HTTP date (RFC 9110, 5.6.7), which is an RFC 2822 date; none when it is past.
fn wait_until(date: &str, now: Timestamp) -> Option<Duration> {
    let at = jiff::fmt::rfc2822::parse(date).ok()?.timestamp();
    Some(Duration::try_from(at.duration_since(now)).unwrap_or(Duration::ZERO))
}

/// An error with what caused it, because HTTP clients say little themselves.
pub(super) fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// Reads an error body: JSON as OpenAI, Anthropic and their relatives write it, else plain text.
pub(in crate::model) fn body_fault(body: &[u8]) -> Fault {
    let text = String::from_utf8_lossy(body);
    let text = text.trim();
    if text.is_empty() {
        return Fault { bare: true, ..Fault::default() };
    }
    match serde_json::from_str::<Value>(text) {
        Ok(value) => error_of(&value)
            .unwrap_or_else(|| Fault { message: text.to_owned(), ..Fault::default() }),
        Err(_) => Fault { message: text.to_owned(), ..Fault::default() },
    }
}

/// The error inside a JSON value, if it is one: `{"error": {...}}`, `{"error": "text"}`, or, from
/// vLLM, `{"object": "error", "message": ...}`. Lists of one, as Google sends, are looked into.
pub(in crate::model) fn error_of(value: &Value) -> Option<Fault> {
    if let Some(first) = value.as_array().and_then(|list| list.first()) {
        return error_of(first);
    }
    let error = match value.get("error") {
        Some(Value::Null) | None if value.get("object")?.as_str()? == "error" => value,
        Some(Value::Null) | None => return None,
        Some(Value::String(message)) => {
            return Some(Fault { message: message.clone(), ..Fault::default() });
        }
        Some(error) => error,
    };
    let mut fault = Fault { message: message_of(error), ..Fault::default() };
    for name in ["code", "type", "status"] {
        match error.get(name) {
            Some(Value::Number(number)) => {
                fault.status = number.as_u64().and_then(|code| u16::try_from(code).ok());
            }
            Some(Value::String(code)) => match code.parse() {
                Ok(status) => fault.status = Some(status),
                Err(_) => fault.codes.push(code.to_lowercase()),
            },
            _ => {}
        }
    }
    Some(fault)
}

/// The error's words; OpenRouter keeps those of the provider behind it in `metadata.raw`.
fn message_of(error: &Value) -> String {
    let message = match error.get("message") {
        Some(Value::String(message)) => message.clone(),
        _ => error.to_string(),
    };
    match error.pointer("/metadata/raw") {
        Some(Value::String(raw)) => format!("{message}: {raw}"),
        _ => message,
    }
}

/// A failure that has nothing to do with what the provider said.
fn plain(class: ModelErrorClass, provider: &str, message: String) -> ModelError {
    ModelError {
        class,
        provider: provider.to_owned(),
        message,
        retry_after: None,
        perhaps_billed: false,
        window_tokens: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_is_found_in_every_shape() {
        let openai = br#"{"error":{"message":"no","type":"invalid_request_error","code":null}}"#;
        assert_eq!(
            body_fault(openai),
            Fault {
                codes: vec!["invalid_request_error".to_owned()],
                message: "no".to_owned(),
                ..Fault::default()
            }
        );
        let vllm =
            br#"{"object":"error","message":"too long","type":"BadRequestError","code":400}"#;
        assert_eq!(
            body_fault(vllm),
            Fault {
                status: Some(400),
                codes: vec!["badrequesterror".to_owned()],
                message: "too long".to_owned(),
                bare: false,
            }
        );
        let openrouter = br#"{"error":{"code":502,"message":"up","metadata":{"raw":"down"}}}"#;
        assert_eq!(
            body_fault(openrouter),
            Fault { status: Some(502), message: "up: down".to_owned(), ..Fault::default() }
        );
        let ollama = br#"{"error":"model 'x' not found"}"#;
        assert_eq!(body_fault(ollama).message, "model 'x' not found");
        assert_eq!(body_fault(b"<html>busy</html>").message, "<html>busy</html>");
        assert_eq!(body_fault(b" \n"), Fault { bare: true, ..Fault::default() });
    }

    #[test]
    fn a_date_says_how_long_to_wait() {
        let now: Timestamp = "2026-12-01T00:00:00Z".parse().expect("a timestamp");
        let wait = |date| wait_until(date, now);
        assert_eq!(wait("Tue, 01 Dec 2026 00:00:30 GMT"), Some(Duration::from_secs(30)));
        assert_eq!(wait("Mon, 30 Nov 2026 00:00:30 GMT"), Some(Duration::ZERO));
        assert_eq!(wait("soon"), None);
    }
}
