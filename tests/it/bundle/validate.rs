//! Each mistake by its place, code and words; each mistake once.

use fleet::bundle::{Revision, load};

use super::{MANIFEST, SCRIPT, check, check_task, hints, lines, load_files, write};
use crate::env::{git, repository};

const NONE: [&str; 0] = [];

#[test]
fn every_mistake_of_a_file_is_found_in_one_reading() {
    let task = "schedule: \"0 25 * * *\"\n\
                tag: [x]\n\
                enabled: yes\n\
                prompt: hi\n\
                prompt: again\n\
                persona: nobody\n\
                tags: [a, {b: c}, 3]\n\
                limits: {max_total_tokens: 017, max_cost_usd: -1}\n\
                completion: {required_tools: [bsh, bash], artifacts: [../x, ok.md]}\n\
                retry_policy: {retry_on: [cost_celing, panic], initial_delay: 5}\n";
    assert_eq!(
        check_task(task),
        [
            "tasks/t.yaml:1:11 invalid-schedule: hour 25 is out of range",
            "tasks/t.yaml:2:1 unknown-key: unknown key \"tag\"",
            "tasks/t.yaml:3:10 wrong-type: enabled: the text \"yes\" is not true or false",
            "tasks/t.yaml:5:1 duplicate-key: duplicate key \"prompt\": first on line 4, again on line 5",
            "tasks/t.yaml:6:10 unknown-persona: no persona is named \"nobody\"",
            "tasks/t.yaml:7:11 wrong-type: tags[1]: a mapping is not text",
            "tasks/t.yaml:7:19 wrong-type: tags[2]: the number 3 is not text",
            "tasks/t.yaml:8:28 wrong-type: limits.max_total_tokens: the text \"017\" is not a whole \
             number, 0 or more",
            "tasks/t.yaml:8:47 invalid-value: limits.max_cost_usd: -1 is negative",
            "tasks/t.yaml:9:31 unknown-tool: no tool is named \"bsh\"",
            "tasks/t.yaml:9:55 path-outside: \"../x\" is not a path inside the workspace",
            "tasks/t.yaml:10:27 unknown-outcome: \"cost_celing\" is not an outcome class",
            "tasks/t.yaml:10:40 invalid-value: panic is never tried again",
            "tasks/t.yaml:10:63 wrong-type: retry_policy.initial_delay: the number 5 is not a \
             duration with its unit, such as 90s or 4h",
        ]
    );
}

#[test]
fn a_misspelled_required_key_is_one_problem() {
    assert_eq!(check_task("promt: hi\n"), ["tasks/t.yaml:1:1 unknown-key: unknown key \"promt\""]);
    assert_eq!(
        hints(&[("tasks/t.yaml", "promt: hi\n"), ("scripted/t.yaml", SCRIPT)]),
        [Some("did you mean \"prompt\"?".to_owned())]
    );
}

#[test]
fn what_follows_from_a_reported_mistake_is_not_reported_again() {
    let manifest = "version: 1\nname: test\nproviders: [{name: scripted, typ: scripted}]\n\
                    defaults: {model: scripted/session, persona: p, timezone: Mars}\n";
    let seen = check(&[
        ("manifest.yaml", manifest),
        ("personas/p.yaml", "instructions: [\n"),
        ("tasks/a.yaml", "prompt: hi\n"),
        ("tasks/b.yaml", "prompt: hi\npersona: p\n"),
    ]);
    assert_eq!(
        seen,
        [
            "manifest.yaml:3:30 unknown-key: unknown key \"typ\"",
            "manifest.yaml:4:59 unknown-timezone: unknown time zone \"Mars\"",
            "personas/p.yaml:1:15 yaml-syntax: this is not YAML: unclosed bracket '['",
        ]
    );
}

