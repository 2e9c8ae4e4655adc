//! `completion`: checks that a run can carry out, and at least one.

use super::range::check_repeats;
use crate::bundle::Completion;
use crate::bundle::nearest::did_you_mean;
use crate::bundle::raw::RawCompletion;
use crate::bundle::yaml::{Document, Finding, Path};
use crate::run::NativeTool;

/// The checks; mistakes are reported where they stand.
pub(super) fn check_completion(
    raw: Option<RawCompletion>,
    has_schema: bool,
    document: &Document<'_>,
) -> Completion {
    let at = Path::root().key("completion");
    let raw = raw.unwrap_or_default();
    check_repeats(raw.required_tools.as_deref(), &at.key("required_tools"), document);
    check_repeats(raw.artifacts.as_deref(), &at.key("artifacts"), document);
    let completion = Completion {
        required_tools: raw.required_tools.unwrap_or_default(),
        artifacts: raw.artifacts.unwrap_or_default(),
        shell: raw.shell,
    };
    check_tools(&completion.required_tools, &at.key("required_tools"), document);
    for (number, path) in completion.artifacts.iter().enumerate() {
        if let Err(finding) = check_artifact(path) {
            document.report(&at.key("artifacts").index(number), finding);
        }
    }
    if completion.shell.as_deref().is_some_and(|shell| shell.trim().is_empty()) {
        let finding = Finding::error("invalid-value", "the shell check is empty");
        document.report(&at.key("shell"), finding.hint("write a command, or remove the key"));
    }
    if completion == Completion::default() && !has_schema && !document.is_cut(&at) {
        let message = "without a completion check every run ends as unverified";
        let finding = Finding::warning("no-completion", message)
            .hint("add completion: with required_tools, artifacts or shell, or an output_schema");
        document.report_key(&at, finding);
    }
    completion
}

fn check_tools(tools: &[String], at: &Path, document: &Document<'_>) {
    for (number, tool) in tools.iter().enumerate() {
        if NativeTool::parse(tool).is_none() {
            let names = NativeTool::ALL.map(NativeTool::as_str);
            let hint = did_you_mean(tool, names)
                .unwrap_or_else(|| format!("fleet's tools are {}", names.join(", ")));
            let finding = Finding::error("unknown-tool", format!("no tool is named {tool:?}"));
            document.report(&at.index(number), finding.hint(hint));
        }
    }
}

/// Artifacts are compared by their path: there is one way to write it.
fn check_artifact(path: &str) -> Result<(), Finding> {
    let example = "write a relative path without .., for example reports/today.md";
    if path.starts_with('/') || path.split('/').any(|part| part == "..") || path.trim().is_empty() {
        let message = format!("{path:?} is not a path inside the workspace");
        return Err(Finding::error("path-outside", message).hint(example));
    }
    if path.contains(char::is_control) {
        let message = format!("{path:?} holds a control character");
        return Err(Finding::error("invalid-value", message).hint(example));
    }
    let parts: Vec<&str> =
        path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let plain = parts.join("/");
    if plain == path {
        return Ok(());
    }
    let hint = if plain.is_empty() { example.to_owned() } else { format!("write {plain}") };
    let message = format!("{path:?} is not the plain path of a file");
    Err(Finding::error("invalid-value", message).hint(hint))
}
