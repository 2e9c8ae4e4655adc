//! Commands: output, ends, and what is left of them.

use serde_json::{Value, json};

use super::driver::{Helper, exists};

fn well(exit_code: i32, length: usize) -> Value {
    json!({
        "ok": true, "dropped_bytes": 0, "spill_path": null, "head_len": length,
        "exit_code": exit_code, "timed_out": false, "oom_killed": false
    })
}

#[test]
fn a_command_answers_both_streams_and_its_exit_code() {
    let mut helper = Helper::start();
    let reply = helper.call(json!({"call": "bash", "command": "echo out; echo err >&2; exit 7"}));
    assert_eq!(reply, (well(7, 8), b"out\nerr\n".to_vec()));
    let reply = helper.call(json!({"call": "bash", "command": "kill -KILL $$"}));
    assert_eq!(reply, (well(137, 0), vec![]));
}

#[test]
fn a_command_sees_a_clean_environment_and_no_descriptor_of_the_helper() {
    let mut helper = Helper::start();
    let names = helper.bash("env | cut -d= -f1 | sort | tr '\\n' ' '; cat");
    assert_eq!(names, "FLEET_CALL HOME LANG PATH PWD SHLVL TERM _ ");
    // The fourth is the listing's own.
    assert_eq!(helper.bash("ls /proc/self/fd"), "0\n1\n2\n3\n");
}

#[test]
fn a_command_starts_where_it_was_told() {
    let mut helper = Helper::start();
    let workspace = helper.workspace.display().to_string();
    assert_eq!(helper.bash("mkdir -p a/b; ln -s a link; pwd"), format!("{workspace}\n"));
    let (_, body) = helper.call(json!({"call": "bash", "command": "pwd", "cwd": "a/b"}));
    assert_eq!(String::from_utf8_lossy(&body), format!("{workspace}/a/b\n"));
    let kinds = ["missing", "link/b", "../..", "/usr"]
        .map(|cwd| helper.refusal(json!({"call": "bash", "command": "pwd", "cwd": cwd})));
    assert_eq!(kinds, ["not_found", "unsafe", "unsafe", "unsafe"]);
}

#[test]
fn a_timeout_kills_children_in_sessions_of_their_own() {
    let mut helper = Helper::start();
    // The second forgets its mark, its session and its parent.
    let command = "echo $$ > pids; setsid sleep 600 & echo $! >> pids; \
        (env -i setsid bash -c 'echo $$ >> pids; exec sleep 600' &) ; echo before; sleep 600";
    let reply = helper.call(json!({"call": "bash", "command": command, "timeout_ms": 1500}));
    let mut expected = well(0, 7);
    (expected["exit_code"], expected["timed_out"]) = (Value::Null, json!(true));
    assert_eq!(reply, (expected, b"before\n".to_vec()));
    let pids = std::fs::read_to_string(helper.workspace.join("pids")).expect("a file");
    let left: Vec<bool> = pids.lines().map(exists).collect();
    assert_eq!(left, [false, false, false]);
}

#[test]
fn a_command_that_ignores_the_request_to_end_is_killed() {
    let mut helper = Helper::start();
    let command = "trap '' TERM; echo $$ > pid; while :; do sleep 0.1; done";
    let (header, _) = helper.call(json!({"call": "bash", "command": command, "timeout_ms": 300}));
    assert_eq!(header["timed_out"], json!(true));
    let pid = std::fs::read_to_string(helper.workspace.join("pid")).expect("a file");
    assert!(!exists(&pid));
}

#[test]
fn what_a_finished_command_left_in_the_background_is_killed() {
    let mut helper = Helper::start();
    let pids = helper.bash("sleep 600 & echo $!; setsid sleep 600 >/dev/null 2>&1 & echo $!");
    let left: Vec<bool> = pids.lines().map(exists).collect();
    assert_eq!(left, [false, false]);
}