#[test]
fn unquoted_schedules_are_named_with_their_line_and_the_way_out() {
    let files = [("tasks/a.yaml", "prompt: x\nschedule: */5 * * * *\n")];
    assert_eq!(
        check(&files),
        [
            "tasks/a.yaml:2:11 yaml-syntax: this is not YAML: while parsing node, found unknown anchor"
        ]
    );
    assert_eq!(hints(&files), [Some("put the value in quotes: \"*/5 * * * *\"".to_owned())]);
    let files = [("tasks/a.yaml", "prompt: x\nschedule: @daily\n")];
    assert_eq!(
        check(&files),
        ["tasks/a.yaml:2:11 yaml-syntax: this is not YAML: unexpected character: `@'"]
    );
    assert_eq!(hints(&files), [Some("put the value in quotes: \"@daily\"".to_owned())]);
}

#[test]
fn byte_order_mark_and_windows_line_ends_are_read() {
    let task = b"\xEF\xBB\xBFprompt: |\r\n  one\r\n  two\r\ntags: [a]\r\n";
    let loaded = load_files(&[("tasks/t.yaml", task), ("scripted/t.yaml", SCRIPT.as_bytes())]);
    assert_eq!(lines(&loaded.problems), NONE);
    let bundle = loaded.bundle.expect("a bundle");
    let task = bundle.tasks.values().next().expect("a task");
    assert_eq!((task.prompt.as_str(), task.tags.as_slice()), ("one\ntwo\n", &["a".to_owned()][..]));
}

#[test]
fn other_encodings_are_named_with_the_file() {
    let wide: Vec<u8> = "prompt: x\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let mut marked = vec![0xFF, 0xFE];
    marked.extend(&wide);
    let loaded = load_files(&[
        ("tasks/a.yaml", &wide),
        ("tasks/b.yaml", &marked),
        ("tasks/c.yaml", b"description: ok\nprompt: caf\xE9\n"),
        ("system_prompts/d.md", b"\xE9t\xE9"),
    ]);
    assert_eq!(
        lines(&loaded.problems),
        [
            "system_prompts/d.md:1:1 encoding: the file is probably ISO-8859-1, not UTF-8",
            "tasks/a.yaml:1:1 encoding: the file is UTF-16LE, not UTF-8",
            "tasks/b.yaml:1:1 encoding: the file is UTF-16, not UTF-8",
            "tasks/c.yaml:2:12 encoding: the file is probably ISO-8859-1, not UTF-8",
        ]
    );
}

#[test]
fn merge_keys_and_tags_are_refused_by_name_and_the_rest_is_still_checked() {
    let task = "base: &b {max_cost_usd: 1}\nlimits:\n  <<: *b\n  pids: 3\nprompt: !env x\n";
    assert_eq!(
        check_task(task),
        [
            "tasks/t.yaml:1:1 unknown-key: unknown key \"base\"",
            "tasks/t.yaml:3:3 merge-key: the merge key \"<<\" is not part of a bundle",
            "tasks/t.yaml:4:3 unknown-key: unknown key \"pids\"",
            "tasks/t.yaml:5:14 yaml-tag: the tag \"!env\" is not part of a bundle",
        ]
    );
}

#[test]
fn values_that_look_like_numbers_or_booleans_say_the_accepted_form() {
    let values = ["017", "1_000", "1:30", "on", "0x10", "2.5", "-1", "null"];
    let seen: Vec<Vec<String>> = values
        .map(|value| check_task(&format!("prompt: x\nlimits: {{max_iterations: {value}}}\n")))
        .into();
    let text = |value: &str| {
        vec![format!(
            "tasks/t.yaml:2:26 wrong-type: limits.max_iterations: {value} is not a whole number, 0 or \
             more"
        )]
    };
    assert_eq!(
        seen,
        [
            text("the text \"017\""),
            text("the text \"1_000\""),
            text("the text \"1:30\""),
            text("the text \"on\""),
            vec![],
            text("the number 2.5"),
            vec![
                "tasks/t.yaml:2:26 invalid-value: limits.max_iterations: the number -1 is not a whole \
                 number, 0 or more"
                    .to_owned()
            ],
            vec![
                "tasks/t.yaml:2:10 wrong-type: limits.max_iterations has no value: a whole number, 0 \
                 or more is wanted"
                    .to_owned()
            ],
        ]
    );
    assert_eq!(
        hints(&[
            ("tasks/t.yaml", "prompt: x\nenabled: no\nlimits: {max_iterations: 017}\n"),
            ("scripted/t.yaml", SCRIPT),
        ]),
        [
            Some("write false".to_owned()),
            Some("a leading zero makes it text: write 17, or 0o17 if octal was meant".to_owned()),
        ]
    );
}

