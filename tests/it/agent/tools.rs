//! What each tool shows to the model.

use fleet::sandbox::{Call, CommandOutput, KernelOutput};

use super::bench::{Finished, bench, call, say};
use crate::env::sandbox_double::{CommandEnd, SandboxDouble, hash};

/// Runs these calls, one answer each, over a prepared sandbox.
async fn run(calls: &[(&str, &str)], prepare: impl FnOnce(&SandboxDouble)) -> Finished {
    let turns = calls.iter().map(|one| call(&[*one])).chain([say("done")]).collect();
    let bench = bench(turns);
    prepare(&bench.sandbox);
    bench.run().await
}

async fn output(tool: &str, arguments: &str, prepare: impl FnOnce(&SandboxDouble)) -> String {
    run(&[(tool, arguments)], prepare).await.only_result()
}

#[tokio::test]
async fn bash_tells_of_timeout_and_memory() {
    let end = CommandOutput {
        output: b"partial".to_vec(),
        timed_out: true,
        oom_killed: true,
        ..CommandOutput::default()
    };
    let shown = output("bash", r#"{"command":"big","timeout_seconds":5}"#, |sandbox| {
        sandbox.on_command("big", CommandEnd::Output(end));
    })
    .await;
    assert_eq!(
        shown,
        "partial\n[no exit code]\n[timed out after 5 s; it was killed]\n\
         [out of memory: the kernel killed a process of the sandbox; all of it together has limits.sandbox.memory_mb]"
    );
}

