//! `tool_permissions` of personas and tasks, and the form of answers.

use super::{check, check_task, hints};

const SCRIPT: (&str, &str) = ("scripted/t.yaml", super::SCRIPT);

#[test]
fn patterns_that_match_nothing_and_needs_that_are_refused_are_told_at_their_place() {
    assert_eq!(
        check_task(
            "prompt: x\ntool_permissions:\n  allow: [bsh, 'mcp:files', bash, bash]\n  deny: [bash, 'b*']\n"
        ),
        [
            "tasks/t.yaml:3:11 unknown-tool: no tool is named \"bsh\"",
            "tasks/t.yaml:3:16 invalid-value: \"mcp:files\" is no pattern of tools: it does not name a server and a tool",
            "tasks/t.yaml:3:29 ?useless-entry: bash is allowed and denied: it is denied",
            "tasks/t.yaml:3:35 ?duplicate-entry: tool_permissions.allow: \"bash\" is listed twice",
            "tasks/t.yaml:3:35 ?useless-entry: bash is allowed and denied: it is denied",
            "tasks/t.yaml:4:16 invalid-value: \"b*\" is no pattern of tools: a * stands alone or at the end, after a /",
        ]
    );
    let persona = "instructions: x\ntool_permissions: {deny: [publish_artifact]}\n";
    let task = "prompt: x\npersona: p\ntool_permissions: {allow: [view_file]}\ncompletion: {required_tools: [bash], artifacts: [a]}\n";
    let files = [("personas/p.yaml", persona), ("tasks/t.yaml", task), SCRIPT];
    assert_eq!(
        check(&files),
        [
            "tasks/t.yaml:4:31 tool-not-offered: bash is not permitted: in this task, tool_permissions.allow does not list it",
            "tasks/t.yaml:4:49 tool-not-offered: publish_artifact is not permitted: in this task, tool_permissions.allow does not list it",
        ]
    );
    let task = "prompt: x\npersona: p\ncompletion: {artifacts: [a]}\n";
    let files = [("personas/p.yaml", persona), ("tasks/t.yaml", task), SCRIPT];
    assert_eq!(
        check(&files),
        [
            "tasks/t.yaml:3:25 tool-not-offered: publish_artifact is not permitted: in persona p, tool_permissions.deny lists publish_artifact"
        ]
    );
    let hint = hints(&[("tasks/t.yaml", "prompt: x\ntool_permissions: {deny: [bsh]}\n"), SCRIPT]);
    assert_eq!(hint, [Some("did you mean \"bash\"?".to_owned())]);
}

#[test]
fn lists_of_a_persona_are_checked_where_they_stand() {
    let persona = "instructions: x\ntool_permissions: {allow: [web_fech], denny: []}\n";
    let problems = check(&[("personas/p.yaml", persona)]);
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(
        problems.iter().any(|line| line.contains("no tool is named \"web_fech\"")),
        "{problems:?}"
    );
    assert!(problems.iter().any(|line| line.contains("denny")), "{problems:?}");
}

#[test]
fn a_value_that_is_no_schema_is_told_where_it_is_wrong() {
    assert_eq!(
        check_task("prompt: x\noutput_schema:\n  properties:\n    rows: {type: integr}\n").len(),
        1
    );
    let problems =
        check_task("prompt: x\noutput_schema:\n  properties:\n    rows: {type: integr}\n");
    assert!(
        problems[0].starts_with("tasks/t.yaml:4:18 invalid-schema: this is no JSON Schema: "),
        "{problems:?}"
    );
    assert_eq!(check_task("prompt: x\noutput_schema: {type: object}\n"), [""; 0]);
    let remote = check_task("prompt: x\noutput_schema: {$ref: 'https://example.org/s.json'}\n");
    assert_eq!(remote.len(), 1, "{remote:?}");
}