#[test]
fn an_empty_key_is_not_an_absent_one() {
    assert_eq!(
        check_task("prompt: x\nschedule:\n"),
        ["tasks/t.yaml:2:1 wrong-type: schedule has no value: text is wanted"]
    );
}

#[test]
fn templates_name_every_undefined_variable_at_its_place() {
    let task = "prompt: |\n  Hello {{ name }}\n\n    and ${{ github.sha }} on {{ date }}\n  \
                {% if false %}{{ runn.id }}{% endif %}{% raw %}{{ kept }}{% endraw %}\n";
    assert_eq!(
        check_task(task),
        [
            "tasks/t.yaml:2:12 undefined-variable: \"name\" is not defined",
            "tasks/t.yaml:4:13 undefined-variable: \"github.sha\" is not defined",
            "tasks/t.yaml:5:20 undefined-variable: \"runn.id\" is not defined",
        ]
    );
    assert_eq!(
        check_task("prompt: \"a {{ b }}\"\n"),
        ["tasks/t.yaml:1:15 undefined-variable: \"b\" is not defined"]
    );
    assert_eq!(
        check_task("prompt: |\n  fine\n  {% if %}\n"),
        ["tasks/t.yaml:3:9 template: the template cannot be rendered: unexpected end of block"]
    );
    assert_eq!(
        check_task("prompt: \"{% for a in range(9999999) %}{% endfor %}\"\n").len(),
        1,
        "a prompt cannot burn time without end"
    );
}

#[test]
fn files_that_would_never_be_read_are_named() {
    let seen = check(&[
        ("tasks/a.yml", "prompt: x\n"),
        ("tasks/sub/b.yaml", "prompt: x\n"),
        ("tasks/Report.yaml", "prompt: x\n"),
        ("tasks/README.md", "fine"),
        ("personas/p.txt", "x"),
        ("scripted/ghost.yaml", SCRIPT),
    ]);
    assert_eq!(
        seen,
        [
            "personas/p.txt:1:1 stray-file: personas/p.txt is not read",
            "scripted/ghost.yaml:1:1 ?unused-script: no task is named \"ghost\": the session is never \
             played",
            "tasks/Report.yaml:1:1 invalid-name: \"Report\" cannot be a file name here",
            "tasks/a.yml:1:1 stray-file: tasks/a.yml is not read",
            "tasks/sub/b.yaml:1:1 stray-file: tasks/sub/b.yaml is not read",
        ]
    );
}

#[test]
fn a_suggested_file_name_is_a_valid_one() {
    let suggestion = |file: &str| hints(&[(file, "prompt: x\n")]);
    let rename = |name: &str| [Some(format!("rename it to tasks/{name}.yaml"))];
    assert_eq!(suggestion("tasks/a.yml"), rename("a"));
    assert_eq!(suggestion("tasks/My Report.YAML"), rename("my-report"));
    let plain = [Some("tasks/ holds <name>.yaml files only".to_owned())];
    assert_eq!(suggestion("tasks/é.yml"), plain);
    assert_eq!(suggestion("tasks/sub/b.yml"), plain);
}

