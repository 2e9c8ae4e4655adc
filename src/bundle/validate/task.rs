//! `tasks/<name>.yaml`.

use std::collections::BTreeMap;
use std::path::Path as FsPath;
use std::sync::Arc;

use super::completion::check_completion;
use super::file::Sources;
use super::limits::{check_limits, resolve_limits};
use super::manifest::{Given, Manifest, check_model, check_zone};
use super::network::check_required_tools;
use super::output_schema::check_output_schema;
use super::permissions::{check_needed_tools, check_permissions};
use super::persona::{ModelState, Personas};
use super::policies::check_policies;
use super::range::{check_range, check_repeats};
use super::retry::{MAX_RETRIES, check_retry, resolve_retry};
use super::schedule::{ScheduleKeys, check_schedule};
use super::script::Scripts;
use super::sla::check_sla;
use super::template::check_prompt;
use super::workspace::{check_repo, check_worktree, resolve_worktree};
use crate::bundle::nearest::did_you_mean;
use crate::bundle::raw::{RawNetwork, RawTask};
use crate::bundle::yaml::{Document, Finding, Path};
use crate::bundle::{ModelRef, Persona, ProviderKind, Task};
use crate::egress::NetworkPolicy;
use crate::run::TaskName;

/// Everything that a task may refer to.
struct Context<'c> {
    manifest: &'c Manifest,
    personas: &'c Personas,
    scripts: &'c Scripts,
    /// File name below `system_prompts/` to its text, where that is readable.
    system_prompts: BTreeMap<String, Option<String>>,
    root: &'c FsPath,
}

/// Reads the tasks.
pub(super) fn check(
    sources: &mut Sources<'_>,
    manifest: &Manifest,
    personas: &Personas,
    scripts: &Scripts,
    root: &FsPath,
) -> BTreeMap<TaskName, Arc<Task>> {
    let system_prompts = sources.below("system_prompts/").into_iter().map(|name| {
        let text = sources.text(&format!("system_prompts/{name}")).map(ToOwned::to_owned);
        (name.to_owned(), text)
    });
    let system_prompts = system_prompts.collect();
    let context = Context { manifest, personas, scripts, system_prompts, root };
    let mut tasks = BTreeMap::new();
    for (name, file, text) in sources.named("tasks") {
        let Some(text) = text else { continue };
        let mut document = Document::parse(file, text);
        if let Some(raw) = document.decode::<RawTask>()
            && let Some(task) = context.check_task(&name, raw, &document)
        {
            tasks.insert(TaskName::new(name), Arc::new(task));
        }
        sources.finish(document);
    }
    tasks
}

