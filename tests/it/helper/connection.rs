//! The connection: its beginning, broken frames and its end.

use std::io::Write;

use serde_json::json;

use super::driver::{Helper, send};

#[test]
fn the_helper_says_hello_with_its_token() {
    let helper = Helper::start();
    let python = helper.hello["python"].as_str().expect("a version").to_owned();
    let ipython = helper.hello["ipython"].as_bool().expect("yes or no");
    let expected =
        json!({"hello": 1, "token": "a-token-of-this-test", "python": python, "ipython": ipython});
    assert_eq!(helper.hello, expected);
    assert!(python.starts_with("3."), "{python}");
}

#[test]
fn the_end_of_the_connection_ends_the_helper_while_a_command_runs() {
    // What becomes of the command is the container's part: its first process is gone.
    let mut helper = Helper::start();
    helper.bash("mkfifo held");
    helper.ask(json!({"call": "bash", "command": "exec 3>held; exec sleep 5"}), &[]);
    // Opening waits for the command.
    let _held = std::fs::File::open(helper.workspace.join("held")).expect("a pipe");
    helper.hang_up();
    assert_eq!(helper.ended(), Some(0));
}

#[test]
fn a_frame_that_breaks_the_protocol_ends_the_helper() {
    let cases: [&[u8]; 5] = [
        &[0xff; 8],
        &[0, 0, 0, 0, 0, 0, 0, 0],
        b"\0\0\0\x01\xff\0\0\0{",
        b"\0\0\0\x02\0\0\0\0[]",
        b"\0\0\0\x03\0\0\0\0{\xff}",
    ];
    for case in cases {
        let mut helper = Helper::start();
        helper.stream.write_all(case).expect("the helper reads");
        assert_eq!(helper.ended(), Some(1), "{case:?}");
    }
    let mut helper = Helper::start();
    send(&mut helper.stream, &json!({"call": "stat", "path": "."}), &[]);
    assert_eq!(helper.ended(), Some(1));
}

#[test]
fn a_request_that_makes_no_sense_is_refused_and_the_helper_goes_on() {
    let mut helper = Helper::start();
    let kinds = [
        json!({"call": "dance"}),
        json!({"call": "bash"}),
        json!({"call": "bash", "command": 7}),
        json!({"call": "read", "path": ".", "offset": -1}),
        json!({"call": "stat", "path": ".", "timeout_ms": "soon"}),
    ]
    .map(|call| helper.refusal(call));
    assert_eq!(kinds, ["bad_request"; 5]);
    assert_eq!(helper.bash("echo well"), "well\n");
}

#[test]
fn resources_are_numbers() {
    let mut helper = Helper::start();
    let (header, _) = helper.call(json!({"call": "resources"}));
    let kills = header["oom_kills"].as_u64().expect("a number");
    let peak = header["memory_peak"].clone();
    assert!(peak.is_null() || peak.is_u64(), "{peak}");
    assert_eq!(header, json!({"ok": true, "oom_kills": kills, "memory_peak": peak}));
}
