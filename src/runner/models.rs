//! From a task's model to something that answers: providers of the bundle, keys of the environment,
//! recorded sessions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use secrecy::SecretString;

use super::script;
use crate::agent::{Breaker, ModelChoice, Price};
use crate::bundle::{Bundle, HttpService, ModelRef, PriceEntry, ProviderKind, Task};
use crate::clock::Clock;
use crate::model::{HttpModel, HttpSettings, Model, ScriptCursor, ScriptedModel, WireFormat};
use crate::run::{NanoUsd, Outcome, OutcomeClass};
use crate::secrets::Redactor;

/// What a model costs when neither the provider nor the bundle says: high enough that a ceiling
/// fires early rather than late. Every cost computed from it is marked as an estimate.
const CAUTIOUS_PRICE: Price = Price {
    input_per_million: NanoUsd(15_000_000_000),
    cached_per_million: NanoUsd(15_000_000_000),
    output_per_million: NanoUsd(75_000_000_000),
};

/// Makes models for tasks.
#[derive(Clone)]
pub struct ModelFactory {
    clock: Clock,
    redactor: Redactor,
    /// By provider.
    breakers: Arc<Mutex<HashMap<String, Breaker>>>,
}

/// What answers a task.
pub struct TaskModels {
    pub main: ModelChoice,
    pub fallback: Option<ModelChoice>,
}

impl ModelFactory {
    /// Keys that it reads from the environment are registered with `redactor`.
    pub fn new(clock: Clock, redactor: Redactor) -> Self {
        ModelFactory { clock, redactor, breakers: Arc::default() }
    }

    /// The models that answer a task.
    pub fn of_task(
        &self,
        bundle: &Bundle,
        task: &Task,
        served_faults: u32,
    ) -> Result<TaskModels, Outcome> {
        let main = self.make(bundle, task, &task.model, served_faults)?;
        let fallback = task.fallback_model.as_ref().filter(|model| **model != task.model);
        let fallback = fallback.map(|model| self.make(bundle, task, model, 0)).transpose()?;
        Ok(TaskModels { main, fallback })
    }

    /// A model that answers a task, or the outcome of a run that cannot have one. `served_faults` is
    /// how many requests failed in the run's earlier attempts: a recorded fault counts per run.
    fn make(
        &self,
        bundle: &Bundle,
        task: &Task,
        model: &ModelRef,
        served_faults: u32,
    ) -> Result<ModelChoice, Outcome> {
        let provider = bundle.providers.get(&model.provider).ok_or_else(|| {
            config(format!(
                "task {} names the provider {:?}, which bundle {} does not have",
                task.name, model.provider, bundle.commit
            ))
        })?;
        let name = model.model.clone();
        let display_name = format!("{}/{name}", model.provider);
        let model: Arc<dyn Model> = match &provider.kind {
            ProviderKind::Scripted => {
                let script = task.script.as_deref().ok_or_else(|| {
                    config(format!(
                        "task {} has no recorded session for the scripted provider",
                        task.name
                    ))
                })?;
                let turns = Arc::new(script::turns(script, served_faults));
                Arc::new(ScriptedModel::new(
                    provider.name.clone(),
                    turns,
                    ScriptCursor::default(),
                    self.clock.clone(),
                ))
            }
            ProviderKind::Http { service, base_url, api_key_env } => {
                let key = self.key(api_key_env.as_deref(), &provider.name)?;
                let name = provider.name.clone();
                let settings = HttpSettings::new(name, format(*service), base_url.clone(), key);
                Arc::new(HttpModel::new(settings).map_err(|error| config(error.to_string()))?)
            }
        };
        let window_tokens = provider.context_window_tokens.unwrap_or_else(|| window_of(&name));
        let (price, price_is_estimate) = price(bundle, &display_name, &provider.kind);
        Ok(ModelChoice {
            model,
            name,
            display_name,
            price,
            price_is_estimate,
            temperature: task.temperature,
            window_tokens,
            breaker: self.breaker(&provider.name),
        })
    }

    /// The breaker that all runs of the provider share.
    fn breaker(&self, provider: &str) -> Breaker {
        let mut breakers = self.breakers.lock().unwrap_or_else(PoisonError::into_inner);
        breakers.entry(provider.to_owned()).or_default().clone()
    }

    fn key(&self, variable: Option<&str>, provider: &str) -> Result<Option<SecretString>, Outcome> {
        let Some(variable) = variable else { return Ok(None) };
        match std::env::var(variable) {
            Ok(key) if !key.is_empty() => {
                self.redactor.register(&key);
                Ok(Some(SecretString::from(key)))
            }
            _ => Err(config(format!(
                "the environment variable {variable} (api_key_env of provider {provider}) is not set: set it for the daemon and replay the run"
            ))),
        }
    }
}

/// Context windows by what a model's name holds, where the provider's entry names none. The first that
/// fits counts.
const WINDOWS: [(&str, u64); 14] = [
    ("claude", 200_000),
    ("gpt-5", 400_000),
    ("gpt-4.1", 1_047_576),
    ("gpt-4o", 128_000),
    ("gpt-4-turbo", 128_000),
    ("gpt-4", 8_192),
    ("gpt-3.5", 16_385),
    ("gemini", 1_048_576),
    ("grok", 131_072),
    ("deepseek", 128_000),
    ("mistral", 128_000),
    ("llama", 128_000),
    ("qwen", 131_072),
    ("kimi", 131_072),
];

/// The window of a model that nobody knows.
const USUAL_WINDOW: u64 = 128_000;

fn window_of(model: &str) -> u64 {
    let model = model.to_lowercase();
    let known = WINDOWS.iter().find(|(part, _)| model.contains(part));
    known.map_or(USUAL_WINDOW, |(_, tokens)| *tokens)
}

fn format(service: HttpService) -> WireFormat {
    match service {
        HttpService::OpenAi | HttpService::Ollama => WireFormat::ChatCompletions,
        HttpService::OpenRouter => WireFormat::OpenRouter,
        HttpService::Anthropic => WireFormat::Messages,
    }
}

fn config(reason: String) -> Outcome {
    Outcome::failed(OutcomeClass::Config, reason)
}

fn price(bundle: &Bundle, display_name: &str, kind: &ProviderKind) -> (Price, bool) {
    let known = bundle.pricing.overrides.get(display_name).or(bundle.pricing.fallback.as_ref());
    match (known, kind) {
        (Some(entry), _) => (price_of(entry), false),
        // A recorded session costs what its turns say.
        (None, ProviderKind::Scripted) => (
            Price {
                input_per_million: NanoUsd(0),
                cached_per_million: NanoUsd(0),
                output_per_million: NanoUsd(0),
            },
            false,
        ),
        (None, ProviderKind::Http { .. }) => (CAUTIOUS_PRICE, true),
    }
}

fn price_of(entry: &PriceEntry) -> Price {
    Price {
        input_per_million: entry.input,
        cached_per_million: entry.cached,
        output_per_million: entry.output,
    }
}
