//! `manifest.yaml`.

use std::time::Duration;

use super::file::Sources;
use super::limits::check_limits;
use super::models::Models;
use super::names::check_name;
use super::network::Bounds;
use super::notify::{Channels, check_channels};
use super::persona::unknown_persona;
use super::policies::{Inherited, check_inherited};
use super::range::{check_range, check_repeats};
use super::retry::{MAX_RETRIES, check_retry};
use super::sandbox::check_sandbox;
use super::schedule::check_jitter;
use super::workspace::check_worktree;
use crate::bundle::raw::{
    RawDefaults, RawLimits, RawManifest, RawNetwork, RawPricing, RawProvider, RawProviderType,
    RawRetryPolicy, RawWorktreeConfig,
};
use crate::bundle::source::Origin;
use crate::bundle::yaml::{Document, Finding, Path};
use crate::bundle::{
    HttpService, ModelRef, PriceEntry, Pricing, Provider, ProviderKind, SandboxSettings,
};
use crate::egress::NetworkPolicy;
use crate::run::NanoUsd;
use crate::schedule::Schedule;
use crate::secrets::holds_credential;

/// The manifest's file name.
const FILE: &str = "manifest.yaml";

/// US dollars per million tokens; more is a slip of the keyboard, and sums would not hold it.
const MAX_PRICE: f64 = 1e6;

/// A value that a task may inherit.
#[derive(Clone, Debug)]
pub(super) enum Given<T> {
    Absent,
    /// Given, but wrong, and reported where it stands.
    Bad,
    Good(T),
}

impl<T> Given<T> {
    pub(super) fn from_result(result: Option<Result<T, ()>>) -> Self {
        match result {
            None => Given::Absent,
            Some(Err(())) => Given::Bad,
            Some(Ok(value)) => Given::Good(value),
        }
    }
}

/// The manifest, as far as it is valid.
#[derive(Debug)]
pub(super) struct Manifest {
    pub(super) name: String,
    pub(super) models: Models,
    pub(super) pricing: Pricing,
    pub(super) sandbox: SandboxSettings,
    pub(super) channels: Channels,
    pub(super) timezone: Given<String>,
    pub(super) jitter: Option<Duration>,
    /// The persona's name; looked up with the personas.
    pub(super) persona: Option<String>,
    pub(super) model: Given<ModelRef>,
    pub(super) fallback_model: Given<ModelRef>,
    pub(super) auto_compact: Option<bool>,
    pub(super) limits: RawLimits,
    pub(super) max_retries: Option<u32>,
    pub(super) retry: RawRetryPolicy,
    pub(super) worktree: RawWorktreeConfig,
    pub(super) policies: Inherited,
    pub(super) notify: Option<Vec<String>>,
    pub(super) network_bounds: Bounds,
    /// The default of tasks; `None`: it is wrong, and reported.
    pub(super) network: Option<NetworkPolicy>,
}

impl Manifest {
    /// Stands in for a manifest that cannot be read: it causes no further problems.
    fn unreadable() -> Self {
        Manifest {
            name: String::new(),
            models: Models::unreadable(),
            pricing: Pricing::default(),
            sandbox: SandboxSettings::default(),
            channels: Channels::unreadable(),
            timezone: Given::Bad,
            jitter: None,
            persona: None,
            model: Given::Bad,
            fallback_model: Given::Bad,
            auto_compact: None,
            limits: RawLimits::default(),
            max_retries: None,
            retry: RawRetryPolicy::default(),
            worktree: RawWorktreeConfig::default(),
            policies: Inherited::default(),
            notify: None,
            network_bounds: Bounds::unreadable(),
            network: None,
        }
    }
}

/// Reads the manifest.
pub(super) fn check(sources: &mut Sources<'_>) -> Manifest {
    let Some(text) = sources.text(FILE) else {
        if !sources.is_present(FILE) {
            sources.report(FILE, missing(sources));
        }
        return Manifest::unreadable();
    };
    let mut document = Document::parse(FILE, text);
    let manifest = match document.decode::<RawManifest>() {
        Some(raw) => {
            let persona = raw.defaults.as_ref().and_then(|defaults| defaults.persona.as_deref());
            check_persona(persona, sources, &document);
            check_raw(raw, &document)
        }
        None => Manifest::unreadable(),
    };
    sources.finish(document);
    manifest
}