#[test]
fn a_bundle_without_a_manifest_is_one_problem() {
    let dir = tempfile::tempdir().expect("a directory");
    write(
        dir.path(),
        &[("tasks/a.yaml", b"prompt: x\npersona: p\n"), ("personas/p.yaml", b"instructions: x\n")],
    );
    let loaded = load(dir.path(), &Revision::Worktree).expect("read");
    assert_eq!(
        lines(&loaded.problems),
        ["manifest.yaml:1:1 missing-file: the bundle has no manifest.yaml"]
    );
}

#[test]
fn models_are_resolved_or_named() {
    let manifest = "version: 1\nname: test\nproviders:\n\
        - {name: one, type: openai, base_url: \"https://a/v1/\", models: [shared, big]}\n\
        - {name: two, type: openai, base_url: \"http://b/v1\", models: [shared, org/small]}\n\
        - {name: three, type: openai, base_url: \"ftp://c\"}\n";
    let models = ["big", "org/small", "two/shared", "shared", "one/bgi", "on/big", "four"];
    let seen: Vec<Vec<String>> = models
        .map(|model| {
            let task = format!("prompt: x\nmodel: {model}\n");
            let manifest = manifest.replace("ftp://c", "https://c");
            check(&[("manifest.yaml", &manifest), ("tasks/t.yaml", &task)])
        })
        .into();
    let at = |text: &str| vec![format!("tasks/t.yaml:2:8 {text}")];
    assert_eq!(
        seen,
        [
            vec![],
            vec![],
            vec![],
            at("ambiguous-model: several providers list the model \"shared\""),
            at("unknown-model: provider \"one\" does not list the model \"bgi\""),
            at("unknown-provider: no provider is named \"on\""),
            at("unknown-model: no provider lists the model \"four\""),
        ]
    );
    assert_eq!(
        check(&[("manifest.yaml", manifest)]),
        ["manifest.yaml:6:41 invalid-value: \"ftp://c\" is not an http(s) URL"]
    );
}

#[test]
fn a_scripted_task_needs_its_session() {
    let seen = check(&[("tasks/t.yaml", "model: scripted/x\nprompt: x\nenabled: false\n")]);
    assert_eq!(
        seen,
        ["tasks/t.yaml:1:1 missing-file: provider \"scripted\" is scripted, and there is no \
             scripted/t.yaml"]
    );
}

#[test]
fn sessions_are_checked_in_every_turn() {
    let script = "turns:\n\
        - {tool_calls: [{name: bsh}, {arguments: {}}, {name: bash, arguments: [1]}]}\n\
        - {fault: {status: 200, times: 0}, delay: soon}\n\
        loop_from: 2\n";
    let seen = check(&[("tasks/t.yaml", "prompt: x\n"), ("scripted/t.yaml", script)]);
    assert_eq!(
        seen,
        [
            "scripted/t.yaml:2:24 ?unknown-tool: no tool is named \"bsh\"",
            "scripted/t.yaml:2:30 missing-key: \"name\" is missing in turns[0].tool_calls[1]",
            "scripted/t.yaml:2:71 wrong-type: arguments are a mapping or text",
            "scripted/t.yaml:3:20 invalid-value: status 200 is not a fault",
            "scripted/t.yaml:3:32 invalid-value: a fault that occurs 0 times never occurs",
            "scripted/t.yaml:3:43 invalid-duration: \"soon\" is not a duration",
            "scripted/t.yaml:4:12 invalid-value: loop_from 2: there are only 2 turns",
        ]
    );
}

