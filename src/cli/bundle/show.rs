//! What a valid bundle holds.

use comfy_table::Table;
use comfy_table::presets::NOTHING;
use serde_json::json;

use crate::bundle::{Bundle, ProviderKind, Task};

/// A table of tasks and the names of the rest.
pub(super) fn text(bundle: &Bundle) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING);
    table.set_header(["TASK", "ENABLED", "SCHEDULE", "ZONE", "PERSONA", "MODEL"]);
    for task in bundle.tasks.values() {
        table.add_row([
            task.name.to_string(),
            if task.enabled { "yes" } else { "no" }.to_owned(),
            expression(task).unwrap_or("by hand").to_owned(),
            task.timezone.clone(),
            task.persona.as_ref().map_or("-", |persona| &persona.name).to_owned(),
            format!("{}/{}", task.model.provider, task.model.model),
        ]);
    }
    let names = |names: Vec<&str>| match names.is_empty() {
        true => "none".to_owned(),
        false => names.join(", "),
    };
    format!(
        "bundle {} at {}\n\n{}\n\npersonas: {}\nproviders: {}\n",
        bundle.name,
        bundle.commit,
        table.trim_fmt(),
        names(bundle.personas.keys().map(String::as_str).collect()),
        names(bundle.providers.keys().map(String::as_str).collect()),
    )
}

/// The same as JSON.
pub(super) fn json(bundle: &Bundle) -> String {
    let tasks: Vec<_> = bundle.tasks.values().map(|task| task_json(task)).collect();
    let personas: Vec<_> = bundle
        .personas
        .values()
        .map(|persona| json!({ "name": persona.name, "description": persona.description }))
        .collect();
    let providers: Vec<_> = bundle
        .providers
        .values()
        .map(|provider| {
            let kind = match provider.kind {
                ProviderKind::Http { service, .. } => service.as_str(),
                ProviderKind::Scripted => "scripted",
            };
            json!({ "name": provider.name, "type": kind, "models": provider.models })
        })
        .collect();
    let bundle = json!({
        "commit": bundle.commit,
        "name": bundle.name,
        "tasks": tasks,
        "personas": personas,
        "providers": providers,
    });
    format!("{bundle:#}\n")
}

fn task_json(task: &Task) -> serde_json::Value {
    json!({
        "name": task.name,
        "description": task.description,
        "enabled": task.enabled,
        "tags": task.tags,
        "owner": task.owner,
        "schedule": expression(task),
        "timezone": task.timezone,
        "persona": task.persona.as_ref().map(|persona| &persona.name),
        "model": format!("{}/{}", task.model.provider, task.model.model),
        "max_cost_usd": task.limits.max_cost.map(|cost| cost.as_usd()),
        "max_total_tokens": task.limits.max_total_tokens,
        "max_iterations": task.limits.max_iterations,
        "repo": task.repo,
    })
}

fn expression(task: &Task) -> Option<&str> {
    task.schedule.as_ref().map(|schedule| schedule.schedule.expression())
}
