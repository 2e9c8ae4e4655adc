//! The HTTP client: rustls with ring, no redirects, bounded silence.

use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};

use super::failure::causes;
use super::{HttpSettings, WireFormat};
use crate::tls;

/// Builds the client. The error names what is wrong with the settings.
pub(super) fn build(settings: &HttpSettings) -> Result<reqwest::Client, String> {
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
pub(super) fn key_header(
    format: WireFormat,
    key: &SecretString,
) -> Option<(HeaderName, HeaderValue)> {
    let key = key.expose_secret();
    let (name, value) = match format {
        WireFormat::ChatCompletions | WireFormat::OpenRouter => {
            (AUTHORIZATION, format!("Bearer {key}"))
        }
        WireFormat::Messages => (HeaderName::from_static("x-api-key"), key.to_owned()),
    };
    let mut value = HeaderValue::from_str(&value).ok()?;
    value.set_sensitive(true);
    Some((name, value))
}
