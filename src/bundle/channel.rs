//! A valid channel of the manifest's `notify`, and the rules for addresses that are also applied to
//! those that the environment holds.

use std::time::Duration;

use crate::run::NoticeEvent;

/// A place that people are told in.
#[derive(Clone, Debug, PartialEq)]
pub struct Channel {
    pub name: String,
    pub kind: ChannelKind,
    /// Of what, without repetition.
    pub on: Vec<NoticeEvent>,
    /// How many failures in a row are a `repeated_failure`.
    pub after_failures: u32,
}

/// How a channel is told.
#[derive(Clone, Debug, PartialEq)]
pub enum ChannelKind {
    Webhook(Webhook),
    Smtp(Smtp),
    Command(HostCommand),
}

impl ChannelKind {
    /// The word in the manifest.
    pub fn as_str(&self) -> &'static str {
        match self {
            ChannelKind::Webhook(_) => "webhook",
            ChannelKind::Smtp(_) => "smtp",
            ChannelKind::Command(_) => "command",
        }
    }
}

/// A signed HTTP request.
#[derive(Clone, Debug, PartialEq)]
pub struct Webhook {
    pub url: WebhookUrl,
    /// The *name* of the environment variable that holds the signature's key.
    pub secret_env: String,
}

/// Where a webhook's URL stands.
#[derive(Clone, Debug, PartialEq)]
pub enum WebhookUrl {
    Plain(String),
    /// In the environment variable of this name.
    Env(String),
}

/// A mail.
#[derive(Clone, Debug, PartialEq)]
pub struct Smtp {
    pub host: String,
    pub port: u16,
    pub tls: Tls,
    /// The *names* of the environment variables that hold the user's name and the password.
    pub login_env: Option<(String, String)>,
    pub from: String,
    pub to: Vec<String>,
}

/// How a mail server's connection is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tls {
    /// From the first byte.
    Required,
    /// After STARTTLS, without which nothing is sent.
    StartTls,
    /// Not at all; only on this host.
    None,
}

/// A program on the host.
#[derive(Clone, Debug, PartialEq)]
pub struct HostCommand {
    pub program: String,
    pub arguments: Vec<String>,
    pub timeout: Duration,
}

/// When a run takes longer than expected. Advice only: it ends no run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sla {
    /// `expected_duration_minutes`.
    pub expected: Duration,
    /// When a run is worth a warning.
    pub warn_after: Duration,
    /// When it is overdue.
    pub overdue_after: Duration,
}

/// Whether a webhook may be sent there, or why not. What is refused is not repeated: it may hold a
/// credential.
pub fn check_webhook_url(url: &str) -> Result<(), &'static str> {
    let parsed = reqwest::Url::parse(url).map_err(|_| "this is not an http(s) URL")?;
    if !matches!(parsed.scheme(), "https" | "http") || parsed.host_str().is_none() {
        return Err("this is not an http(s) URL");
    }
    if url.contains('#') {
        return Err("a webhook's URL has no fragment");
    }
    let host = parsed.host_str().unwrap_or_default();
    if parsed.scheme() == "http" && !is_loopback(host.trim_matches(['[', ']'])) {
        return Err("a webhook goes over https unless its receiver is on this host");
    }
    Ok(())
}

/// Whether that host is this one.
pub fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}