#[test]
fn unlimited_ceilings_are_warnings_and_the_bundle_loads() {
    let task = b"prompt: x\nlimits: {max_cost_usd: 0, max_iterations: 0, wall_timeout: 0s}\n";
    let loaded = load_files(&[("tasks/t.yaml", task), ("scripted/t.yaml", SCRIPT.as_bytes())]);
    assert_eq!(
        lines(&loaded.problems),
        [
            "tasks/t.yaml:2:24 ?unlimited: limits.max_cost_usd: 0 means unlimited",
            "tasks/t.yaml:2:43 ?unlimited: limits.max_iterations: 0 means unlimited",
            "tasks/t.yaml:2:60 ?unlimited: wall_timeout: 0 means unlimited",
        ]
    );
    let bundle = loaded.bundle.expect("warnings do not keep a bundle from loading");
    let limits = &bundle.tasks.values().next().expect("a task").limits;
    assert_eq!((limits.max_cost, limits.max_iterations, limits.wall_timeout), (None, None, None));
}

#[test]
fn secrets_are_errors_whose_message_does_not_hold_them() {
    let key = format!("sk-{}", "a1B2".repeat(10));
    let manifest = MANIFEST.replace(
        "{name: scripted, type: scripted}",
        &format!("{{name: o, type: openai, base_url: \"https://h/v1\", api_key_env: {key}}}"),
    );
    let manifest = manifest.replace("scripted/session", "o/m");
    let loaded = load_files(&[("manifest.yaml", manifest.as_bytes())]);
    assert_eq!(
        lines(&loaded.problems),
        ["manifest.yaml:3:76 secret-in-bundle: this looks like an API key"]
    );
}

#[test]
fn branch_names_that_git_refuses_are_named() {
    let task = "prompt: x\nworktree_config: {branch_prefix: \"a..b\", base_branch: \"a b\"}\n";
    assert_eq!(
        check_task(task),
        [
            "tasks/t.yaml:2:34 invalid-branch: \"a..b\" cannot begin a branch's name",
            "tasks/t.yaml:2:55 invalid-branch: \"a b\" is not a branch's name",
        ]
    );
}

#[test]
fn workspace_repositories_are_roots_of_other_repositories() {
    let dir = tempfile::tempdir().expect("a directory");
    let bundle = dir.path().join("bundle");
    repository(&dir.path().join("good"), &[("sub/file", "x")]);
    repository(&dir.path().join("partial"), &[]);
    git(&dir.path().join("partial"), &["config", "extensions.partialClone", "origin"]);
    std::fs::create_dir(dir.path().join("plain")).expect("a directory");
    let task = |repo: &str| format!("prompt: x\nworkspace: {{repo: \"{repo}\"}}\n");
    let repos = [
        "../good",
        "../good/sub",
        "../plain",
        "../none",
        ".",
        "https://h/x.git",
        "../a:b",
        "~/x",
        "../partial",
    ];
    let files: Vec<(String, String)> = repos
        .iter()
        .enumerate()
        .flat_map(|(number, repo)| {
            [
                (format!("tasks/t{number}.yaml"), task(repo)),
                (format!("scripted/t{number}.yaml"), SCRIPT.to_owned()),
            ]
        })
        .collect();
    let mut files: Vec<(&str, &str)> =
        files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    files.push(("manifest.yaml", MANIFEST));
    repository(&bundle, &files);
    let loaded = load(&bundle, &Revision::Head).expect("read");
    assert_eq!(
        lines(&loaded.problems),
        [
            "tasks/t1.yaml:2:19 missing-repo: \"../good/sub\" is not the root of a git repository",
            "tasks/t2.yaml:2:19 missing-repo: \"../plain\" is not the root of a git repository",
            "tasks/t3.yaml:2:19 missing-repo: \"../none\" does not exist",
            "tasks/t4.yaml:2:19 invalid-repo: \".\" is the bundle itself, which runs never write",
            "tasks/t5.yaml:2:19 invalid-repo: \"https://h/x.git\" is a URL",
            "tasks/t6.yaml:2:19 invalid-repo: \"../a:b\" holds a character that a container mount \
             cannot",
            "tasks/t7.yaml:2:19 invalid-repo: \"~/x\" is not expanded",
            "tasks/t8.yaml:2:19 invalid-repo: \"../partial\" is a partial clone: its files may be \
             missing in the sandbox",
        ]
    );
}

