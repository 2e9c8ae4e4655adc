//! Values that only a run would refuse are problems of the bundle.

use fleet::bundle::Severity;

use super::{MANIFEST, NO_COMPLETION, SCRIPT, check, check_task, hints, load_files};

const NONE: [&str; 0] = [];

#[test]
fn limits_of_a_container_have_a_least_and_a_most() {
    let task = |limits: &str| check_task(&format!("prompt: x\nlimits:\n  sandbox: {limits}\n"));
    assert_eq!(task("{memory_mb: 64, cpus: 0.1, pids: 16, disk_mb: 16, nofile: 64}"), NONE);
    assert_eq!(task("{memory_mb: 1048576, cpus: 1024, pids: 1000000, disk_mb: 16777216}"), NONE);
    assert_eq!(
        task("{memory_mb: 63, cpus: 0.05, pids: 15, disk_mb: 0}"),
        [
            "tasks/t.yaml:3:24 invalid-value: limits.sandbox.memory_mb: 63 is out of range",
            "tasks/t.yaml:3:34 invalid-value: limits.sandbox.cpus: 0.05 is out of range",
            "tasks/t.yaml:3:46 invalid-value: limits.sandbox.pids: 15 is out of range",
            "tasks/t.yaml:3:59 invalid-value: limits.sandbox.disk_mb: 0 is out of range",
        ]
    );
    assert_eq!(
        task("{memory_mb: 1048577, cpus: 1025, pids: 9999999999, disk_mb: 16777217}"),
        [
            "tasks/t.yaml:3:24 invalid-value: limits.sandbox.memory_mb: 1048577 is out of range",
            "tasks/t.yaml:3:39 invalid-value: limits.sandbox.cpus: 1025 is out of range",
            "tasks/t.yaml:3:51 invalid-value: limits.sandbox.pids: 9999999999 is out of range",
            "tasks/t.yaml:3:72 invalid-value: limits.sandbox.disk_mb: 16777217 is out of range",
        ]
    );
    assert_eq!(task("{nofile: 1048576}"), NONE);
    assert_eq!(
        [task("{nofile: 63}"), task("{nofile: 1048577}")].concat(),
        [
            "tasks/t.yaml:3:21 invalid-value: limits.sandbox.nofile: 63 is out of range",
            "tasks/t.yaml:3:21 invalid-value: limits.sandbox.nofile: 1048577 is out of range",
        ]
    );
    let task = "prompt: x\nlimits: {sandbox: {pids: 9999999999}}\n";
    assert_eq!(
        hints(&[("tasks/t.yaml", task), ("scripted/t.yaml", SCRIPT)]),
        [Some("write 16 to 1000000".to_owned())]
    );
}

#[test]
fn waits_and_retries_end_some_day() {
    let task = "prompt: x\nmax_retries: 101\n\
                worktree_config: {cleanup_delay_seconds: 18446744073709551615}\n";
    assert_eq!(
        check_task(task),
        [
            "tasks/t.yaml:2:14 invalid-value: max_retries: 101 is out of range",
            "tasks/t.yaml:3:42 invalid-value: worktree_config.cleanup_delay_seconds: \
             18446744073709551615 is out of range",
        ]
    );
    let task = "prompt: x\nmax_retries: 100\nworktree_config: {cleanup_delay_seconds: 2592000}\n";
    assert_eq!(check_task(task), NONE);
}

#[test]
fn images_are_names_and_runtimes_are_known() {
    let manifest = |image: &str, runtime: &str| {
        let sandbox = format!("sandbox:\n  image: \"{image}\"\n  runtime: {runtime}\n");
        check(&[("manifest.yaml", &format!("{MANIFEST}{sandbox}"))])
    };
    let digest = format!("sha256:{}", "0a".repeat(32));
    let images = ["localhost/fleet-sandbox", "HOST:5000/a/b_c:V1.0", "python", &digest];
    for image in images {
        assert_eq!(manifest(image, "runsc"), NONE, "{image}");
    }
    assert_eq!(manifest(&format!("a/b:1@{digest}"), "crun"), NONE);
    for image in ["", "-v", "a b", "a/B", "a//b", "a:", "a\\nb"] {
        let seen = manifest(image, "runc");
        assert_eq!(seen.len(), 1, "{image:?} {seen:?}");
        assert!(seen[0].starts_with("manifest.yaml:6:10 invalid-value: "), "{seen:?}");
    }
    assert_eq!(
        manifest("python", "youki"),
        ["manifest.yaml:7:12 unsupported-runtime: the OCI runtime \"youki\" is not known"]
    );
}

