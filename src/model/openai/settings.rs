//! Where and how a provider of chat completions is asked.

use std::time::Duration;

use secrecy::SecretString;

use crate::clock::Clock;

/// Where and how to ask.
#[derive(Clone, Debug)]
pub struct OpenAiSettings {
    /// Names the provider in errors.
    pub provider_name: String,
    /// Without a trailing slash, for example `https://api.openai.com/v1`.
    pub base_url: String,
    pub api_key: Option<SecretString>,
    pub connect_timeout: Duration,
    /// The longest silence of the server, before its answer and within it.
    pub idle_timeout: Duration,
    /// Tells the time against which a `Retry-After` date is read.
    pub clock: Clock,
}

impl OpenAiSettings {
    /// The usual times: 10 s to connect, 5 min of silence.
    pub fn new(
        provider_name: impl Into<String>,
        base_url: impl Into<String>,
        api_key: Option<SecretString>,
    ) -> Self {
        OpenAiSettings {
            provider_name: provider_name.into(),
            base_url: base_url.into(),
            api_key,
            connect_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(300),
            clock: Clock::System,
        }
    }
}