fn check_persona(name: Option<&str>, sources: &Sources<'_>, document: &Document<'_>) {
    let files = sources.below("personas/");
    let declared = files.iter().filter_map(|file| file.strip_suffix(".yaml"));
    if let Some(finding) = name.and_then(|name| unknown_persona(name, declared)) {
        document.report(&Path::root().key("defaults").key("persona"), finding);
    }
}

fn missing(sources: &Sources<'_>) -> Finding {
    let finding = Finding::error("missing-file", "the bundle has no manifest.yaml");
    finding.hint(match sources.origin() {
        _ if sources.is_present("manifest.yml") => "rename manifest.yml to manifest.yaml",
        Origin::Commit => "fleet init makes a bundle to start from; uncommitted files are not read",
        Origin::Disk => "fleet init makes a bundle to start from",
    })
}

fn check_raw(raw: RawManifest, document: &Document<'_>) -> Manifest {
    let root = Path::root();
    match raw.version {
        Some(1) => {}
        Some(version) => {
            let finding =
                Finding::error("invalid-value", format!("version {version} is not known"));
            document.report(&root.key("version"), finding.hint("write version: 1"));
        }
        None => document.report_missing(&root, "version", "write version: 1"),
    }
    let raw_name_given = raw.name.is_some();
    let name = raw.name.unwrap_or_else(|| {
        document.report_missing(&root, "name", "give the bundle a name");
        String::new()
    });
    if name.trim().is_empty() && raw_name_given {
        let finding = Finding::error("invalid-value", "the bundle's name is empty");
        document.report(&root.key("name"), finding.hint("give the bundle a name"));
    }
    let providers = raw.providers.unwrap_or_default();
    let models = check_providers(&providers, document);
    let pricing = check_pricing(&raw.pricing.unwrap_or_default(), &models, document);
    let sandbox = raw.sandbox.unwrap_or_default();
    let network_bounds = Bounds::check(&sandbox, document);
    let sandbox = check_sandbox(sandbox, document);
    let channels = check_channels(&raw.notify.unwrap_or_default(), document);
    let defaults = raw.defaults.unwrap_or_default();
    let at = root.key("defaults").key("notify");
    channels.check_names(defaults.notify.as_deref(), &at, document);
    let notify = defaults.notify.clone();
    let network = defaults.allow_network.as_ref();
    let network = default_network(network, &network_bounds, document);
    let manifest = with_defaults(defaults, name, models, pricing, sandbox, document);
    Manifest { channels, notify, network_bounds, network, ..manifest }
}

fn default_network(
    raw: Option<&RawNetwork>,
    bounds: &Bounds,
    document: &Document<'_>,
) -> Option<NetworkPolicy> {
    let at = Path::root().key("defaults").key("allow_network");
    match raw {
        Some(raw) => bounds.policy(raw, &at, document),
        None => (!document.is_broken(&at)).then_some(NetworkPolicy::Sealed),
    }
}

fn with_defaults(
    defaults: RawDefaults,
    name: String,
    models: Models,
    pricing: Pricing,
    sandbox: SandboxSettings,
    document: &Document<'_>,
) -> Manifest {
    let at = Path::root().key("defaults");
    let limits = defaults.limits.unwrap_or_default();
    check_limits(&limits, &at.key("limits"), document);
    check_range(defaults.max_retries, 0..=MAX_RETRIES, &at.key("max_retries"), document);
    let retry = defaults.retry_policy.unwrap_or_default();
    check_retry(&retry, &at.key("retry_policy"), document);
    let worktree = defaults.worktree_config.unwrap_or_default();
    check_worktree(&worktree, &at.key("worktree_config"), document);
    let policies = Inherited {
        misfire: defaults.misfire.unwrap_or_default(),
        overlap: defaults.overlap,
        park_after: defaults.park_after,
    };
    check_inherited(&policies, &at, document);
    Manifest {
        timezone: Given::from_result(
            defaults.timezone.map(|zone| check_zone(zone, &at.key("timezone"), document)),
        ),
        jitter: check_jitter(defaults.jitter.as_ref(), &at.key("jitter"), document),
        model: check_model(defaults.model.as_deref(), &models, &at.key("model"), document),
        auto_compact: defaults.auto_compact,
        fallback_model: check_model(
            defaults.fallback_model.as_deref(),
            &models,
            &at.key("fallback_model"),
            document,
        ),
        persona: defaults.persona,
        max_retries: defaults.max_retries,
        name,
        models,
        pricing,
        sandbox,
        channels: Channels::default(),
        limits,
        retry,
        worktree,
        policies,
        notify: None,
        network_bounds: Bounds::default(),
        network: None,
    }
}

