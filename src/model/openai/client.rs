//! The HTTP client: rustls with ring, no redirects, bounded silence.

use std::sync::Arc;

use reqwest::header::HeaderValue;
use secrecy::{ExposeSecret, SecretString};

use super::OpenAiSettings;
use super::failure::causes;

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
        "http" => builder.tls_backend_preconfigured(no_roots()?),
        "https" => {
            install_ring();
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

/// Makes ring the process's provider of cryptography, which the platform's verifier asks for.
fn install_ring() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // A provider that another thread has installed meanwhile is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}

/// TLS that trusts nobody.
fn no_roots() -> Result<rustls::ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be set up: {error}"))?
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth())
}