#[test]
fn an_endless_output_is_bounded_and_spilled_in_constant_memory() {
    let mut helper = Helper::start();
    helper.bash("yes | head -c 1M");
    let before = helper.resident();
    let command = "printf begin; yes | head -c 200M; printf end";
    let (header, body) =
        helper.call(json!({"call": "bash", "command": command, "output_limit": 1000}));
    let grown = helper.resident().saturating_sub(before);
    let total = 200 * 1024 * 1024 + 8;
    assert_eq!(
        header,
        json!({
            "ok": true, "dropped_bytes": total - 1000, "spill_path": ".fleet/spill/2.txt",
            "head_len": 500, "exit_code": 0, "timed_out": false, "oom_killed": false
        })
    );
    assert_eq!((&body[..7], &body[995..], body.len()), (&b"beginy\n"[..], &b"y\nend"[..], 1000));
    let spill = std::fs::read(helper.workspace.join(".fleet/spill/2.txt")).expect("a spill");
    assert_eq!((&spill[..7], spill.len()), (&b"beginy\n"[..], 8 * 1024 * 1024));
    assert!(grown < 4 * 1024 * 1024, "the helper grew by {grown} bytes");
}

#[test]
fn a_spill_holds_the_whole_output() {
    let mut helper = Helper::start();
    let (header, body) =
        helper.call(json!({"call": "bash", "command": "seq 1000", "output_limit": 20}));
    assert_eq!((&header["dropped_bytes"], &header["head_len"]), (&json!(3873), &json!(10)));
    assert_eq!(String::from_utf8_lossy(&body), "1\n2\n3\n4\n5\n\n999\n1000\n");
    let whole: String = (1..=1000).map(|number| format!("{number}\n")).collect();
    let spill = std::fs::read_to_string(helper.workspace.join(".fleet/spill/1.txt"));
    assert_eq!(spill.expect("a spill"), whole);
}

#[test]
fn a_spill_directory_that_is_a_link_is_not_followed() {
    let mut helper = Helper::start();
    helper.bash("mkdir elsewhere; ln -s elsewhere .fleet");
    let (header, _) =
        helper.call(json!({"call": "bash", "command": "seq 1000", "output_limit": 20}));
    assert_eq!((&header["exit_code"], &header["spill_path"]), (&json!(0), &Value::Null));
    assert_eq!(helper.bash("ls elsewhere"), "");
}

#[test]
fn a_cancelled_command_is_killed_and_still_answered_while_others_go_on() {
    let mut helper = Helper::start();
    let other = helper.ask(
        json!({"call": "bash", "command": "mkfifo hold; echo up > hold; cat go; echo done"}),
        &[],
    );
    let doomed = helper.ask(json!({"call": "bash", "command": "echo $$ > pid; mkfifo ready; echo x > ready; sleep 600"}), &[]);
    helper.bash(
        "until [ -p ready ] && [ -p hold ]; do sleep 0.01; done; cat ready hold; echo now > go",
    );
    helper.cancel(doomed);
    let (header, body) = helper.wait(doomed);
    assert_eq!(
        header,
        json!({"ok": false, "kind": "cancelled", "message": "the call was cancelled"})
    );
    assert_eq!(body, b"");
    let pid = std::fs::read_to_string(helper.workspace.join("pid")).expect("a file");
    assert!(!exists(&pid));
    let (_, body) = helper.wait(other);
    assert!(body.ends_with(b"done\n"), "{:?}", String::from_utf8_lossy(&body));
}

#[test]
fn many_commands_leave_no_threads_and_no_descriptors() {
    let mut helper = Helper::start();
    let count = |helper: &Helper| {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", helper.pid())).expect("a status");
        let line =
            status.lines().find(|line| line.starts_with("Threads:")).expect("threads").to_owned();
        line.split_whitespace()
            .nth(1)
            .and_then(|word| word.parse::<usize>().ok())
            .expect("a number")
    };
    let ids: Vec<u64> =
        (0..100).map(|_| helper.ask(json!({"call": "bash", "command": "true"}), &[])).collect();
    for id in ids {
        assert_eq!(helper.wait(id), (well(0, 0), vec![]));
    }
    assert!(count(&helper) <= 40, "{} threads", count(&helper));
}

#[test]
fn a_command_too_long_to_start_is_refused_by_name() {
    let mut helper = Helper::start();
    let command = format!("true {}", "x".repeat(200_000));
    assert_eq!(helper.refusal(json!({"call": "bash", "command": command})), "too_large");
}
