//! Problems for programs.

use serde_json::json;

use crate::bundle::{Loaded, Problem, Severity};

/// `{"commit", "problems"}`, the documented JSON.
pub(super) fn json(loaded: &Loaded) -> String {
    let commit = loaded.commit.as_ref().map(|commit| commit.as_str());
    format!("{:#}\n", json!({ "commit": commit, "problems": loaded.problems }))
}

/// Workflow commands, one line a problem.
pub(super) fn github(loaded: &Loaded) -> String {
    loaded.problems.iter().map(github_line).collect()
}

fn github_line(problem: &Problem) -> String {
    let command = match problem.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let mut message = problem.message.clone();
    if let Some(hint) = &problem.hint {
        message.push_str("\nhint: ");
        message.push_str(hint);
    }
    format!(
        "::{command} file={},line={},endLine={},col={},endColumn={},title={}::{}\n",
        property(&problem.file),
        problem.line,
        problem.end_line,
        problem.column,
        problem.end_column,
        property(problem.code),
        escape(&message),
    )
}

fn escape(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    escape(text).replace(':', "%3A").replace(',', "%2C")
}

/// SARIF 2.1.0.
pub(super) fn sarif(loaded: &Loaded) -> String {
    let mut codes: Vec<&str> = loaded.problems.iter().map(|problem| problem.code).collect();
    codes.sort_unstable();
    codes.dedup();
    let rules: Vec<_> = codes.iter().map(|code| json!({ "id": code })).collect();
    let results: Vec<_> = loaded.problems.iter().map(sarif_result).collect();
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "fleet",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            } },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    });
    format!("{log:#}\n")
}

fn sarif_result(problem: &Problem) -> serde_json::Value {
    let level = match problem.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let text = match &problem.hint {
        Some(hint) => format!("{} ({hint})", problem.message),
        None => problem.message.clone(),
    };
    json!({
        "ruleId": problem.code,
        "level": level,
        "message": { "text": text },
        "locations": [{ "physicalLocation": {
            "artifactLocation": { "uri": problem.file },
            "region": {
                "startLine": problem.line,
                "startColumn": problem.column,
                "endLine": problem.end_line,
                "endColumn": problem.end_column,
            },
        } }],
    })
}
