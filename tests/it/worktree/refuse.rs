//! Repositories and directories that fleet does not work on, and what is left after a failure.

use std::os::unix::fs::symlink;
use std::path::Path;

use fleet::worktree::{self, RepoSource, WorktreeError};

use super::{Desk, words};
use crate::env::{git, repository};

fn refusal(path: &Path) -> String {
    let refused = RepoSource::Path(path.to_owned()).validate().expect_err("it is refused");
    assert!(refused.is_configuration(), "{refused}");
    words(&refused)
}

#[test]
fn only_the_root_of_a_repository_is_accepted() {
    let desk = Desk::new();
    let (repo, plain) = (desk.repo.display().to_string(), desk.path("plain"));
    std::fs::create_dir(&plain).expect("directory");
    assert_eq!(RepoSource::Path(desk.repo.clone()).validate().map_err(|e| words(&e)), Ok(()));
    assert_eq!(
        refusal(&desk.repo.join("src")),
        format!("{repo}/src lies inside the repository {repo}: name the root")
    );
    assert_eq!(refusal(&plain), format!("{} is not a git repository", plain.display()));
}

#[test]
fn a_linked_worktree_is_no_root() {
    let desk = Desk::new();
    let linked = desk.path("linked");
    git(&desk.repo, &["worktree", "add", "--quiet", linked.to_str().expect("text")]);
    assert_eq!(
        refusal(&linked),
        format!(
            "{} is a linked worktree or a submodule: name the repository that owns it",
            linked.display()
        )
    );
}

#[test]
fn a_partial_clone_is_refused() {
    let desk = Desk::new();
    git(&desk.repo, &["config", "remote.origin.promisor", "true"]);
    let path = desk.repo.display();
    assert_eq!(
        refusal(&desk.repo),
        format!("{path} is a partial clone: objects may be missing, clone it whole")
    );
}

#[test]
fn paths_that_a_mount_cannot_carry_are_refused() {
    for (name, found) in [("a:b", "a colon"), ("a,b", "a comma"), ("a\nb", "a control character")] {
        let desk = Desk::named(name);
        let words = refusal(&desk.repo);
        assert!(
            words.ends_with(&format!("contains {found}: a repository's path may not")),
            "{words}"
        );
    }
}

#[test]
fn borrowed_objects_are_refused() {
    let desk = Desk::new();
    let shared = desk.path("shared");
    let (from, to) = (desk.repo.to_str().expect("text"), shared.to_str().expect("text"));
    git(desk.dir.path(), &["clone", "--quiet", "--shared", from, to]);
    assert!(refusal(&shared).contains("borrows objects from another repository"));
}

#[tokio::test]
async fn an_unborn_branch_says_what_to_do() {
    let desk = Desk::new();
    let empty = desk.path("empty");
    std::fs::create_dir(&empty).expect("directory");
    git(&empty, &["init", "--quiet"]);
    let mut request = desk.request("run1", 1);
    request.source = RepoSource::Path(empty.clone());
    let refused = worktree::create(request).await.expect_err("it is refused");
    assert_eq!(
        words(&refused),
        format!("{} has no commits yet: commit something first", empty.display())
    );
}

#[tokio::test]
async fn an_unknown_base_is_named() {
    let desk = Desk::new();
    let mut request = desk.request("run1", 1);
    request.base = Some("mian".into());
    let refused = worktree::create(request).await.expect_err("it is refused");
    assert_eq!(
        words(&refused),
        format!("{} has no branch or commit \"mian\"", desk.repo.display())
    );
}

#[tokio::test]
async fn a_linked_parent_is_refused_and_nothing_is_written_through_it() {
    let desk = Desk::new();
    let elsewhere = desk.path("elsewhere");
    std::fs::create_dir(&elsewhere).expect("directory");
    symlink(&elsewhere, desk.repo.join(".fleet-worktrees")).expect("link");
    let before = desk.refs();
    let refused = worktree::create(desk.request("run1", 1)).await.expect_err("it is refused");
    assert!(matches!(refused, WorktreeError::UnsafeParent(_)), "{refused}");
    assert_eq!(std::fs::read_dir(&elsewhere).expect("directory").count(), 0);
    assert_eq!(desk.refs(), before);
}

