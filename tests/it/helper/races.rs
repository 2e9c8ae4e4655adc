//! File calls while somebody changes the tree beneath them, and trees of odd shapes.

use serde_json::{Value, json};

use super::driver::Helper;

/// Rounds of each call against a swapping tree.
const ROUNDS: usize = 300;

/// Exchanges two names without a pause, until `stop` is there.
const SWAP: &str = r#"
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
EXCHANGE, HERE = 2, -100
open("swapping", "w").close()
while not os.path.lexists("stop"):
    for _ in range(50):
        libc.renameat2(HERE, sys.argv[1].encode(), HERE, sys.argv[2].encode(), EXCHANGE)
"#;

/// Runs `attempt` again and again while `a` and `b` are exchanged; answers what became of the calls.
fn while_swapping(
    helper: &mut Helper,
    names: [&str; 2],
    mut attempt: impl FnMut(&mut Helper, usize) -> (Value, Vec<u8>),
) -> Vec<(Value, Vec<u8>)> {
    std::fs::write(helper.workspace.join("swap.py"), SWAP).expect("a program");
    let command = format!("exec python3 swap.py {} {}", names[0], names[1]);
    let swapping = helper.ask(json!({"call": "bash", "command": command}), &[]);
    helper.bash("until [ -e swapping ]; do sleep 0.01; done");
    let seen = (0..ROUNDS).map(|round| attempt(helper, round)).collect();
    helper.bash("touch stop");
    assert_eq!(helper.wait(swapping).0["exit_code"], json!(0));
    seen
}

/// A directory beside the workspace, with a file that must stay as it is.
fn outside(helper: &Helper) -> std::path::PathBuf {
    let outside = helper.workspace.parent().expect("a parent").join("outside");
    std::fs::create_dir(&outside).expect("a directory");
    std::fs::write(outside.join("file"), "of the host").expect("a file");
    std::os::unix::fs::symlink(&outside, helper.workspace.join("link")).expect("a link");
    outside
}

#[test]
fn a_directory_that_becomes_a_link_leads_nowhere() {
    let mut helper = Helper::start();
    let outside = outside(&helper);
    helper.bash("mkdir dir; echo -n of the agent > dir/file");
    let seen = while_swapping(&mut helper, ["dir", "link"], |helper, round| {
        let call = match round % 6 {
            0 => json!({"call": "read", "path": "dir/file", "offset": 0, "limit": 99}),
            1 => json!({"call": "write", "path": format!("dir/new{round}")}),
            2 => {
                json!({"call": "edit", "path": "dir/file", "old": "of the", "new": "of the", "replace_all": false, "expected_hash": null})
            }
            3 => json!({"call": "fetch", "path": "dir/file", "max_bytes": 99}),
            4 => json!({"call": "list", "path": "dir"}),
            _ => json!({"call": "write", "path": "dir/sub/deep/file"}),
        };
        helper.call(call)
    });
    let entries: Vec<_> = std::fs::read_dir(&outside)
        .expect("the directory")
        .map(|entry| entry.expect("entry").file_name())
        .collect();
    assert_eq!(entries, ["file"]);
    assert_eq!(std::fs::read_to_string(outside.join("file")).expect("the file"), "of the host");
    assert!(seen.iter().all(|(_, body)| body.is_empty() || body == b"of the agent"));
    let ends: std::collections::BTreeSet<&str> =
        seen.iter().map(|(header, _)| header["kind"].as_str().unwrap_or("done")).collect();
    assert!(ends.contains("unsafe") && ends.contains("done"), "{ends:?}");
    // An edit that changes nothing, and a link that was a directory again when it was looked at.
    let known = ["done", "no_change", "not_found", "unsafe"];
    assert!(ends.iter().all(|end| known.contains(end)), "{ends:?}");
}

#[test]
fn a_file_that_becomes_a_link_or_a_pipe_is_neither_followed_nor_waited_for() {
    for other in ["ln -s ../outside/file other", "mkfifo other"] {
        let mut helper = Helper::start();
        let outside = outside(&helper);
        helper.bash(&format!("echo -n of the agent > file; {other}"));
        let seen = while_swapping(&mut helper, ["file", "other"], |helper, round| {
            match round % 3 {
            0 => helper.call(json!({"call": "read", "path": "file", "offset": 0, "limit": 99})),
            1 => helper.call(json!({"call": "fetch", "path": "file", "max_bytes": 99})),
            _ => helper.call(json!({"call": "edit", "path": "file", "old": "of the agent", "new": "of the agent", "replace_all": false, "expected_hash": null})),
        }
        });
        assert_eq!(std::fs::read_to_string(outside.join("file")).expect("the file"), "of the host");
        assert!(seen.iter().all(|(_, body)| body.is_empty() || body == b"of the agent"), "{other}");
        assert!(seen.iter().any(|(header, _)| header["kind"] == json!("unsafe")), "{other}");
    }
}