/// A time zone, or its problem.
pub(super) fn check_zone(zone: String, at: &Path, document: &Document<'_>) -> Result<String, ()> {
    match Schedule::check_zone(&zone) {
        Ok(()) => Ok(zone),
        Err(error) => {
            let finding = Finding::error("unknown-timezone", error.to_string());
            document.report(at, finding.maybe_hint(error.hint));
            Err(())
        }
    }
}

/// A model, or its problem.
pub(super) fn check_model(
    name: Option<&str>,
    models: &Models,
    at: &Path,
    document: &Document<'_>,
) -> Given<ModelRef> {
    let Some(name) = name else {
        return if document.is_broken(at) { Given::Bad } else { Given::Absent };
    };
    match models.resolve(name) {
        Ok(model) => Given::Good(model),
        Err(finding) => {
            if let Some(finding) = finding {
                document.report(at, finding);
            }
            Given::Bad
        }
    }
}

fn check_providers(raw: &[RawProvider], document: &Document<'_>) -> Models {
    let list = Path::root().key("providers");
    let mut models = Models::default();
    models.incomplete = document.is_broken(&list);
    for (number, provider) in raw.iter().enumerate() {
        let at = list.index(number);
        match check_provider(provider, &at, document) {
            Some(provider) if models.provider(&provider.name).is_some() => {
                let message = format!("a provider {:?} is declared twice", provider.name);
                document.report(&at.key("name"), Finding::error("duplicate-name", message));
            }
            Some(provider) => models.insert(provider),
            None => models.incomplete = true,
        }
    }
    models
}

fn check_provider(raw: &RawProvider, at: &Path, document: &Document<'_>) -> Option<Provider> {
    let name = match &raw.name {
        Some(name) => match check_name(name, "a provider's name") {
            Ok(()) => Some(name.clone()),
            Err(finding) => {
                document.report(&at.key("name"), finding);
                None
            }
        },
        None => {
            document.report_missing(at, "name", "name the provider, for example openai");
            None
        }
    };
    let kind = match raw.kind {
        Some(kind) => check_kind(kind, raw, at, document),
        None => {
            document.report_missing(
                at,
                "type",
                "write one of openai, anthropic, openrouter, ollama and scripted",
            );
            None
        }
    };
    let window = at.key("context_window_tokens");
    check_range(raw.context_window_tokens, 1_000..=100_000_000, &window, document);
    check_repeats(raw.models.as_deref(), &at.key("models"), document);
    Some(Provider {
        name: name?,
        kind: kind?,
        models: raw.models.clone().unwrap_or_default(),
        context_window_tokens: raw.context_window_tokens,
    })
}

fn check_kind(
    kind: RawProviderType,
    raw: &RawProvider,
    at: &Path,
    document: &Document<'_>,
) -> Option<ProviderKind> {
    match kind {
        RawProviderType::Scripted => {
            for (key, given) in
                [("base_url", raw.base_url.is_some()), ("api_key_env", raw.api_key_env.is_some())]
            {
                if given {
                    let message =
                        format!("a scripted provider has no {key}: it answers from files");
                    let finding = Finding::error("useless-key", message).hint("remove the key");
                    document.report_key(&at.key(key), finding);
                }
            }
            Some(ProviderKind::Scripted)
        }
        RawProviderType::OpenAi => check_service(HttpService::OpenAi, None, raw, at, document),
        RawProviderType::Anthropic => {
            let usual = Usual { base_url: "https://api.anthropic.com/v1", needs_key: true };
            check_service(HttpService::Anthropic, Some(usual), raw, at, document)
        }
        RawProviderType::OpenRouter => {
            let usual = Usual { base_url: "https://openrouter.ai/api/v1", needs_key: true };
            check_service(HttpService::OpenRouter, Some(usual), raw, at, document)
        }
        RawProviderType::Ollama => {
            let usual = Usual { base_url: "http://127.0.0.1:11434/v1", needs_key: false };
            check_service(HttpService::Ollama, Some(usual), raw, at, document)
        }
    }
}

/// Where a service is when the bundle does not say.
struct Usual {
    base_url: &'static str,
    needs_key: bool,
}