impl Context<'_> {
    fn check_task(&self, name: &str, raw: RawTask, document: &Document<'_>) -> Option<Task> {
        let root = Path::root();
        let policies = check_policies(&raw, &self.manifest.policies, document);
        let sla = check_sla(&raw, document);
        let limits = raw.limits.unwrap_or_default();
        check_limits(&limits, &root.key("limits"), document);
        let retry = raw.retry_policy.unwrap_or_default();
        check_retry(&retry, &root.key("retry_policy"), document);
        let worktree = raw.worktree_config.unwrap_or_default();
        check_worktree(&worktree, &root.key("worktree_config"), document);
        check_temperature(raw.temperature, document);
        check_range(raw.max_retries, 0..=MAX_RETRIES, &root.key("max_retries"), document);
        check_repeats(raw.tags.as_deref(), &root.key("tags"), document);
        let channels = &self.manifest.channels;
        channels.check_names(raw.notify.as_deref(), &root.key("notify"), document);
        let notify = channels.choose(raw.notify.as_deref().or(self.manifest.notify.as_deref()));

        let timezone = self.timezone(raw.timezone, document);
        let keys = ScheduleKeys {
            schedule: raw.schedule,
            jitter: raw.jitter,
            schedule_until: raw.schedule_until,
            schedule_count: raw.schedule_count,
        };
        let schedule =
            check_schedule(name, keys, timezone.as_deref(), self.manifest.jitter, document);
        let persona = self.persona(raw.persona, document);
        let model = self.model(raw.model.as_deref(), persona.as_deref(), document);
        let fallback_model = self.fallback_model(raw.fallback_model.as_deref(), document);
        check_is_another(model.as_ref(), fallback_model.as_ref(), &raw.fallback_model, document);
        let script = self.script(name, model.as_ref(), "model", document);
        let script = script
            .or_else(|| self.script(name, fallback_model.as_ref(), "fallback_model", document));
        let prompt = check_prompt_text(raw.prompt, document);
        let system_prompt = self.system_prompt(raw.system_prompt, document);
        let repo = raw.workspace.unwrap_or_default().repo;
        let repo_at = root.key("workspace").key("repo");
        let repo = repo.map(|repo| check_repo(&repo, self.root, &repo_at, document));
        let has_schema = raw.output_schema.is_some();
        let output_schema = check_output_schema(raw.output_schema, document);
        let completion = check_completion(raw.completion, has_schema, document);
        let network = self.network(raw.allow_network.as_ref(), document);
        if let Some(network) = &network {
            let remembers = raw.instruction_self_improve.unwrap_or(false);
            check_required_tools(&completion.required_tools, network, remembers, document);
        }
        let tool_permissions = check_permissions(raw.tool_permissions, document);
        let persona = persona.and_then(|name| self.personas.valid.get(&name).cloned());
        let mut permissions = vec![("this task".to_owned(), &tool_permissions)];
        if let Some(persona) = &persona {
            permissions.push((format!("persona {}", persona.name), &persona.tool_permissions));
        }
        check_needed_tools(&completion, &permissions, document);
        let max_retries = raw.max_retries.or(self.manifest.max_retries);
        Some(Task {
            name: TaskName::new(name),
            description: raw.description,
            enabled: raw.enabled.unwrap_or(true),
            tags: raw.tags.unwrap_or_default(),
            owner: raw.owner,
            schedule,
            misfire: policies.misfire,
            overlap: policies.overlap,
            serialization_key: policies.serialization_key,
            priority: policies.priority,
            run_if: policies.run_if,
            park_after: policies.park_after,
            timezone: timezone?,
            persona,
            prompt: prompt?,
            system_prompt,
            model: model?,
            fallback_model,
            auto_compact: raw.auto_compact.or(self.manifest.auto_compact),
            temperature: raw.temperature,
            limits: resolve_limits(&limits, &self.manifest.limits),
            network: network.unwrap_or_default(),
            tool_permissions,
            remembers: raw.instruction_self_improve.unwrap_or(false),
            repeat_guard: raw.repeat_guard.unwrap_or(true),
            repo: repo.flatten(),
            worktree: resolve_worktree(&worktree, &self.manifest.worktree),
            retry: resolve_retry(max_retries, &retry, &self.manifest.retry),
            completion,
            output_schema,
            notify,
            sla,
            script,
        })
    }

    fn timezone(&self, own: Option<String>, document: &Document<'_>) -> Option<String> {
        match own {
            Some(zone) => check_zone(zone, &Path::root().key("timezone"), document).ok(),
            None => match &self.manifest.timezone {
                Given::Absent => Some("UTC".to_owned()),
                Given::Bad => None,
                Given::Good(zone) => Some(zone.clone()),
            },
        }
    }

    fn network(&self, own: Option<&RawNetwork>, document: &Document<'_>) -> Option<NetworkPolicy> {
        let at = Path::root().key("allow_network");
        match own {
            Some(raw) => self.manifest.network_bounds.policy(raw, &at, document),
            None if document.is_broken(&at) => None,
            None => self.manifest.network.clone(),
        }
    }

    /// The name of the task's persona; its own is looked up here, the default with the manifest.
    fn persona(&self, own: Option<String>, document: &Document<'_>) -> Option<String> {
        let Some(name) = own else { return self.manifest.persona.clone() };
        if let Some(finding) = self.personas.unknown(&name) {
            document.report(&Path::root().key("persona"), finding);
        }
        Some(name)
    }

    fn model(
        &self,
        own: Option<&str>,
        persona: Option<&str>,
        document: &Document<'_>,
    ) -> Option<ModelRef> {
        let at = Path::root().key("model");
        match check_model(own, &self.manifest.models, &at, document) {
            Given::Good(model) => return Some(model),
            Given::Bad => return None,
            Given::Absent => {}
        }
        let valid: Option<&Arc<Persona>> = persona.and_then(|name| self.personas.valid.get(name));
        if let Some(model) = valid.and_then(|persona| persona.model.clone()) {
            return Some(model);
        }
        match &self.manifest.model {
            Given::Good(model) => Some(model.clone()),
            Given::Bad => None,
            Given::Absent => {
                let state = persona.map(|name| self.personas.declared.get(name));
                if matches!(state, None | Some(Some(ModelState::Known))) {
                    let hint = "name a model here, in the persona or in the manifest's defaults";
                    document.report_missing(&Path::root(), "model", hint);
                }
                None
            }
        }
    }

    fn fallback_model(&self, own: Option<&str>, document: &Document<'_>) -> Option<ModelRef> {
        let at = Path::root().key("fallback_model");
        match check_model(own, &self.manifest.models, &at, document) {
            Given::Good(model) => Some(model),
            Given::Bad => None,
            Given::Absent => match &self.manifest.fallback_model {
                Given::Good(model) => Some(model.clone()),
                Given::Bad | Given::Absent => None,
            },
        }
    }

    fn script(
        &self,
        name: &str,
        model: Option<&ModelRef>,
        key: &str,
        document: &Document<'_>,
    ) -> Option<Arc<crate::bundle::Script>> {
        let provider = self.manifest.models.provider(&model?.provider)?;
        if provider.kind != ProviderKind::Scripted {
            return None;
        }
        if !self.scripts.declared.contains(name) {
            let file = format!("scripted/{name}.yaml");
            let message =
                format!("provider {:?} is scripted, and there is no {file}", provider.name);
            let finding = Finding::error("missing-file", message)
                .hint(format!("record a session in {file}, or choose another model"));
            document.report_key(&Path::root().key(key), finding);
        }
        self.scripts.valid.get(name).cloned()
    }

    fn system_prompt(&self, name: Option<String>, document: &Document<'_>) -> Option<String> {
        let name = name?;
        let at = Path::root().key("system_prompt");
        let Some(text) = self.system_prompts.get(&name) else {
            let known = self.system_prompts.keys().map(String::as_str);
            let hint = match name.strip_prefix("system_prompts/") {
                Some(short) if self.system_prompts.contains_key(short) => {
                    Some(format!("the path begins below system_prompts/: write {short}"))
                }
                _ => did_you_mean(&name, known),
            };
            let leaves = name.split('/').any(|part| part.is_empty() || part.starts_with('.'));
            let hint = hint.unwrap_or_else(|| {
                if leaves {
                    "write a file's path below system_prompts/, for example unattended.md"
                        .to_owned()
                } else {
                    format!("make the file system_prompts/{name}")
                }
            });
            let message = format!("system_prompts/ has no file {name:?}");
            document.report(&at, Finding::error("missing-file", message).hint(hint));
            return None;
        };
        text.clone()
    }
}

