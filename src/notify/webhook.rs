//! Posts a signed notice.

use std::time::Duration;

use jiff::Timestamp;
use secrecy::ExposeSecret;

use super::SendError;
use super::environment::Environment;
use super::message::Message;
use super::signature::sign;
use crate::bundle::{Webhook, WebhookUrl, check_webhook_url};
use crate::tls;

/// How long a receiver may take, connecting included.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);
/// Shorter parts of a secret URL are ordinary words.
const SECRET_PART: usize = 12;

/// Posts; every answer but a 2xx is a failure.
pub(super) async fn post(
    webhook: &Webhook,
    message: &Message<'_>,
    now: Timestamp,
    environment: &Environment<'_>,
) -> Result<String, SendError> {
    let url = url(&webhook.url, environment)?;
    let host = host(&url);
    let key = environment.secret("secret_env", &webhook.secret_env)?;
    let unreachable = |why: String| SendError::Unreachable { host: host.clone(), why };
    let client = client(&url).map_err(unreachable)?;
    let request = client
        .post(url)
        .header("content-type", "application/json")
        .header("idempotency-key", &message.notice.idempotency_key)
        .header("x-fleet-timestamp", now.as_second().to_string())
        .header("x-fleet-signature", sign(key.expose_secret().as_bytes(), now, &message.json))
        .body(message.json.clone());
    let answer = request.send().await.map_err(|error| {
        if error.is_timeout() {
            return SendError::TimedOut { host: host.clone(), limit: TIMEOUT };
        }
        unreachable(causes(&error.without_url()))
    })?;
    match answer.status().as_u16() {
        status @ 200..300 => Ok(format!("{host} answered with status {status}")),
        status => Err(SendError::Refused { host, status }),
    }
}

fn url(url: &WebhookUrl, environment: &Environment<'_>) -> Result<reqwest::Url, SendError> {
    let (text, variable) = match url {
        WebhookUrl::Plain(url) => (url.clone(), ""),
        WebhookUrl::Env(variable) => (environment.value("url_env", variable)?, variable.as_str()),
    };
    let unusable = |why| SendError::UnusableUrl {
        variable: variable.to_owned(),
        channel: environment.channel.to_owned(),
        why,
    };
    check_webhook_url(&text).map_err(unusable)?;
    let parsed = reqwest::Url::parse(&text).map_err(|_| unusable("this is not a URL"))?;
    if let WebhookUrl::Env(_) = url {
        mask(&text, &parsed, environment);
    }
    Ok(parsed)
}

/// Everything of a secret URL but its host is masked from now on.
fn mask(text: &str, url: &reqwest::Url, environment: &Environment<'_>) {
    let redactor = environment.redactor;
    redactor.register(text);
    redactor.register(url.password().unwrap_or_default());
    let segments = url.path_segments().into_iter().flatten();
    let values: Vec<String> = url.query_pairs().map(|(_, value)| value.into_owned()).collect();
    let parts = segments.chain(values.iter().map(String::as_str));
    parts.filter(|part| part.len() >= SECRET_PART).for_each(|part| redactor.register(part));
}

/// What may be told of a URL.
fn host(url: &reqwest::Url) -> String {
    let name = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| name.to_owned(), |port| format!("{name}:{port}"))
}

fn client(url: &reqwest::Url) -> Result<reqwest::Client, String> {
    let builder = reqwest::Client::builder()
        .user_agent(concat!("fleet/", env!("CARGO_PKG_VERSION")))
        // A redirect would carry the notice to another host.
        .redirect(reqwest::redirect::Policy::none())
        .timeout(TIMEOUT);
    let builder = match url.scheme() {
        // On this host, where no proxy and no certificate is needed.
        "http" => builder.no_proxy().tls_backend_preconfigured(tls::no_roots()?),
        _ => {
            tls::install_ring();
            builder
        }
    };
    builder.build().map_err(|error| causes(&error))
}

fn causes(error: &dyn std::error::Error) -> String {
    let mut deepest = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}
