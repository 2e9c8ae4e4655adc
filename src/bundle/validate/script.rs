//! `scripted/<task>.yaml`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::file::Sources;
use super::limits::duration;
use super::range::check_range;
use crate::bundle::nearest::did_you_mean;
use crate::bundle::raw::{RawFault, RawScript, RawStop, RawToolCall, RawTurn, RawUsage};
use crate::bundle::yaml::{Document, Finding, Path};
use crate::bundle::{Script, ScriptFault, ScriptTurn};
use crate::run::NativeTool;

/// Of one answer; sums of many still fit.
const MAX_TOKENS: u64 = 1_000_000_000_000;

/// Of one answer.
const MAX_COST_USD: f64 = 1e6;

/// The recorded sessions by task.
#[derive(Debug, Default)]
pub(super) struct Scripts {
    pub(super) valid: BTreeMap<String, Arc<Script>>,
    /// Every task that has a file, valid or not.
    pub(super) declared: BTreeSet<String>,
}

/// Reads every session; one without a task is a warning.
pub(super) fn check(sources: &mut Sources<'_>) -> Scripts {
    let mut scripts = Scripts::default();
    for (name, file, text) in sources.named("scripted") {
        scripts.declared.insert(name.clone());
        let Some(text) = text else { continue };
        let mut document = Document::parse(file, text);
        if let Some(raw) = document.decode::<RawScript>() {
            let script = check_raw(&raw, &document);
            scripts.valid.insert(name.clone(), Arc::new(script));
        }
        sources.finish(document);
        if !sources.is_present(&format!("tasks/{name}.yaml")) {
            let message = format!("no task is named {name:?}: the session is never played");
            let finding = Finding::warning("unused-script", message);
            sources.report(file, finding.hint("rename it to its task, or remove it"));
        }
    }
    scripts
}

fn check_raw(raw: &RawScript, document: &Document<'_>) -> Script {
    let root = Path::root();
    if raw.turns.is_none() {
        document.report_missing(&root, "turns", "write at least one turn: turns: [{text: done}]");
    }
    if raw.turns.as_ref().is_some_and(Vec::is_empty) && !document.is_cut(&root.key("turns")) {
        let finding = Finding::error("invalid-value", "the session has no turns");
        document
            .report(&root.key("turns"), finding.hint("write at least one: turns: [{text: done}]"));
    }
    let turns = raw.turns.iter().flatten().enumerate();
    let turns: Vec<ScriptTurn> = turns
        .map(|(number, turn)| check_turn(turn, &root.key("turns").index(number), document))
        .collect();
    if let Some(from) = raw.loop_from
        && from >= turns.len()
        && raw.turns.is_some()
    {
        let message = format!("loop_from {from}: there are only {} turns", turns.len());
        let finding = Finding::error("invalid-value", message);
        document.report(&root.key("loop_from"), finding.hint("turns count from 0"));
    }
    Script { turns, loop_from: raw.loop_from }
}

fn check_turn(raw: &RawTurn, at: &Path, document: &Document<'_>) -> ScriptTurn {
    let calls = raw.tool_calls.iter().flatten().enumerate();
    let usage = raw.usage.clone().unwrap_or_default();
    check_usage(&usage, &at.key("usage"), document);
    ScriptTurn {
        text: raw.text.clone().unwrap_or_default(),
        tool_calls: calls
            .filter_map(|(number, call)| {
                check_call(call, &at.key("tool_calls").index(number), document)
            })
            .collect(),
        prompt_tokens: usage.prompt_tokens.unwrap_or(0),
        cached_tokens: usage.cached_tokens.unwrap_or(0),
        completion_tokens: usage.completion_tokens.unwrap_or(0),
        cost_usd: usage.cost_usd,
        delay: duration(raw.delay.as_ref(), &at.key("delay"), document).unwrap_or_default(),
        stop: raw.stop.map(|stop| stop_word(stop).to_owned()),
        fault: raw.fault.as_ref().and_then(|raw| check_fault(raw, &at.key("fault"), document)),
    }
}

fn check_usage(raw: &RawUsage, at: &Path, document: &Document<'_>) {
    check_range(raw.prompt_tokens, 0..=MAX_TOKENS, &at.key("prompt_tokens"), document);
    check_range(raw.cached_tokens, 0..=MAX_TOKENS, &at.key("cached_tokens"), document);
    check_range(raw.completion_tokens, 0..=MAX_TOKENS, &at.key("completion_tokens"), document);
    check_range(raw.cost_usd, 0.0..=MAX_COST_USD, &at.key("cost_usd"), document);
    let (prompt, cached) = (raw.prompt_tokens.unwrap_or(0), raw.cached_tokens.unwrap_or(0));
    if cached > prompt && !document.is_broken(&at.key("prompt_tokens")) {
        let message = format!("{cached} cached tokens are more than the {prompt} of the prompt");
        let finding = Finding::error("invalid-value", message)
            .hint("prompt_tokens counts the cached ones too: make it at least as large");
        document.report(&at.key("cached_tokens"), finding);
    }
}

fn stop_word(stop: RawStop) -> &'static str {
    match stop {
        RawStop::EndTurn => "end_turn",
        RawStop::ToolCalls => "tool_calls",
        RawStop::Length => "length",
    }
}

fn check_call(raw: &RawToolCall, at: &Path, document: &Document<'_>) -> Option<(String, String)> {
    let Some(name) = &raw.name else {
        document.report_missing(at, "name", "name the tool, for example bash");
        return None;
    };
    if NativeTool::parse(name).is_none() {
        // A session may play a model that calls what is not there.
        let names = NativeTool::ALL.map(NativeTool::as_str);
        let hint = did_you_mean(name, names)
            .unwrap_or_else(|| format!("fleet's tools are {}", names.join(", ")));
        let finding = Finding::warning("unknown-tool", format!("no tool is named {name:?}"));
        document.report(&at.key("name"), finding.hint(hint));
    }
    let arguments = match raw.arguments.as_ref() {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(mapping @ Value::Object(_)) => mapping.to_string(),
        Some(_) => {
            let finding = Finding::error("wrong-type", "arguments are a mapping or text");
            document.report(&at.key("arguments"), finding);
            return None;
        }
    };
    Some((name.clone(), arguments))
}

fn check_fault(raw: &RawFault, at: &Path, document: &Document<'_>) -> Option<ScriptFault> {
    let retry_after = duration(raw.retry_after.as_ref(), &at.key("retry_after"), document);
    if raw.times == Some(0) {
        let finding = Finding::error("invalid-value", "a fault that occurs 0 times never occurs");
        document.report(&at.key("times"), finding.hint("write 1 or more, or remove the fault"));
    }
    let Some(status) = raw.status else {
        document.report_missing(at, "status", "write an HTTP status, for example 503");
        return None;
    };
    if !(400..=599).contains(&status) {
        let finding = Finding::error("invalid-value", format!("status {status} is not a fault"));
        document.report(&at.key("status"), finding.hint("write 400 to 599"));
    }
    Some(ScriptFault {
        status,
        message: raw.message.clone().unwrap_or_else(|| format!("HTTP {status}")),
        retry_after,
        times: raw.times.unwrap_or(1),
    })
}