/// A task's own fallback model must be another one. An inherited one may be the same: it is of no use
/// to that task.
fn check_is_another(
    model: Option<&ModelRef>,
    fallback: Option<&ModelRef>,
    own: &Option<String>,
    document: &Document<'_>,
) {
    if let (Some(model), Some(fallback), Some(name)) = (model, fallback, own)
        && model == fallback
    {
        let message = format!("fallback_model {name:?} is the task's model");
        let finding = Finding::error("useless-key", message)
            .hint("name a model of another provider, or remove the key");
        document.report_key(&Path::root().key("fallback_model"), finding);
    }
}

fn check_temperature(temperature: Option<f64>, document: &Document<'_>) {
    let Some(value) = temperature.filter(|value| !(0.0..=2.0).contains(value)) else { return };
    let finding = Finding::error("invalid-value", format!("temperature {value} is out of range"));
    document.report(&Path::root().key("temperature"), finding.hint("write 0 to 2"));
}

fn check_prompt_text(prompt: Option<String>, document: &Document<'_>) -> Option<String> {
    let root = Path::root();
    let at = root.key("prompt");
    let Some(prompt) = prompt else {
        document.report_missing(&root, "prompt", "say what the model has to do");
        return None;
    };
    if prompt.trim().is_empty() {
        let finding = Finding::error("invalid-value", "the prompt is empty");
        document.report(&at, finding.hint("say what the model has to do"));
    } else {
        check_prompt(&prompt, &at, document);
    }
    Some(prompt)
}
