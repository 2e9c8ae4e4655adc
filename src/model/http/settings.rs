//! Where and how a provider is asked.

use std::time::Duration;

use secrecy::SecretString;

use crate::clock::Clock;

/// The format of requests and answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireFormat {
    /// `POST {base_url}/chat/completions`, the key as a bearer token.
    ChatCompletions,
    /// The same in OpenRouter's dialect: it is asked for the cost, too.
    OpenRouter,
    /// `POST {base_url}/messages`, the key in `x-api-key`.
    Messages,
}

/// Where and how to ask.
#[derive(Clone, Debug)]
pub struct HttpSettings {
    /// Names the provider in errors.
    pub provider_name: String,
    pub format: WireFormat,
    /// With the version path, for example `https://api.openai.com/v1`.
    pub base_url: String,
    pub api_key: Option<SecretString>,
    pub connect_timeout: Duration,
    /// The longest silence of the server, before its answer and within it.
    pub idle_timeout: Duration,
    /// Tells the time against which a `Retry-After` date is read.
    pub clock: Clock,
}

impl HttpSettings {
    /// The usual times: 10 s to connect, 5 min of silence.
    pub fn new(
        provider_name: impl Into<String>,
        format: WireFormat,
        base_url: impl Into<String>,
        api_key: Option<SecretString>,
    ) -> Self {
        HttpSettings {
            provider_name: provider_name.into(),
            format,
            base_url: base_url.into(),
            api_key,
            connect_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(300),
            clock: Clock::System,
        }
    }
}