#[test]
fn the_same_files_give_the_same_problems_from_disk_and_from_a_commit() {
    let dir = tempfile::tempdir().expect("a directory");
    let task = "prompt: {{ x }}\nschedule: \"0 0 30 2 *\"\n";
    repository(dir.path(), &[("manifest.yaml", MANIFEST), ("tasks/t.yaml", task)]);
    let disk = load(dir.path(), &Revision::Worktree).expect("read");
    let head = load(dir.path(), &Revision::Head).expect("read");
    assert_eq!(disk.problems, head.problems);
    assert!(!head.problems.is_empty());
    assert_eq!(
        head.commit.map(|commit| commit.to_string()),
        Some(git(dir.path(), &["rev-parse", "HEAD"]))
    );
}

#[test]
fn files_of_another_form_say_what_is_wanted() {
    let texts = [
        "description: Report: weekly\nprompt: x\n",
        "prompt: {{ date }}\n",
        "prompt: {{ date }} is today\n",
        "prompt: |\n  x\n\tschedule: x\n",
        "- a\n- b\n",
        "",
        "# only\n",
        "prompt: x\n---\nprompt: y\n",
        "prompt: x\nlimits: {max_cost_usd: .inf}\ntags: a b\nworkspace: [x]\n",
    ];
    let seen: Vec<(Vec<String>, Option<String>)> = texts
        .iter()
        .map(|text| {
            let files = [("tasks/t.yaml", *text), ("scripted/t.yaml", SCRIPT)];
            (check(&files), hints(&files).into_iter().next().flatten())
        })
        .collect();
    insta::assert_debug_snapshot!("other_forms", seen);
}

#[test]
fn mistakes_in_a_prompt_of_several_lines_are_at_their_real_place() {
    for style in [">", "|", ">-", "|2"] {
        let task = format!("prompt: {style}\n  one\n  two {{{{ nam }}}}\n\n  {{% if %}}\n");
        let fine = task.replace("{% if %}", "three");
        assert_eq!(
            check_task(&fine),
            ["tasks/t.yaml:3:10 undefined-variable: \"nam\" is not defined"],
            "{style}"
        );
        let broken = task.replace("{{ nam }}", "three");
        assert_eq!(
            check_task(&broken),
            ["tasks/t.yaml:5:9 template: the template cannot be rendered: unexpected end of block"],
            "{style}"
        );
    }
    assert_eq!(
        check_task("prompt: one\n  two\n  {{ nam }}\n"),
        ["tasks/t.yaml:3:6 undefined-variable: \"nam\" is not defined"]
    );
}

#[test]
fn hints_lead_to_what_can_be_done() {
    let first = |task: &str| {
        hints(&[
            ("tasks/t.yaml", task),
            ("scripted/t.yaml", SCRIPT),
            ("personas/clerk.yaml", "instructions: x\n"),
        ])
        .into_iter()
        .next()
        .flatten()
        .unwrap_or_default()
    };
    assert_eq!(
        [
            first("prompt: x\npersona: ../manifest\n"),
            first("prompt: x\npersona: personas/clerk.yaml\n"),
            first("prompt: x\npersona: zz\n"),
            first("prompt: x\nsystem_prompt: ../manifest.yaml\n"),
            first("prompt: x\nsystem_prompt: a.md\n"),
            first("prompt: \"{% if %}\"\n"),
        ],
        [
            "write the name of a file in personas/ without .yaml",
            "write the name alone: clerk",
            "make the file personas/zz.yaml",
            "write a file's path below system_prompts/, for example unattended.md",
            "make the file system_prompts/a.md",
            "a tag is {{ variable }}, or {% if … %} and {% for … %} with their {% endif %} and \
             {% endfor %}",
        ]
    );
    assert!(first("prompt: \"{{ github }}\"\n").contains("{% raw %}"));
}
