//! Names of models: `provider/model`, or a name that exactly one provider lists.

use std::collections::BTreeMap;

use crate::bundle::nearest::did_you_mean;
use crate::bundle::yaml::Finding;
use crate::bundle::{ModelRef, Provider};

/// The providers, as far as they are valid.
#[derive(Debug, Default)]
pub(super) struct Models {
    providers: BTreeMap<String, Provider>,
    /// A provider was left out because of a reported mistake: unknown names may be its.
    pub(super) incomplete: bool,
}

impl Models {
    /// Nothing is known: no name is refused.
    pub(super) fn unreadable() -> Self {
        Models { providers: BTreeMap::new(), incomplete: true }
    }

    pub(super) fn insert(&mut self, provider: Provider) {
        self.providers.insert(provider.name.clone(), provider);
    }

    pub(super) fn provider(&self, name: &str) -> Option<&Provider> {
        self.providers.get(name)
    }

    pub(super) fn into_providers(self) -> BTreeMap<String, Provider> {
        self.providers
    }

    /// The model of that name. The finding is absent where the mistake was reported with a provider.
    pub(super) fn resolve(&self, name: &str) -> Result<ModelRef, Option<Finding>> {
        if let Some((provider, model)) = name.split_once('/')
            && let Some(provider) = self.provider(provider)
        {
            return if model.is_empty() {
                Err(Some(Finding::error("unknown-model", format!("{name:?} names no model"))))
            } else {
                self.of_provider(provider, model)
            };
        }
        let mut listed = self
            .providers
            .values()
            .filter(|provider| provider.models.iter().any(|model| model == name));
        match (listed.next(), listed.next()) {
            (Some(provider), None) => {
                Ok(ModelRef { provider: provider.name.clone(), model: name.to_owned() })
            }
            (Some(first), Some(second)) => {
                let message = format!("several providers list the model {name:?}");
                let hint = format!("write {}/{name} or {}/{name}", first.name, second.name);
                Err(Some(Finding::error("ambiguous-model", message).hint(hint)))
            }
            (None, _) if self.incomplete => Err(None),
            (None, _) => Err(Some(self.unknown(name))),
        }
    }

    fn of_provider(&self, provider: &Provider, model: &str) -> Result<ModelRef, Option<Finding>> {
        if provider.models.is_empty() || provider.models.iter().any(|listed| listed == model) {
            return Ok(ModelRef { provider: provider.name.clone(), model: model.to_owned() });
        }
        let message = format!("provider {:?} does not list the model {model:?}", provider.name);
        let hint = did_you_mean(model, provider.models.iter().map(String::as_str))
            .unwrap_or_else(|| format!("it lists {}", provider.models.join(", ")));
        Err(Some(Finding::error("unknown-model", message).hint(hint)))
    }

    fn unknown(&self, name: &str) -> Finding {
        let full: Vec<String> = self
            .providers
            .values()
            .flat_map(|provider| {
                provider.models.iter().map(|model| format!("{}/{model}", provider.name))
            })
            .collect();
        if let Some((provider, _)) = name.split_once('/') {
            let finding =
                Finding::error("unknown-provider", format!("no provider is named {provider:?}"));
            let hint = did_you_mean(provider, self.providers.keys().map(String::as_str));
            return finding.maybe_hint(hint.or_else(|| self.list_providers()));
        }
        let known = full.iter().map(String::as_str);
        let short = self.providers.values().flat_map(|provider| &provider.models);
        let hint = did_you_mean(name, known.chain(short.map(String::as_str)));
        Finding::error("unknown-model", format!("no provider lists the model {name:?}"))
            .maybe_hint(hint.or_else(|| self.list_providers()))
    }

    fn list_providers(&self) -> Option<String> {
        let names: Vec<&str> = self.providers.keys().map(String::as_str).collect();
        Some(if names.is_empty() {
            "declare a provider in manifest.yaml, for example {name: scripted, type: scripted}"
                .into()
        } else {
            format!("write provider/model; the providers are {}", names.join(", "))
        })
    }
}
