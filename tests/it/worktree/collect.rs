//! Taking an agent's commits over.

use std::time::Duration;

use fleet::worktree::{self, BundleError, Checkout, Collected, WorktreeError};

use super::{Desk, bundle_of, collect_request};
use crate::env::{commit_files, git, git_output};

const BRANCH: &str = "refs/heads/fleet/task-daily-report-run1";

async fn refused(desk: &Desk, checkout: &Checkout, bundle: Vec<u8>, head: String) -> WorktreeError {
    let before = desk.refs();
    let request = collect_request((bundle, head));
    let refused = worktree::collect(checkout, request).await.expect_err("it is refused");
    assert_eq!(desk.refs(), before, "no ref may change");
    assert!(!checkout.run_dir.join("agent.bundle").exists());
    assert!(refused.is_refusal(), "another try would not help: {refused}");
    refused
}

#[tokio::test]
async fn commits_arrive_on_the_branch_and_are_kept_by_attempt() {
    let desk = Desk::new();
    let checkout = desk.create("run1").await;
    let work = desk.agent_bundle(&checkout, &[("new.txt", "a\nb\n"), ("README.md", "bye\n")]);
    let tip = work.1.clone();
    let collected = worktree::collect(&checkout, collect_request(work)).await.expect("collected");
    assert_eq!(
        collected,
        Collected {
            commit: tip.clone(),
            commits: 1,
            diff_stat: "2 files changed, 3 insertions(+), 1 deletion(-)".into(),
            kept_at: "refs/fleet/attempts/run1/1".into(),
        }
    );
    let base = &checkout.base_commit;
    assert_eq!(
        desk.refs(),
        format!("refs/fleet/attempts/run1/1 {tip}\n{BRANCH} {tip}\nrefs/heads/main {base}")
    );
}

#[tokio::test]
async fn collecting_twice_is_the_same_as_once() {
    let desk = Desk::new();
    let checkout = desk.create("run1").await;
    let work = desk.agent_bundle(&checkout, &[("new.txt", "a\n")]);
    let first = worktree::collect(&checkout, collect_request(work.clone())).await;
    let after = desk.refs();
    let second = worktree::collect(&checkout, collect_request(work)).await;
    assert_eq!(first.expect("collected"), second.expect("collected"));
    assert_eq!(desk.refs(), after);
}

#[tokio::test]
async fn the_second_attempt_s_work_takes_the_branch_and_the_first_s_stays() {
    let desk = Desk::new();
    let first = desk.create("run1").await;
    let one = desk.agent_bundle(&first, &[("one.txt", "1\n")]);
    worktree::collect(&first, collect_request(one.clone())).await.expect("collected");
    let second = worktree::create(desk.request("run1", 2)).await.expect("workspace is made");
    let two = desk.agent_bundle(&second, &[("two.txt", "2\n")]);
    worktree::collect(&second, collect_request(two.clone())).await.expect("collected");
    let (one, two, base) = (one.1, two.1, second.base_commit);
    assert_eq!(
        desk.refs(),
        format!(
            "refs/fleet/attempts/run1/1 {one}\nrefs/fleet/attempts/run1/2 {two}\n{BRANCH} {two}\n\
             refs/heads/main {base}"
        )
    );
}

#[tokio::test]
async fn a_branch_that_somebody_moved_is_not_overwritten() {
    let desk = Desk::new();
    let checkout = desk.create("run1").await;
    let base = checkout.base_commit.clone();
    let tree = format!("{base}^{{tree}}");
    let by_hand = git(&desk.repo, &["commit-tree", &tree, "-p", &base, "-m", "by hand"]);
    git(&desk.repo, &["update-ref", BRANCH, &by_hand]);
    let work = desk.agent_bundle(&checkout, &[("new.txt", "a\n")]);
    let tip = work.1.clone();
    let error = worktree::collect(&checkout, collect_request(work)).await.expect_err("refused");
    assert_eq!(
        error.to_string(),
        format!(
            "branch fleet/task-daily-report-run1 was moved to {by_hand} by somebody else; the work \
             is at refs/fleet/attempts/run1/1"
        )
    );
    assert!(error.is_refusal(), "another try finds the branch moved as well");
    assert_eq!(git(&desk.repo, &["rev-parse", BRANCH]), by_hand);
    assert_eq!(git(&desk.repo, &["rev-parse", "refs/fleet/attempts/run1/1"]), tip);
}

#[tokio::test]
async fn a_bundle_with_other_refs_is_refused() {
    let desk = Desk::new();
    let checkout = desk.create("run1").await;
    let clone = desk.path("clone");
    git(desk.dir.path(), &["clone", "--quiet", desk.repo.to_str().expect("text"), "clone"]);
    commit_files(&clone, &[("evil.txt", "x\n")], "evil");
    let range = format!("{}..main", checkout.base_commit);
    let bundle = git_output(&clone, &["bundle", "create", "--quiet", "-", &range]).stdout;
    let head = git(&clone, &["rev-parse", "HEAD"]);
    let error = refused(&desk, &checkout, bundle, head).await;
    assert!(
        matches!(
            &error,
            WorktreeError::Bundle(BundleError::UnexpectedRef(name)) if name == "refs/heads/main"
        ),
        "{error}"
    );
}

