//! Problems for programs.

use serde_json::json;

use super::printable::printable;
use super::rules;
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
    let mut message = printable(&problem.message).into_owned();
    if let Some(hint) = &problem.hint {
        message.push_str("\nhint: ");
        message.push_str(&printable(hint));
    }
    format!(
        "::{command} file={},line={},endLine={},col={},endColumn={},title={}::{}\n",
        property(&printable(&problem.file)),
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
    let rules: Vec<_> = codes.iter().map(|code| rule(code)).collect();
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

fn rule(code: &str) -> serde_json::Value {
    json!({ "id": code, "shortDescription": { "text": rules::describe(code) } })
}

/// A path as RFC 3986 has it: all but unreserved characters and `/` as their bytes.
fn uri(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'-' | b'.' | b'_' | b'~' | b'/' => uri.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => uri.push(char::from(byte)),
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
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
            "artifactLocation": { "uri": uri(&problem.file) },
            "region": {
                "startLine": problem.line,
                "startColumn": problem.column,
                "endLine": problem.end_line,
                "endColumn": problem.end_column,
            },
        } }],
    })
}
