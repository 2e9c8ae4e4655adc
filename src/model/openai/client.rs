//! The HTTP client: rustls with ring, no redirects, bounded silence.

use reqwest::header::HeaderValue;
use secrecy::{ExposeSecret, SecretString};

use super::OpenAiSettings;
use super::failure::causes;
use crate::tls;

/// Builds the client. The error names what is wrong with the settings.
pub(super) fn build(settings: &OpenAiSettings) -> Result<reqwest::Client, String> {
    let url = reqwest::Url::parse(&settings.base_url)
        .map_err(|error| format!("base_url {:?}: {error}", settings.base_url))?;
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("fleet/", env!("CARGO_PKG_VERSION")))
        // A redirect would carry the prompt to another host.
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(settings.connect_timeout)
        .read_timeout(settings.idle_timeout);
    builder = match url.scheme() {
        // A local server works on a machine that has no certificates.
        "http" => builder.tls_backend_preconfigured(tls::no_roots()?),
        "https" => {
            tls::install_ring();
            builder
        }
        other => return Err(format!("base_url has the scheme {other:?}; use https or http")),
    };
    builder.build().map_err(|error| {
        let why = causes(&error);
        format!("the HTTP client cannot be made ({why}); https needs the system's CA certificates")
    })
}

/// The header that carries the key, marked so that it is never printed. `None` when it cannot.
pub(super) fn authorization(key: &SecretString) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Bearer {}", key.expose_secret())).ok()?;
    value.set_sensitive(true);
    Some(value)
}