#[tokio::test]
async fn work_that_does_not_descend_from_the_base_is_refused() {
    let desk = Desk::new();
    let checkout = desk.create("run1").await;
    let other = desk.path("other");
    crate::env::repository(&other, &[("other.txt", "x\n")]);
    let bundle = git_output(&other, &["bundle", "create", "--quiet", "-", "HEAD"]).stdout;
    let head = git(&other, &["rev-parse", "HEAD"]);
    let error = refused(&desk, &checkout, bundle, head.clone()).await;
    let expected = format!("commit {head} does not descend from the base {}", checkout.base_commit);
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn a_bundle_whose_base_is_unknown_here_is_refused() {
    let desk = Desk::new();
    let checkout = desk.create("run1").await;
    let other = desk.path("other");
    crate::env::repository(&other, &[("other.txt", "x\n")]);
    let base = git(&other, &["rev-parse", "HEAD"]);
    commit_files(&other, &[("more.txt", "x\n")], "more");
    let (bundle, head) = bundle_of(&other, &base);
    let error = refused(&desk, &checkout, bundle, head).await;
    let content = matches!(&error, WorktreeError::Bundle(BundleError::Content { verb, .. }) if verb == "bundle");
    assert!(content, "{error}");
}

#[tokio::test]
async fn a_tip_other_than_the_announced_one_is_refused() {
    let desk = Desk::new();
    let checkout = desk.create("run1").await;
    let (bundle, found) = desk.agent_bundle(&checkout, &[("new.txt", "a\n")]);
    let claimed = checkout.base_commit.clone();
    let error = refused(&desk, &checkout, bundle, claimed.clone()).await;
    assert_eq!(
        error.to_string(),
        format!(
            "the agent's bundle is refused: it ends in {found}, the sandbox announced {claimed}"
        )
    );
}

#[tokio::test]
async fn garbage_and_every_damaged_bundle_is_refused() {
    let desk = Desk::new();
    let checkout = desk.create("run1").await;
    let (bundle, head) = desk.agent_bundle(&checkout, &[("new.txt", "a\n")]);
    refused(&desk, &checkout, b"garbage".to_vec(), head.clone()).await;
    refused(&desk, &checkout, Vec::new(), head.clone()).await;
    refused(&desk, &checkout, bundle[..bundle.len() - 7].to_vec(), head.clone()).await;
    let mut flipped = bundle;
    let middle = flipped.len() - 60;
    flipped[middle] ^= 0xff;
    refused(&desk, &checkout, flipped, head).await;
}

#[tokio::test]
async fn too_many_bytes_or_objects_are_refused() {
    let desk = Desk::new();
    let checkout = desk.create("run1").await;
    let before = desk.refs();
    let work = desk.agent_bundle(&checkout, &[("new.txt", "a\n")]);
    let mut request = collect_request(work);
    let size = request.bundle.len() as u64;
    request.limits.max_bytes = size - 1;
    let error = worktree::collect(&checkout, request.clone()).await.expect_err("refused");
    assert!(matches!(error, WorktreeError::Bundle(BundleError::TooLarge { .. })), "{error}");
    request.limits.max_bytes = size;
    request.limits.max_objects = 2;
    let error = worktree::collect(&checkout, request).await.expect_err("refused");
    let expected = BundleError::TooManyObjects { objects: 3, max: 2 };
    assert!(matches!(&error, WorktreeError::Bundle(found) if *found == expected), "{error}");
    assert_eq!(desk.refs(), before);
}

#[tokio::test]
async fn git_that_takes_too_long_is_ended_and_can_be_tried_again() {
    let desk = Desk::new();
    let checkout = desk.create("run1").await;
    let before = desk.refs();
    let work = desk.agent_bundle(&checkout, &[("new.txt", "a\n")]);
    let mut request = collect_request(work);
    request.limits.timeout = Duration::ZERO;
    let error = worktree::collect(&checkout, request.clone()).await.expect_err("refused");
    assert_eq!(error.to_string(), "git bundle took longer than 0ns and was killed");
    assert!(!error.is_refusal());
    assert_eq!(desk.refs(), before);
    request.limits.timeout = Duration::from_secs(60);
    worktree::collect(&checkout, request).await.expect("collected");
}

#[tokio::test]
async fn a_malformed_tree_is_refused_by_fsck() {
    let desk = Desk::new();
    let checkout = desk.create("run1").await;
    let clone = desk.path("clone");
    git(desk.dir.path(), &["clone", "--quiet", desk.repo.to_str().expect("text"), "clone"]);
    // A tree with an entry named `.git`, which a checkout must never write.
    let script = "printf '100644 blob %s\\t.git\\n' $(git hash-object -w README.md) | git mktree";
    let tree = sh(&clone, script);
    let tip = git(&clone, &["commit-tree", &tree, "-p", &checkout.base_commit, "-m", "evil"]);
    git(&clone, &["checkout", "--quiet", "--detach", "HEAD"]);
    git(&clone, &["update-ref", "--no-deref", "HEAD", &tip]);
    let (bundle, head) = bundle_of(&clone, &checkout.base_commit);
    let error = refused(&desk, &checkout, bundle, head).await;
    assert!(error.to_string().contains("hasDotgit"), "{error}");
}

fn sh(dir: &std::path::Path, script: &str) -> String {
    let output = std::process::Command::new("sh")
        .args(["-c", script])
        .current_dir(dir)
        .output()
        .expect("sh starts");
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}

#[tokio::test]
async fn a_reopened_checkout_collects_like_the_first() {
    let desk = Desk::new();
    let checkout = desk.create("run1").await;
    let reopened = Checkout::reopen(checkout.path.clone()).await.expect("it is on record");
    assert_eq!(reopened, checkout);
}