#[test]
fn artifacts_are_written_in_one_way() {
    let task = "prompt: x\ncompletion:\n  artifacts: [\".\", ./a, a//b, a/, \"a\\0b\", a/b.md]\n";
    let files = [("tasks/t.yaml", task), ("scripted/t.yaml", SCRIPT)];
    assert_eq!(
        check(&files),
        [
            "tasks/t.yaml:3:15 invalid-value: \".\" is not the plain path of a file",
            "tasks/t.yaml:3:20 invalid-value: \"./a\" is not the plain path of a file",
            "tasks/t.yaml:3:25 invalid-value: \"a//b\" is not the plain path of a file",
            "tasks/t.yaml:3:31 invalid-value: \"a/\" is not the plain path of a file",
            "tasks/t.yaml:3:35 invalid-value: \"a\\0b\" holds a control character",
        ]
    );
    assert_eq!(hints(&files)[2], Some("write a/b".to_owned()));
}

#[test]
fn branch_prefixes_are_neither_empty_nor_full_references() {
    let task = |prefix: &str| {
        check_task(&format!("prompt: x\nworktree_config:\n  branch_prefix: \"{prefix}\"\n"))
    };
    let refused = |prefix: &str| {
        vec![format!("tasks/t.yaml:3:18 invalid-branch: {prefix:?} cannot begin a branch's name")]
    };
    assert_eq!([task(""), task("refs/heads/x-")], [refused(""), refused("refs/heads/x-")]);
    assert_eq!(task("count/"), NONE);
}

#[test]
fn prices_and_windows_are_believable() {
    let manifest = "version: 1\nname: \" \"\nproviders:\n\
        - {name: a, type: openai, base_url: \"https://a/v1\", models: [m, n, m], context_window_tokens: 999}\n\
        - {name: b, type: scripted, context_window_tokens: 100000001}\n\
        pricing: {fallback: {input_per_million: 1, output_per_million: 1000001}}\n\
        defaults: {max_retries: 101}\n";
    assert_eq!(
        check(&[("manifest.yaml", manifest)]),
        [
            "manifest.yaml:2:7 invalid-value: the bundle's name is empty",
            "manifest.yaml:4:68 ?duplicate-entry: providers[0].models: \"m\" is listed twice",
            "manifest.yaml:4:95 invalid-value: providers[0].context_window_tokens: 999 is out of range",
            "manifest.yaml:5:52 invalid-value: providers[1].context_window_tokens: 100000001 is out of \
             range",
            "manifest.yaml:6:64 invalid-value: pricing.fallback.output_per_million: 1000001 is out of \
             range",
            "manifest.yaml:7:25 invalid-value: defaults.max_retries: 101 is out of range",
        ]
    );
}

#[test]
fn what_a_session_consumes_is_believable() {
    let script = "turns:\n\
        - usage: {prompt_tokens: 1000000000001, completion_tokens: 1, cost_usd: 1000001}\n\
        - usage: {prompt_tokens: 10, cached_tokens: 11}\n";
    assert_eq!(
        check(&[("tasks/t.yaml", "prompt: x\n"), ("scripted/t.yaml", script)]),
        [
            "scripted/t.yaml:2:26 invalid-value: turns[0].usage.prompt_tokens: 1000000000001 is out of \
             range",
            "scripted/t.yaml:2:73 invalid-value: turns[0].usage.cost_usd: 1000001 is out of range",
            "scripted/t.yaml:3:45 invalid-value: 11 cached tokens are more than the 10 of the prompt",
        ]
    );
    assert_eq!(
        check(&[("tasks/t.yaml", "prompt: x\n"), ("scripted/t.yaml", "turns: []\n")]),
        ["scripted/t.yaml:1:8 invalid-value: the session has no turns"]
    );
}

#[test]
fn repeated_entries_are_warnings() {
    let task = "prompt: x\ntags: [a, b, a]\nretry_policy: {retry_on: [unverified, unverified]}\n";
    assert_eq!(
        check_task(task),
        [
            "tasks/t.yaml:2:14 ?duplicate-entry: tags: \"a\" is listed twice",
            "tasks/t.yaml:3:39 ?duplicate-entry: retry_policy.retry_on: \"unverified\" is listed twice",
        ]
    );
}

#[test]
fn a_task_without_a_completion_check_is_warned_of_its_end() {
    let seen = |task: &str| -> Vec<(u32, Severity, String)> {
        let files = [("tasks/t.yaml", task.as_bytes()), ("scripted/t.yaml", SCRIPT.as_bytes())];
        let problems = load_files(&files).problems.into_iter();
        let found = problems.filter(|problem| problem.code == NO_COMPLETION);
        found.map(|problem| (problem.line, problem.severity, problem.message)).collect()
    };
    let warning = |line| {
        let message = "without a completion check every run ends as unverified".to_owned();
        vec![(line, Severity::Warning, message)]
    };
    assert_eq!(seen("prompt: x\n"), warning(1));
    assert_eq!(seen("prompt: x\ncompletion: {artifacts: []}\n"), warning(2));
    assert_eq!(seen("prompt: x\ncompletion: {shell: \"true\"}\n"), []);
    assert_eq!(
        seen("prompt: x\ncompletion: {required_tools: [3]}\n"),
        [],
        "that is reported already"
    );
}