#[test]
fn a_reader_never_sees_a_half_written_file() {
    let mut helper = Helper::start();
    let contents = [vec![b'a'; 300_000], vec![b'b'; 200_000]];
    let id = helper.ask(json!({"call": "write", "path": "file"}), &contents[0]);
    helper.wait(id);
    let check = "import sys\nwhole = {(b'a', 300000), (b'b', 200000)}\nodd = 0\n\
        open('reading', 'w').close()\nimport os\nwhile not os.path.exists('stop'):\n    \
        data = open('file', 'rb').read()\n    odd += (data[:1], len(data)) not in whole or len(set(data)) != 1\nprint(odd)";
    std::fs::write(helper.workspace.join("check.py"), check).expect("a program");
    let reading = helper.ask(json!({"call": "bash", "command": "python3 check.py"}), &[]);
    helper.bash("until [ -e reading ]; do sleep 0.01; done");
    for round in 0..60 {
        let id = helper.ask(json!({"call": "write", "path": "file"}), &contents[round % 2]);
        assert_eq!(helper.wait(id).0["ok"], json!(true));
    }
    helper.bash("touch stop");
    assert_eq!(helper.wait(reading).1, b"0\n");
}

#[test]
fn a_write_through_one_name_of_a_file_leaves_its_other_names() {
    let mut helper = Helper::start();
    helper.bash("echo one > a; ln a b");
    let id = helper.ask(json!({"call": "write", "path": "a"}), b"two\n");
    assert_eq!(helper.wait(id).0["ok"], json!(true));
    assert_eq!(helper.bash("cat a b"), "two\none\n");
}

#[test]
fn sockets_and_devices_are_no_files() {
    let mut helper = Helper::start();
    helper.bash("python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")'; ln -s /dev/zero zero");
    for path in ["sock", "zero"] {
        let read = json!({"call": "read", "path": path, "offset": 0, "limit": 10});
        assert_eq!(helper.refusal(read), "unsafe", "{path}");
        let fetch = json!({"call": "fetch", "path": path, "max_bytes": 10});
        assert_eq!(helper.refusal(fetch), "unsafe", "{path}");
    }
    assert_eq!(helper.call(json!({"call": "stat", "path": "sock"})).0["kind"], json!("other"));
}

#[test]
fn a_sparse_file_of_a_terabyte_is_refused_at_once() {
    let mut helper = Helper::start();
    helper.bash("truncate -s 1T sparse");
    let calls = [
        json!({"call": "read", "path": "sparse", "offset": 0, "limit": 10}),
        json!({"call": "fetch", "path": "sparse", "max_bytes": 1 << 29}),
        json!({"call": "edit", "path": "sparse", "old": "a", "new": "b", "replace_all": true, "expected_hash": null}),
    ];
    let before = helper.resident();
    assert_eq!(calls.map(|call| helper.refusal(call)), ["too_large"; 3]);
    assert!(helper.resident() < before + 8 * 1024 * 1024);
    let (stat, _) = helper.call(json!({"call": "stat", "path": "sparse"}));
    assert_eq!(stat["size"], json!(1_u64 << 40));
}

#[test]
fn a_directory_of_a_hundred_thousand_files_is_listed_in_part_and_worked_in() {
    let mut helper = Helper::start();
    helper.bash("mkdir many; cd many; seq 100000 | xargs touch");
    let before = helper.resident();
    let (listed, _) = helper.call(json!({"call": "list", "path": "many"}));
    let names = listed["names"].as_array().expect("a list").len();
    assert_eq!((names, &listed["truncated"]), (10_000, &json!(true)));
    assert!(helper.resident() < before + 32 * 1024 * 1024);
    let id = helper.ask(json!({"call": "write", "path": "many/77777"}), b"seen");
    assert_eq!(helper.wait(id).0["size"], json!(4));
    let read = json!({"call": "read", "path": "many/77777", "offset": 0, "limit": 10});
    assert_eq!(helper.call(read).1, b"seen");
}

#[test]
fn output_that_is_no_text_comes_back_as_it_is() {
    let mut helper = Helper::start();
    let (_, body) = helper.call(json!({"call": "bash", "command": "printf 'a\\xff\\0b\\xc3'"}));
    assert_eq!(body, b"a\xff\0b\xc3");
    let code = "import sys\nsys.stdout.buffer.write(b'a\\xff\\0')\n'\\udcff'";
    let (header, body) = helper.call(json!({"call": "python", "code": code}));
    assert_eq!((header["value"].as_str(), body), (Some("'\\udcff'"), b"a\xff\0".to_vec()));
    let code = "raise ValueError('\\x1b[1;31mred\\x1b[0m')";
    let (header, _) = helper.call(json!({"call": "python", "code": code}));
    let error = header["error"].as_str().expect("an error");
    assert!(error.ends_with("ValueError: red\n") && !error.contains('\x1b'), "{error}");
}
