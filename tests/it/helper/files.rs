//! Files: whole values, and every way out of the workspace.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::driver::Helper;

fn hash(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn write(helper: &mut Helper, path: &str, content: &[u8]) -> Value {
    let id = helper.ask(json!({"call": "write", "path": path}), content);
    helper.wait(id).0
}

fn edit(path: &str, old: &str, new: &str) -> Value {
    json!({"call": "edit", "path": path, "old": old, "new": new, "replace_all": false, "expected_hash": null})
}

#[test]
fn a_file_is_written_read_and_fetched_whole() {
    let mut helper = Helper::start();
    let path = "new/deep/a\nname";
    let written = json!({"ok": true, "size": 6, "sha256": hash(b"a\0bcde"), "replaced": 0});
    assert_eq!(write(&mut helper, path, b"a\0bcde"), written);
    let known = json!({"ok": true, "size": 6, "sha256": hash(b"a\0bcde")});
    let absolute = helper.workspace.join(path);
    let read = json!({"call": "read", "path": absolute, "offset": 2, "limit": 3});
    assert_eq!(helper.call(read), (known.clone(), b"bcd".to_vec()));
    let fetch = json!({"call": "fetch", "path": path, "max_bytes": 6});
    assert_eq!(helper.call(fetch), (known, b"a\0bcde".to_vec()));
    assert_eq!(helper.refusal(json!({"call": "fetch", "path": path, "max_bytes": 5})), "too_large");
    let (names, _) = helper.call(json!({"call": "list", "path": "new/deep"}));
    assert_eq!(names, json!({"ok": true, "names": ["a\nname"], "truncated": false}));
}

#[test]
fn a_rewritten_file_keeps_its_mode_and_leaves_nothing_beside_it() {
    let mut helper = Helper::start();
    helper.bash("echo old > script; chmod 750 script");
    write(&mut helper, "script", b"new\n");
    assert_eq!(helper.bash("stat -c %a script; cat script; ls -A"), "750\nnew\nscript\n");
}

#[test]
fn no_path_leads_out_of_the_workspace() {
    let mut helper = Helper::start();
    helper.bash(
        "mkdir dir; echo in > dir/file; ln -s /etc out; ln -s /etc/passwd secret; ln -s dir inner",
    );
    for path in ["../x", "dir/../../x", "/etc/passwd", "out/passwd", "secret", "inner/file"] {
        let read = json!({"call": "read", "path": path, "offset": 0, "limit": 10});
        assert_eq!(helper.refusal(read), "unsafe", "read {path}");
        let fetch = json!({"call": "fetch", "path": path, "max_bytes": 10_000});
        assert_eq!(helper.refusal(fetch), "unsafe", "fetch {path}");
        assert_eq!(helper.refusal(edit(path, "a", "b")), "unsafe", "edit {path}");
        assert_eq!(write(&mut helper, path, b"x")["kind"], json!("unsafe"), "write {path}");
    }
    let beside = format!("{}x/file", helper.workspace.display());
    assert_eq!(helper.refusal(json!({"call": "stat", "path": beside})), "unsafe");
    assert_eq!(helper.refusal(json!({"call": "list", "path": "out"})), "unsafe");
    assert_eq!(helper.bash("cat dir/file; ls -A dir"), "in\nfile\n");
}

#[test]
fn what_is_no_regular_file_is_refused_without_waiting() {
    let mut helper = Helper::start();
    helper.bash("mkfifo pipe; mkdir dir; truncate -s 1T sparse");
    let read = |path: &str| json!({"call": "read", "path": path, "offset": 0, "limit": 10});
    let kinds = ["pipe", "dir", ".", "sparse", "missing", "missing/file", "pipe/file", "n\u{0}l"]
        .map(|path| helper.refusal(read(path)));
    assert_eq!(
        kinds,
        [
            "unsafe",
            "is_directory",
            "is_directory",
            "too_large",
            "not_found",
            "not_found",
            "not_found",
            "bad_request"
        ]
    );
    assert_eq!(write(&mut helper, "pipe", b"x")["kind"], json!("unsafe"));
    assert_eq!(write(&mut helper, "dir", b"x")["kind"], json!("is_directory"));
}

#[test]
fn a_path_is_described_without_following_it() {
    let mut helper = Helper::start();
    helper.bash("printf abc > file; ln -s file link; mkfifo pipe; mkdir dir");
    let kinds = ["file", "link", "pipe", "dir", "."].map(|path| {
        helper.call(json!({"call": "stat", "path": path})).0["kind"].as_str().map(str::to_owned)
    });
    let expected = ["file", "symlink", "other", "directory", "directory"];
    assert_eq!(kinds, expected.map(|kind| Some(kind.to_owned())));
    let (file, _) = helper.call(json!({"call": "stat", "path": "file"}));
    assert_eq!(file, json!({"ok": true, "kind": "file", "size": 3}));
}

#[test]
fn names_that_are_no_text_are_escaped() {
    let mut helper = Helper::start();
    helper.bash("touch $'b\\xff' a");
    let (names, _) = helper.call(json!({"call": "list", "path": "."}));
    assert_eq!(names["names"], json!(["a", "b\\xff"]));
}

#[test]
fn a_large_directory_is_cut_within_a_frame() {
    let mut helper = Helper::start();
    helper.bash("mkdir many; cd many; seq -f \"%0250g\" 6000 | xargs touch");
    let (names, _) = helper.call(json!({"call": "list", "path": "many"}));
    assert_eq!(names["truncated"], json!(true));
}

#[test]
fn an_edit_replaces_once_or_everywhere() {
    let mut helper = Helper::start();
    write(&mut helper, "f", b"one two two");
    let reply = helper.call(edit("f", "one", "1")).0;
    let expected = json!({"ok": true, "size": 9, "sha256": hash(b"1 two two"), "replaced": 1});
    assert_eq!(reply, expected);
    let mut everywhere = edit("f", "two", "2");
    everywhere["replace_all"] = json!(true);
    everywhere["expected_hash"] = json!(hash(b"1 two two"));
    let expected = json!({"ok": true, "size": 5, "sha256": hash(b"1 2 2"), "replaced": 2});
    assert_eq!(helper.call(everywhere).0, expected);
}

#[test]
fn an_edit_that_is_not_clear_changes_nothing() {
    let mut helper = Helper::start();
    write(&mut helper, "f", b"one two two");
    write(&mut helper, "raw", b"\xff one");
    let mut stale = edit("f", "one", "1");
    stale["expected_hash"] = json!(hash(b"else"));
    let refused = [
        edit("f", "two", "2"),
        edit("f", "three", "3"),
        edit("f", "one", "one"),
        stale,
        edit("raw", "one", "1"),
        edit("missing", "a", "b"),
    ]
    .map(|call| {
        let (header, _) = helper.call(call);
        [&header["kind"], &header["message"]].map(|text| text.as_str().expect("text").to_owned())
    });
    let expected = [
        ["ambiguous", "old occurs 2 times in f"],
        ["ambiguous", "old occurs 0 times in f"],
        ["no_change", "old and new are the same"],
        ["stale", "f is not what expected_hash says; view it again"],
        ["io", "raw is not UTF-8"],
        ["not_found", "missing does not exist"],
    ];
    assert_eq!(refused, expected.map(|pair| pair.map(str::to_owned)));
    assert_eq!(helper.bash("cat f"), "one two two");
}

#[test]
fn the_pointer_to_the_repository_is_not_written() {
    let mut helper = Helper::start();
    helper.bash("echo 'gitdir: /somewhere' > .git");
    for path in [".git", "./.git", "x/./../.git"] {
        assert_eq!(write(&mut helper, path, b"gitdir: /mine")["kind"], json!("unsafe"));
        assert_eq!(helper.refusal(edit(path, "somewhere", "mine")), "unsafe");
    }
    assert_eq!(helper.bash("cat .git"), "gitdir: /somewhere\n");
}