fn check_service(
    service: HttpService,
    usual: Option<Usual>,
    raw: &RawProvider,
    at: &Path,
    document: &Document<'_>,
) -> Option<ProviderKind> {
    if let Some(name) = &raw.api_key_env {
        check_env_name(name, &at.key("api_key_env"), document);
    }
    let base_url = match (&raw.base_url, usual) {
        (Some(url), _) => check_base_url(url, &at.key("base_url"), document)?,
        (None, Some(usual)) => {
            if usual.needs_key && raw.api_key_env.is_none() {
                let hint = "name the environment variable that holds the key";
                document.report_missing(at, "api_key_env", hint);
                return None;
            }
            usual.base_url.to_owned()
        }
        (None, None) => {
            let hint = "write the URL with its version path: https://api.openai.com/v1";
            document.report_missing(at, "base_url", hint);
            return None;
        }
    };
    Some(ProviderKind::Http { service, base_url, api_key_env: raw.api_key_env.clone() })
}

/// Reports what cannot be an environment variable's name, without repeating it.
pub(super) fn check_env_name(name: &str, at: &Path, document: &Document<'_>) {
    let valid = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if valid || holds_credential(name) {
        return;
    }
    // The value may be a key in a shape that nobody knows: it is not repeated.
    let finding =
        Finding::error("invalid-value", "this is not the name of an environment variable");
    document.report(
        at,
        finding.hint("write the variable's name, for example OPENAI_API_KEY, never the key itself"),
    );
}

fn check_base_url(url: &str, at: &Path, document: &Document<'_>) -> Option<String> {
    if holds_credential(url) {
        return None;
    }
    let host = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let valid = host.is_some_and(|rest| {
        let authority = rest.split('/').next().unwrap_or_default();
        !authority.is_empty()
            && !authority.starts_with(':')
            && !rest.contains(|c: char| c.is_whitespace() || matches!(c, '@' | '?' | '#'))
    });
    if valid {
        return Some(url.trim_end_matches('/').to_owned());
    }
    let finding = Finding::error("invalid-value", format!("{url:?} is not an http(s) URL"));
    document.report(
        at,
        finding
            .hint("write scheme, host and path without user, query or fragment: https://host/v1"),
    );
    None
}

fn check_pricing(raw: &RawPricing, models: &Models, document: &Document<'_>) -> Pricing {
    let at = Path::root().key("pricing");
    let mut pricing = Pricing::default();
    for (number, entry) in raw.overrides.iter().flatten().enumerate() {
        let at = at.key("overrides").index(number);
        let price = check_price(
            [entry.input_per_million, entry.cached_per_million, entry.output_per_million],
            &at,
            document,
        );
        if entry.model.is_none() {
            document.report_missing(&at, "model", "name the model as provider/model");
        }
        let model = check_model(entry.model.as_deref(), models, &at.key("model"), document);
        if let (Given::Good(model), Some(price)) = (model, price) {
            let key = format!("{}/{}", model.provider, model.model);
            if pricing.overrides.insert(key.clone(), price).is_some() {
                let message = format!("the price of {key:?} is given twice");
                document.report(&at.key("model"), Finding::error("duplicate-name", message));
            }
        }
    }
    if let Some(fallback) = &raw.fallback {
        pricing.fallback = check_price(
            [fallback.input_per_million, fallback.cached_per_million, fallback.output_per_million],
            &at.key("fallback"),
            document,
        );
    }
    pricing
}

fn check_price(
    amounts: [Option<f64>; 3],
    at: &Path,
    document: &Document<'_>,
) -> Option<PriceEntry> {
    const KEYS: [&str; 3] = ["input_per_million", "cached_per_million", "output_per_million"];
    for (key, amount) in KEYS.iter().zip(amounts) {
        match amount {
            Some(amount) if amount < 0.0 => {
                let finding =
                    Finding::error("invalid-value", format!("{key}: {amount} is negative"));
                document.report(&at.key(key), finding.hint("write US dollars per million tokens"));
                return None;
            }
            Some(amount) if amount > MAX_PRICE => {
                check_range(Some(amount), 0.0..=MAX_PRICE, &at.key(key), document);
                return None;
            }
            None if *key != "cached_per_million" => {
                document.report_missing(at, key, "write US dollars per million tokens");
            }
            _ => {}
        }
    }
    let [input, cached, output] = amounts;
    let input = NanoUsd::from_usd(input?);
    Some(PriceEntry {
        input,
        cached: cached.map_or(input, NanoUsd::from_usd),
        output: NanoUsd::from_usd(output?),
    })
}
