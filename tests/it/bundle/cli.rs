//! `fleet bundle` as it is typed.

use std::path::Path;
use std::process::{Command, Output};

use fleet::bundle::SchemaKind;
use serde_json::{Value, json};

use crate::env::{fleet_binary, git, repository, source_root};

pub fn fleet(dir: &Path, args: &[&str]) -> Output {
    Command::new(fleet_binary())
        .args(args)
        .current_dir(dir)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", dir)
        .env("FLEET_STATE_DIR", dir.join("state"))
        .output()
        .expect("fleet starts")
}

pub fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).expect("UTF-8")
}

pub fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).expect("UTF-8")
}

fn broken() -> String {
    source_root().join("tests/fixtures/bundles/broken").display().to_string()
}

#[test]
fn four_mistakes_are_shown_in_one_run() {
    let dir = tempfile::tempdir().expect("a directory");
    let output = fleet(dir.path(), &["bundle", "validate", "--worktree", &broken()]);
    assert_eq!((output.status.code(), stderr(&output)), (Some(1), ""));
    insta::assert_snapshot!("four_mistakes", stdout(&output));
}

#[test]
fn json_has_the_documented_shape() {
    let dir = tempfile::tempdir().expect("a directory");
    let args = ["bundle", "validate", "--worktree", "--format", "json", &broken()];
    let output = fleet(dir.path(), &args);
    let seen: Value = serde_json::from_str(stdout(&output)).expect("JSON");
    assert_eq!(
        seen["problems"][0],
        json!({
            "file": "tasks/report.yaml",
            "line": 2,
            "column": 11,
            "end_line": 2,
            "end_column": 23,
            "code": "invalid-schedule",
            "severity": "error",
            "message": "hour 25 is out of range",
            "hint": "hour goes from 0 to 23",
        })
    );
    assert_eq!((output.status.code(), &seen["commit"]), (Some(1), &Value::Null));
}

#[test]
fn github_and_sarif_name_the_same_place() {
    let dir = tempfile::tempdir().expect("a directory");
    let run = |format: &str| {
        let args = ["bundle", "validate", "--worktree", "--format", format, &broken()];
        stdout(&fleet(dir.path(), &args)).to_owned()
    };
    assert_eq!(
        run("github").lines().next(),
        Some(
            "::error file=tasks/report.yaml,line=2,endLine=2,col=11,endColumn=23,\
             title=invalid-schedule::hour 25 is out of range%0Ahint: hour goes from 0 to 23"
        )
    );
    let sarif: Value = serde_json::from_str(&run("sarif")).expect("JSON");
    let result = &sarif["runs"][0]["results"][0];
    assert_eq!(result["ruleId"], "invalid-schedule");
    assert_eq!(
        result["locations"][0]["physicalLocation"]["region"],
        json!({ "startLine": 2, "startColumn": 11, "endLine": 2, "endColumn": 23 })
    );
}

#[test]
fn a_pasted_key_is_never_shown() {
    let dir = tempfile::tempdir().expect("a directory");
    let key = format!("sk-{}", "a1B2".repeat(10));
    let bundle = dir.path().join("b");
    let manifest = format!("version: 1\nname: {key} # and {key}\n");
    repository(&bundle, &[("manifest.yaml", &manifest)]);
    for format in ["human", "json", "github", "sarif"] {
        let output = fleet(dir.path(), &["bundle", "validate", "b", "--format", format]);
        assert_eq!(output.status.code(), Some(1));
        assert!(stdout(&output).contains("this looks like an API key"), "{format}");
        assert!(!stdout(&output).contains("a1B2a1B2"), "{format}");
    }
}

#[test]
fn wrong_use_is_told_apart_from_problems() {
    let dir = tempfile::tempdir().expect("a directory");
    let code = |args: &[&str]| fleet(dir.path(), args).status.code();
    assert_eq!(code(&["bundle", "validate", "nowhere"]), Some(2));
    assert_eq!(code(&["bundle", "validate", "."]), Some(2));
    assert_eq!(code(&["bundle", "validate", "--format", "xml"]), Some(2));
    assert_eq!(code(&["bundle", "validate", "--worktree", "--rev", "HEAD"]), Some(2));
    git(dir.path(), &["init", "--quiet", "b"]);
    let output = fleet(dir.path(), &["bundle", "validate", "b"]);
    assert_eq!(
        (output.status.code(), stderr(&output)),
        (
            Some(2),
            "error: b has no commit yet\n  hint: commit your bundle first: git add -A && git commit\n"
        )
    );
}

#[test]
fn schemas_are_printed_and_written() {
    let dir = tempfile::tempdir().expect("a directory");
    let output = fleet(dir.path(), &["bundle", "schema", "task"]);
    assert_eq!(stdout(&output), SchemaKind::Task.text());
    let all: Value =
        serde_json::from_str(stdout(&fleet(dir.path(), &["bundle", "schema"]))).expect("JSON");
    assert_eq!(all.as_object().map(serde_json::Map::len), Some(SchemaKind::ALL.len()));
    fleet(dir.path(), &["bundle", "schema", "--out", "schemas"]);
    for kind in SchemaKind::ALL {
        let text = std::fs::read_to_string(dir.path().join("schemas").join(kind.file_name()));
        assert_eq!(text.expect("written"), kind.text());
    }
}

#[test]
fn file_names_have_no_power_over_terminals_and_formats() {
    let dir = tempfile::tempdir().expect("a directory");
    let bundle = dir.path().join("b");
    repository(
        &bundle,
        &[("manifest.yaml", "version: 1\nname: b\n"), ("tasks/a\u{1b}[2J\n ü%.txt", "")],
    );
    let shown = |format: &str| {
        let args = ["bundle", "validate", "--worktree", "b", "--format", format];
        stdout(&fleet(dir.path(), &args)).to_owned()
    };
    for format in ["human", "github"] {
        assert!(!shown(format).contains('\u{1b}'), "{format}");
    }
    assert!(shown("human").contains("--> tasks/a\\u{1b}[2J\\n ü%.txt"), "{}", shown("human"));
    assert_eq!(shown("github").lines().count(), 1);
    let sarif: Value = serde_json::from_str(&shown("sarif")).expect("JSON");
    let run = &sarif["runs"][0];
    assert_eq!(
        run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"],
        "tasks/a%1B%5B2J%0A%20%C3%BC%25.txt"
    );
    assert_eq!(
        run["tool"]["driver"]["rules"],
        json!([{ "id": "stray-file", "shortDescription": { "text": "A file that is never read" } }])
    );
}
