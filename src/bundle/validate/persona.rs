//! `personas/<name>.yaml`.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::file::Sources;
use super::manifest::{Given, Manifest, check_model};
use super::names::check_name;
use super::permissions::check_permissions;
use crate::bundle::Persona;
use crate::bundle::nearest::did_you_mean;
use crate::bundle::raw::RawPersona;
use crate::bundle::yaml::{Document, Finding, Path};

/// The personas, valid or not.
#[derive(Debug, Default)]
pub(super) struct Personas {
    pub(super) valid: BTreeMap<String, Arc<Persona>>,
    /// Every name that has a file, and whether its model was given in vain.
    pub(super) declared: BTreeMap<String, ModelState>,
}

/// Whether a persona's tasks may lack a model because of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ModelState {
    Known,
    Bad,
}

impl Personas {
    /// The problem with a name that no file has.
    pub(super) fn unknown(&self, name: &str) -> Option<Finding> {
        unknown_persona(name, self.declared.keys().map(String::as_str))
    }
}

/// The problem with a name that is not among the declared ones.
pub(super) fn unknown_persona<'n>(
    name: &str,
    declared: impl Iterator<Item = &'n str> + Clone,
) -> Option<Finding> {
    if declared.clone().any(|declared| declared == name) {
        return None;
    }
    let plain = name.strip_prefix("personas/").unwrap_or(name);
    let plain = plain.strip_suffix(".yaml").unwrap_or(plain);
    let hint = if plain != name && declared.clone().any(|declared| declared == plain) {
        format!("write the name alone: {plain}")
    } else if let Some(hint) = did_you_mean(name, declared) {
        hint
    } else if check_name(name, "a persona").is_ok() {
        format!("make the file personas/{name}.yaml")
    } else {
        "write the name of a file in personas/ without .yaml".to_owned()
    };
    Some(Finding::error("unknown-persona", format!("no persona is named {name:?}")).hint(hint))
}

/// Reads the personas.
pub(super) fn check(sources: &mut Sources<'_>, manifest: &Manifest) -> Personas {
    let mut personas = Personas::default();
    for (name, file, text) in sources.named("personas") {
        personas.declared.insert(name.clone(), ModelState::Bad);
        let Some(text) = text else { continue };
        let mut document = Document::parse(file, text);
        if let Some(raw) = document.decode::<RawPersona>() {
            let (persona, model) = check_raw(&name, raw, manifest, &document);
            personas.declared.insert(name.clone(), model);
            personas.valid.extend(persona.map(|persona| (name, Arc::new(persona))));
        }
        sources.finish(document);
    }
    personas
}

fn check_raw(
    name: &str,
    raw: RawPersona,
    manifest: &Manifest,
    document: &Document<'_>,
) -> (Option<Persona>, ModelState) {
    let root = Path::root();
    let model = check_model(raw.model.as_deref(), &manifest.models, &root.key("model"), document);
    let (model, state) = match model {
        Given::Absent => (None, ModelState::Known),
        Given::Good(model) => (Some(model), ModelState::Known),
        Given::Bad => (None, ModelState::Bad),
    };
    let instructions = match raw.instructions {
        Some(text) if text.trim().is_empty() => {
            let finding = Finding::error("invalid-value", "instructions are empty");
            document.report(&root.key("instructions"), finding.hint("say who the persona is"));
            None
        }
        Some(text) => Some(text),
        None => {
            document.report_missing(&root, "instructions", "say who the persona is");
            None
        }
    };
    let tool_permissions = check_permissions(raw.tool_permissions, document);
    let persona = instructions.map(|instructions| Persona {
        name: name.to_owned(),
        description: raw.description,
        instructions,
        model,
        tool_permissions,
    });
    (persona, state)
}
