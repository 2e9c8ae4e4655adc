//! `manifest.yaml`.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    DurationText, RawChannel, RawLimits, RawMisfire, RawNetwork, RawOverlap, RawRetryPolicy,
    RawWorktreeConfig,
};

/// The bundle's one manifest: where models come from, what they cost, in which sandbox tools run, and
/// what every task inherits.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
#[schemars(title = "manifest.yaml")]
#[schemars(rename = "Manifest")]
pub(crate) struct RawManifest {
    /// The format's version: 1.
    #[schemars(required, range(min = 1, max = 1))]
    pub(crate) version: Option<u64>,
    /// The bundle's name, shown on the status page.
    #[schemars(required, length(min = 1))]
    pub(crate) name: Option<String>,
    /// What every task inherits where it says nothing itself.
    pub(crate) defaults: Option<RawDefaults>,
    /// Where models come from.
    pub(crate) providers: Option<Vec<RawProvider>>,
    /// What models cost where the provider does not say.
    pub(crate) pricing: Option<RawPricing>,
    /// In what the model's code runs.
    pub(crate) sandbox: Option<RawSandbox>,
    /// Where people are told of failures and the like.
    pub(crate) notify: Option<Vec<RawChannel>>,
}

/// What every task inherits where it says nothing itself. Mappings are inherited key by key.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
#[schemars(rename = "Defaults")]
pub(crate) struct RawDefaults {
    /// The time zone of schedules, an IANA name. Default UTC.
    pub(crate) timezone: Option<String>,
    /// Makes each due time later by less than this, always by the same seconds, which the task's name
    /// decides: 0s to 24h. Default none.
    pub(crate) jitter: Option<DurationText>,
    /// The persona: the name of a file in personas/ without `.yaml`.
    pub(crate) persona: Option<String>,
    /// The model, as `provider/model` or a name that exactly one provider lists.
    pub(crate) model: Option<String>,
    /// The model that takes over for the rest of an attempt when the other's provider fails.
    pub(crate) fallback_model: Option<String>,
    /// Summarize the older half of a conversation before it fills the model's context window. Default
    /// false, or what the host's configuration says.
    pub(crate) auto_compact: Option<bool>,
    /// Ceilings of a run.
    pub(crate) limits: Option<RawLimits>,
    /// Further attempts after failures that may be retried, at most 100. Default 0.
    #[schemars(range(max = 100))]
    pub(crate) max_retries: Option<u32>,
    /// How and after what a run is tried again.
    pub(crate) retry_policy: Option<RawRetryPolicy>,
    /// What can be reached over the network: `false`, nothing; `true`, every public host on ports 443
    /// and 80; or a list of hosts: `host`, `host:port`, `*.host`. Default false.
    pub(crate) allow_network: Option<RawNetwork>,
    /// How a run's checkout is made and removed.
    pub(crate) worktree_config: Option<RawWorktreeConfig>,
    /// What happens to due times that passed while nothing could run.
    pub(crate) misfire: Option<RawMisfire>,
    /// What happens to a due time while an earlier scheduled run of the task is open. Default skip.
    pub(crate) overlap: Option<RawOverlap>,
    /// After how many dead letters in a row a task parks itself, at most 1000; 0 never. Default 5.
    #[schemars(range(max = 1000))]
    pub(crate) park_after: Option<u32>,
    /// The channels that are told. Absent: every one.
    pub(crate) notify: Option<Vec<String>>,
}

/// A place that answers model requests.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
#[schemars(rename = "Provider")]
pub(crate) struct RawProvider {
    /// The name before the slash in `provider/model`.
    #[schemars(required)]
    pub(crate) name: Option<String>,
    /// The wire format.
    #[serde(rename = "type")]
    #[schemars(required)]
    pub(crate) kind: Option<RawProviderType>,
    /// Where requests go, with the version path: `https://api.openai.com/v1`. Required for `openai`;
    /// the other services have a default.
    pub(crate) base_url: Option<String>,
    /// The name of the environment variable that holds the key; never the key. Required for
    /// `anthropic` and `openrouter` where they have no `base_url` of their own.
    pub(crate) api_key_env: Option<String>,
    /// The models on offer. Where the list is absent, any name is passed on.
    pub(crate) models: Option<Vec<String>>,
    /// The models' context window, in tokens: 1000 to 100000000.
    #[schemars(range(min = 1000, max = 100_000_000))]
    pub(crate) context_window_tokens: Option<u64>,
}

/// A provider's wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "ProviderType")]
pub(crate) enum RawProviderType {
    /// Chat completions: OpenAI and everything that is compatible.
    #[serde(rename = "openai")]
    OpenAi,
    /// Anthropic's Messages. Default `base_url`: `https://api.anthropic.com/v1`.
    Anthropic,
    /// OpenRouter: chat completions that tell their cost. Default `base_url`:
    /// `https://openrouter.ai/api/v1`.
    #[serde(rename = "openrouter")]
    OpenRouter,
    /// A local Ollama: chat completions without a key. Default `base_url`:
    /// `http://127.0.0.1:11434/v1`.
    Ollama,
    /// Recorded sessions: scripted/<task>.yaml.
    Scripted,
}

/// What models cost where the provider does not say.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
#[schemars(rename = "Pricing")]
pub(crate) struct RawPricing {
    /// Prices by model.
    pub(crate) overrides: Option<Vec<RawOverride>>,
    /// The price of every other model. Absent: a cautious guess, marked as an estimate.
    pub(crate) fallback: Option<RawPrice>,
}

/// One model's price, in US dollars per million tokens.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
#[schemars(rename = "Override")]
pub(crate) struct RawOverride {
    /// The model, as `provider/model` or a name that exactly one provider lists.
    #[schemars(required)]
    pub(crate) model: Option<String>,
    /// Prompt tokens that were not read from a cache.
    #[schemars(required, range(min = 0.0, max = 1_000_000.0))]
    pub(crate) input_per_million: Option<f64>,
    /// Prompt tokens that were read from a cache. Default: as input.
    #[schemars(range(min = 0.0, max = 1_000_000.0))]
    pub(crate) cached_per_million: Option<f64>,
    /// Completion tokens.
    #[schemars(required, range(min = 0.0, max = 1_000_000.0))]
    pub(crate) output_per_million: Option<f64>,
}

/// A price, in US dollars per million tokens.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
#[schemars(rename = "Price")]
pub(crate) struct RawPrice {
    /// Prompt tokens that were not read from a cache.
    #[schemars(required, range(min = 0.0, max = 1_000_000.0))]
    pub(crate) input_per_million: Option<f64>,
    /// Prompt tokens that were read from a cache. Default: as input.
    #[schemars(range(min = 0.0, max = 1_000_000.0))]
    pub(crate) cached_per_million: Option<f64>,
    /// Completion tokens.
    #[schemars(required, range(min = 0.0, max = 1_000_000.0))]
    pub(crate) output_per_million: Option<f64>,
}

/// In what the model's code runs.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping")]
#[schemars(rename = "Sandbox")]
pub(crate) struct RawSandbox {
    /// An image in fleet's Podman storage. Absent: the one that `fleet sandbox build` makes.
    pub(crate) image: Option<String>,
    /// The OCI runtime: crun, runc, runsc, kata or libkrun. Absent: the host's choice.
    pub(crate) runtime: Option<String>,
    /// The only hosts that tasks may allow: `host`, `host:port`, `*.host`. Absent: every public host.
    pub(crate) network_allowlist: Option<Vec<String>>,
}