#[tokio::test]
async fn a_failure_half_way_leaves_nothing() {
    let desk = Desk::new();
    // Registration fails after the branch was made.
    std::fs::write(desk.repo.join(".git/worktrees"), "in the way").expect("write");
    let before = desk.refs();
    worktree::create(desk.request("run1", 1)).await.expect_err("it fails");
    assert_eq!(desk.refs(), before);
    let count = |path: &Path| std::fs::read_dir(path).expect("directory").count();
    assert_eq!(count(&desk.repo.join(".fleet-worktrees")), 0);
    assert_eq!(count(&desk.repo.join(".git/fleet")), 0);
}

#[tokio::test]
async fn a_failure_after_the_checkout_leaves_nothing() {
    let desk = Desk::new();
    // The masks come last: something that cannot be covered makes them fail.
    symlink("/etc/hostname", desk.repo.join(".git/surprise")).expect("link");
    let before = desk.refs();
    let refused = worktree::create(desk.request("run1", 1)).await.expect_err("it fails");
    assert!(matches!(refused, WorktreeError::Unmaskable(_)), "{refused}");
    assert_eq!(desk.refs(), before);
    let count = |path: &Path| std::fs::read_dir(path).expect("directory").count();
    assert_eq!(count(&desk.repo.join(".fleet-worktrees")), 0);
    assert_eq!(count(&desk.repo.join(".git/worktrees")), 0);
    assert_eq!(count(&desk.path("runs/run1/1")), 0);
}

#[tokio::test]
async fn a_broken_registration_of_somebody_else_is_ignored() {
    let desk = Desk::new();
    let broken = desk.repo.join(".git/worktrees/broken");
    std::fs::create_dir_all(&broken).expect("directory");
    std::fs::write(broken.join("gitdir"), "/nowhere/.git\n").expect("write");
    let checkout = desk.create("run1").await;
    let work = desk.agent_bundle(&checkout, &[("new.txt", "x\n")]);
    let tip = work.1.clone();
    let collected = worktree::collect(&checkout, super::collect_request(work)).await;
    assert_eq!(collected.expect("collected").commit, tip);
    worktree::remove(checkout.path).await.expect("removed");
    assert!(broken.is_dir(), "it is not fleet's to remove");
}

#[tokio::test]
async fn only_history_is_shown_inside() {
    let desk = Desk::new();
    let git_dir = desk.repo.join(".git");
    std::fs::write(git_dir.join("credentials"), "token\n").expect("write");
    std::fs::create_dir_all(git_dir.join("modules/sub")).expect("directory");
    let checkout = desk.create("run1").await;
    let view = checkout.git.expect("a branch has a view");
    let covered: Vec<_> = view
        .masks
        .iter()
        .map(|(_, inside)| inside.strip_prefix(&desk.repo).expect("in the repository"))
        .map(|inside| inside.display().to_string())
        .collect();
    let mut expected: Vec<String> = ["config", "hooks", "config.worktree", "COMMIT_EDITMSG"]
        .map(|n| format!(".git/{n}"))
        .into();
    if git_dir.join("branches").exists() {
        expected.push(".git/branches".into());
    }
    expected.extend(["credentials", "fleet", "modules"].map(|name| format!(".git/{name}")));
    expected.push(".git/worktrees/daily-report-run1/config.worktree".into());
    expected.push(".fleet-worktrees/daily-report-run1/.git".into());
    assert_eq!(covered, expected);
    let config = std::fs::read_to_string(&view.masks[0].0).expect("generated config");
    assert!(config.contains("\tname = fleet agent\n\temail = agent@fleet.invalid\n"), "{config}");
    // A mask of a directory is an empty directory, of a file an empty file.
    for (cover, inside) in &view.masks[1..view.masks.len() - 1] {
        let is_dir = cover.is_dir();
        assert!(!inside.exists() || inside.is_dir() == is_dir, "{inside:?}");
        let empty = if is_dir {
            std::fs::read_dir(cover).expect("directory").count() == 0
        } else {
            cover.metadata().expect("file").len() == 0
        };
        assert!(empty, "{cover:?}");
    }
}

#[test]
fn a_submodule_s_tree_is_no_root() {
    let desk = Desk::new();
    let inner = desk.path("inner");
    repository(&inner, &[("i", "i")]);
    let from = inner.to_str().expect("text");
    git(
        &desk.repo,
        &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", from, "sub"],
    );
    assert!(refusal(&desk.repo.join("sub")).contains("a submodule"));
}