#[tokio::test]
async fn an_asked_timeout_is_held_within_the_ceiling() {
    let done = run(
        &[
            ("bash", r#"{"command":"a","timeout_seconds":5}"#),
            ("bash", r#"{"command":"a","timeout_seconds":9999}"#),
            ("bash", r#"{"command":"a"}"#),
        ],
        |_| {},
    )
    .await;
    let seconds = done.sandbox.calls().into_iter().map(|call| match call {
        Call::Bash { timeout, .. } => timeout.as_secs(),
        other => panic!("unexpected {other:?}"),
    });
    assert_eq!(seconds.collect::<Vec<_>>(), [5, 60, 60]);
}

#[tokio::test]
async fn a_cell_has_the_least_of_what_it_asks_the_tool_s_ceiling_and_the_host_s() {
    let mut seen = Vec::new();
    for host in [None, Some(10), Some(600)] {
        let cells = [
            r#"{"code":"1","timeout_seconds":3}"#,
            r#"{"code":"1","timeout_seconds":30}"#,
            r#"{"code":"1"}"#,
        ];
        let turns =
            cells.map(|cell| call(&[("run_python", cell)])).into_iter().chain([say("done")]);
        let mut bench = bench(turns.collect());
        bench.input.python_cell_timeout = host.map(std::time::Duration::from_secs);
        let done = bench.run().await;
        seen.push(
            done.sandbox
                .calls()
                .into_iter()
                .map(|call| match call {
                    Call::Python { timeout, .. } => timeout.as_secs(),
                    other => panic!("unexpected {other:?}"),
                })
                .collect::<Vec<_>>(),
        );
    }
    assert_eq!(seen, [[3, 30, 60], [3, 10, 10], [3, 30, 60]]);
}

#[tokio::test]
async fn output_that_does_not_fit_is_kept_in_a_file_that_the_text_names() {
    let long = "line\n".repeat(100_000);
    let kept = long.clone();
    let done = run(&[("bash", r#"{"command":"yes"}"#)], |sandbox| {
        let end = CommandOutput {
            exit_code: Some(0),
            output: kept.into_bytes(),
            ..CommandOutput::default()
        };
        sandbox.on_command("yes", CommandEnd::Output(end));
    })
    .await;
    let shown = done.only_result();
    assert!(shown.len() <= 64 * 1024, "{} bytes", shown.len());
    assert!(shown.contains("the whole is in .fleet/output/scripted_1_0.txt]"));
    assert!(shown.ends_with("line\n[exit 0]"));
    let file = done.sandbox.file(".fleet/output/scripted_1_0.txt");
    assert_eq!(file.map(|file| file.len()), Some(long.len()));
}

#[tokio::test]
async fn what_the_helper_dropped_and_kept_is_named() {
    let shown = output("bash", r#"{"command":"yes"}"#, |sandbox| {
        let end = CommandOutput {
            exit_code: Some(0),
            output: b"y\ny\n".to_vec(),
            dropped_bytes: 1000,
            spill_path: Some(".fleet/output/7".to_owned()),
            ..CommandOutput::default()
        };
        sandbox.on_command("yes", CommandEnd::Output(end));
    })
    .await;
    assert_eq!(
        shown,
        "y\ny\n[1000 bytes from the middle left out; the whole is in .fleet/output/7]\n[exit 0]"
    );
}

#[tokio::test]
async fn python_shows_output_value_variables_figures_and_the_loss_of_its_state() {
    let shown = output(
        "run_python",
        r#"{"code":"f()","reset_kernel":true,"return_vars":["n"]}"#,
        |sandbox| {
            sandbox.on_cell(
                "f()",
                KernelOutput {
                    output: b"printed".to_vec(),
                    value: Some("42".to_owned()),
                    vars: vec![("n".to_owned(), "7".to_owned())],
                    figures: vec!["figures/1.png".to_owned()],
                    kernel_lost: true,
                    ..KernelOutput::default()
                },
            );
        },
    )
    .await;
    assert_eq!(
        shown,
        "printed\n42\nn = 7\n[figures: figures/1.png]\n\
         [the interpreter was started anew: its variables are lost]"
    );
}

#[tokio::test]
async fn memory_that_ran_out_is_told_with_its_limit() {
    let said = "[out of memory: the kernel killed a process of the sandbox; all of it together has \
                limits.sandbox.memory_mb]";
    let done =
        run(&[("run_python", r#"{"code":"f()"}"#), ("bash", r#"{"command":"f"}"#)], |sandbox| {
            let error = Some("the interpreter ended (signal 9); its state is lost".to_owned());
            let cell = KernelOutput {
                error,
                oom_killed: true,
                kernel_lost: true,
                ..KernelOutput::default()
            };
            sandbox.on_cell("f()", cell);
            let command = CommandOutput {
                exit_code: Some(137),
                oom_killed: true,
                ..CommandOutput::default()
            };
            sandbox.on_command("f", CommandEnd::Output(command));
        })
        .await;
    for result in done.log.results() {
        assert!(result.2 && result.3.contains(said), "{result:?}");
    }
}

#[tokio::test]
async fn a_cell_that_fails_shows_its_traceback_as_an_error() {
    let done = run(&[("run_python", r#"{"code":"1/0"}"#)], |sandbox| {
        let error = Some("ZeroDivisionError: division by zero".to_owned());
        sandbox.on_cell("1/0", KernelOutput { error, ..KernelOutput::default() });
    })
    .await;
    let results = done.log.results();
    assert_eq!(
        (results[0].2, results[0].3.as_str()),
        (true, "ZeroDivisionError: division by zero\n[failed]")
    );
}

#[tokio::test]
async fn files_are_written_viewed_edited_and_guarded_by_their_hash() {
    let stale = format!(
        r#"{{"path":"a","old":"two","new":"2","expected_hash":"{}"}}"#,
        hash(b"something else")
    );
    let done = run(
        &[
            ("write_file", r#"{"path":"a","content":"one\ntwo\n"}"#),
            ("view_file", r#"{"path":"a"}"#),
            ("edit_file", r#"{"path":"a","old":"two","new":"three"}"#),
            ("edit_file", &stale),
            ("edit_file", r#"{"path":"a","old":"nine","new":"3"}"#),
            ("edit_file", r#"{"path":"a","old":"","new":"3"}"#),
            ("view_file", r#"{"path":"b"}"#),
        ],
        |_| {},
    )
    .await;
    let shown: Vec<_> = done.log.results().into_iter().map(|(_, _, _, output)| output).collect();
    let (first, second) = (hash(b"one\ntwo\n"), hash(b"one\nthree\n"));
    assert_eq!(
        shown,
        [
            format!("wrote a: 8 bytes, sha256 {first}"),
            format!("one\ntwo\n[8 bytes, sha256 {first}]"),
            format!("edited a: 1 replaced, 10 bytes, sha256 {second}"),
            "a: stale; the file has changed: view it again and use its new sha256".to_owned(),
            "a: ambiguous; `old` must occur exactly once: view the file and include more lines \
             around it, or set replace_all"
                .to_owned(),
            "`old` is empty; name the text to replace, or use write_file for a new file".to_owned(),
            "b: notfound; check the path with bash: ls".to_owned(),
        ]
    );
    assert_eq!(done.sandbox.file("a"), Some(b"one\nthree\n".to_vec()));
}

#[tokio::test]
async fn publishing_again_updates_and_what_is_not_there_is_refused() {
    let done = run(
        &[
            ("publish_artifact", r#"{"path":"out/a.md","description":"first"}"#),
            ("publish_artifact", r#"{"path":"/w/out/./a.md","name":"Report"}"#),
            ("publish_artifact", r#"{"path":"b.md"}"#),
            ("publish_artifact", r#"{"path":"../etc/passwd"}"#),
        ],
        |sandbox| sandbox.put("out/a.md", b"text"),
    )
    .await;
    let shown: Vec<_> = done.log.results().into_iter().map(|(_, _, _, output)| output).collect();
    assert_eq!(
        shown,
        [
            "published out/a.md as a.md (4 bytes)",
            "published out/a.md as Report (4 bytes)",
            "b.md: notfound; check the path with bash: ls",
            "../etc/passwd is not a file beneath the workspace /w",
        ]
    );
    assert_eq!(done.end.artifacts.len(), 1);
    assert_eq!(done.end.artifacts[0].name, "Report");
}

#[tokio::test]
async fn at_most_fifty_files_are_published() {
    let calls: Vec<_> = (0..51).map(|n| format!(r#"{{"path":"{n}"}}"#)).collect();
    let calls: Vec<_> = calls.iter().map(|one| ("publish_artifact", one.as_str())).collect();
    let done = run(&calls, |sandbox| (0..51).for_each(|n| sandbox.put(&n.to_string(), b"x"))).await;
    assert_eq!(done.end.artifacts.len(), 50);
    assert!(done.log.results()[50].3.starts_with("50 files are published already"));
}

#[tokio::test]
async fn the_plan_is_set_updated_and_shown() {
    let done = run(
        &[
            (
                "task_tracker",
                r#"{"action":"set","items":[{"id":"1","title":"read"},{"id":"2","title":"write"}]}"#,
            ),
            ("task_tracker", r#"{"action":"update","items":[{"id":"1","status":"done"}]}"#),
            ("task_tracker", r#"{"action":"view"}"#),
        ],
        |_| {},
    )
    .await;
    let shown: Vec<_> = done.log.results().into_iter().map(|(_, _, _, output)| output).collect();
    assert_eq!(
        shown,
        ["plan: 2 open, 0 done", "plan: 1 open, 1 done", "[done] 1: read\n[pending] 2: write"]
    );
}
