//! The agent's work as a git bundle, from whatever state it left the tree in.

use std::process::Command;

use serde_json::{Value, json};

use super::driver::Helper;

/// A helper on a repository with one commit, whose name is the base.
fn repository() -> (Helper, String) {
    let mut helper = Helper::start();
    let base = git(
        &mut helper,
        "git init -q -b main . && echo one > file && git add file \
        && git commit -qm first && git rev-parse HEAD",
    );
    (helper, base)
}

fn git(helper: &mut Helper, command: &str) -> String {
    let identity = "export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.invalid \
        GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.invalid; ";
    helper.bash(&format!("{identity}{command}")).trim().to_owned()
}

fn collect(helper: &mut Helper, base: &str) -> (Value, Vec<u8>) {
    helper.call(json!({"call": "collect_git", "base": base, "message": "fleet: uncommitted work", "max_bytes": 1 << 24}))
}

/// The refs that git finds in a bundle, verified against the repository.
fn heads(helper: &Helper, bundle: &[u8]) -> String {
    let file = helper.workspace.parent().expect("a parent").join("bundle");
    std::fs::write(&file, bundle).expect("a bundle");
    let run = |what: &str| {
        let output = Command::new("git")
            .args(["bundle", what])
            .arg(&file)
            .current_dir(&helper.workspace)
            .output()
            .expect("git runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    run("verify");
    run("list-heads").trim().to_owned()
}

fn packed(head: &str, salvaged: bool) -> Value {
    json!({"ok": true, "head": head, "salvaged": salvaged, "has_bundle": true})
}

#[test]
fn commits_leave_as_a_bundle_with_head() {
    let (mut helper, base) = repository();
    let head = git(&mut helper, "echo two > file; git commit -qam second; git rev-parse HEAD");
    let (header, bundle) = collect(&mut helper, &base);
    assert_eq!(header, packed(&head, false));
    assert_eq!(heads(&helper, &bundle), format!("{head} HEAD"));
}

#[test]
fn uncommitted_work_becomes_a_marked_commit_without_fleets_directories() {
    let (mut helper, base) = repository();
    helper.bash("mkdir .fleet figures subagents; touch .fleet/a figures/b subagents/c new; echo x >> file; \
        printf '#!/bin/sh\\ntouch hooked; exit 1\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit");
    let (header, bundle) = collect(&mut helper, &base);
    let head = git(&mut helper, "git rev-parse HEAD");
    assert_eq!(header, packed(&head, true));
    assert_eq!(heads(&helper, &bundle), format!("{head} HEAD"));
    let shown = git(&mut helper, "git show --name-only --format='%an <%ae> %s'");
    assert_eq!(shown, "fleet agent <agent@fleet.invalid> fleet: uncommitted work\n\nfile\nnew");
    assert_eq!(helper.bash("ls"), "figures\nfile\nnew\nsubagents\n");
}

#[test]
fn nothing_done_is_no_bundle_and_no_error() {
    let (mut helper, base) = repository();
    helper.bash("mkdir figures; touch figures/a");
    let nothing = json!({"ok": true, "head": null, "salvaged": false, "has_bundle": false});
    assert_eq!(collect(&mut helper, &base), (nothing, vec![]));
}

#[test]
fn a_detached_head_and_leftover_locks_are_no_obstacle() {
    let (mut helper, base) = repository();
    helper.bash("git checkout -q --detach; touch .git/index.lock .git/HEAD.lock; echo two > file");
    let (header, bundle) = collect(&mut helper, &base);
    let head = git(&mut helper, "git rev-parse HEAD");
    assert_eq!(header, packed(&head, true));
    assert_eq!(heads(&helper, &bundle), format!("{head} HEAD"));
}

#[test]
fn a_merge_and_a_rebase_in_progress_are_collected() {
    for step in ["git merge -q side", "git rebase -q side"] {
        let (mut helper, base) = repository();
        git(
            &mut helper,
            &format!(
                "git checkout -qb side; echo side > file; git commit -qam side; \
            git checkout -q main; echo main > file; git commit -qam main; {step} >/dev/null 2>&1; true"
            ),
        );
        let (header, bundle) = collect(&mut helper, &base);
        let head = git(&mut helper, "git rev-parse HEAD");
        assert_eq!(header, packed(&head, true), "{step}");
        assert_eq!(heads(&helper, &bundle), format!("{head} HEAD"), "{step}");
    }
}

#[test]
fn an_unborn_nested_repository_does_not_lose_the_rest() {
    let (mut helper, base) = repository();
    helper.bash("git init -q nested; touch kept");
    let (header, _) = collect(&mut helper, &base);
    assert_eq!(header["salvaged"], json!(true), "{header}");
    assert_eq!(git(&mut helper, "git show --name-only --format="), "kept");
}

#[test]
fn what_cannot_be_collected_is_told_in_gits_words() {
    let (mut helper, base) = repository();
    git(&mut helper, "echo two > file; git commit -qam second; head -c 300000 /dev/urandom > big");
    let small = json!({"call": "collect_git", "base": base, "message": "m", "max_bytes": 1000});
    assert_eq!(helper.refusal(small), "too_large");
    let odd =
        json!({"call": "collect_git", "base": "--output=x", "message": "m", "max_bytes": 1000});
    assert_eq!(helper.refusal(odd), "bad_request");
    let (header, _) = collect(&mut helper, &"1".repeat(40));
    assert_eq!(header["kind"], json!("io"));
    assert!(
        header["message"].as_str().expect("words").starts_with("git rev-list ended with 128"),
        "{header}"
    );
    git(&mut helper, "git checkout -q --orphan none; git rm -rfq .");
    let (header, _) = collect(&mut helper, &base);
    assert_eq!(header["kind"], json!("io"), "{header}");
}
