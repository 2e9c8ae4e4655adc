//! What is on the host before a run, and must not stand in its way.

use fleet::sandbox::Sandbox;

use crate::env::{commit_files, git, git_output};

use super::lab::{Kind, Lab};

const WORK: &str = "echo work > work.txt && git add work.txt && git commit -qm work";

#[tokio::test]
async fn names_that_clash_where_case_does_not_count_and_unicode_arrive() {
    let lab = Lab::prepared(Kind::Normal, |repo| {
        commit_files(
            repo,
            &[("Case.txt", "upper\n"), ("case.txt", "lower\n"), ("für 日本/ä b.txt", "x\n")],
            "names",
        );
    })
    .await;
    let script = "cat Case.txt case.txt 'für 日本/ä b.txt'; echo more >> CASE.txt; git add -A; git commit -qm more";
    let (said, collected) = lab.attack(script).await;
    assert_eq!(said, "upper\nlower\nx\n");
    assert_eq!(collected.expect("collected").expect("there is work").commits, 1);
    assert_eq!(lab.on_branch("CASE.txt"), "more");
    lab.assert_untouched();
}

#[tokio::test]
async fn an_operator_in_the_middle_of_something_is_not_disturbed() {
    let lab = Lab::prepared(Kind::Normal, |repo| {
        // A merge with a conflict, staged and untracked files, a stash, a lock of somebody's.
        std::fs::write(repo.join("README.md"), "stashed\n").expect("a change");
        git(repo, &["stash", "--quiet"]);
        git(repo, &["checkout", "--quiet", "-b", "other"]);
        commit_files(repo, &[("README.md", "theirs\n")], "theirs");
        git(repo, &["checkout", "--quiet", "main"]);
        commit_files(repo, &[("README.md", "ours\n")], "ours");
        assert!(!git_output(repo, &["merge", "other"]).status.success(), "a conflict");
        std::fs::write(repo.join("untracked.txt"), "mine\n").expect("a file");
    })
    .await;
    let (said, collected) = lab.attack(&format!("cat README.md; {WORK}")).await;
    assert_eq!(said, "ours\n");
    assert_eq!(collected.expect("collected").expect("there is work").commits, 1);
    lab.assert_untouched();
    let status = git(&lab.repo, &["status", "--porcelain"]);
    assert_eq!(status, "AA README.md\n?? untracked.txt".replace("AA", "UU"));
}

#[tokio::test]
async fn a_branch_that_moves_during_the_run_keeps_both_sides_work() {
    let lab = Lab::new(Kind::Normal).await;
    let sandbox = lab.sandbox().await;
    super::lab::shell(&sandbox, WORK).await;
    commit_files(&lab.repo, &[("meanwhile.txt", "x\n")], "somebody's work on main");
    let main = git(&lab.repo, &["rev-parse", "main"]);
    let collected = lab.collect(&sandbox).await.expect("collected").expect("there is work");
    sandbox.close().await;
    assert_eq!((git(&lab.repo, &["rev-parse", "main"]), collected.commits), (main, 1));
    assert_eq!(lab.on_branch("work.txt"), "work");
}
