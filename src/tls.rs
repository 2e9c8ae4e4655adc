//! TLS: rustls on ring, with the system's certificates. Refuses every other provider.

use std::sync::{Arc, OnceLock};

use rustls_platform_verifier::ConfigVerifierExt;

/// Makes ring the process's provider of cryptography, which the platform's verifier asks for.
pub fn install_ring() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // A provider that another thread has installed meanwhile is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}

/// TLS that trusts nobody: for plain HTTP on a machine that has no certificates.
pub fn no_roots() -> Result<rustls::ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be set up: {error}"))?
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth())
}

/// TLS that trusts what the system trusts, made once.
pub fn verified() -> Result<Arc<rustls::ClientConfig>, String> {
    static CONFIG: OnceLock<Arc<rustls::ClientConfig>> = OnceLock::new();
    if let Some(config) = CONFIG.get() {
        return Ok(config.clone());
    }
    install_ring();
    let failed =
        |error: rustls::Error| format!("the system's CA certificates cannot be used: {error}");
    let config = rustls::ClientConfig::with_platform_verifier().map_err(failed)?;
    Ok(CONFIG.get_or_init(|| Arc::new(config)).clone())
}
