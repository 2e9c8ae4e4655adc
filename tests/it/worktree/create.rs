//! Making workspaces.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use fleet::worktree::{self, CheckoutMode, RepoSource};

use super::Desk;
use crate::env::{commit_files, git};

const BRANCH: &str = "fleet/task-daily-report-run1";

#[tokio::test]
async fn a_workspace_is_a_clean_worktree_on_its_own_branch() {
    let desk = Desk::new();
    let checkout = desk.create("run1").await;
    assert_eq!(checkout.path, desk.repo.join(".fleet-worktrees/daily-report-run1"));
    assert_eq!(checkout.branch.as_deref(), Some(BRANCH));
    assert_eq!(checkout.base_commit, git(&desk.repo, &["rev-parse", "HEAD"]));
    assert_eq!(git(&checkout.path, &["status", "--porcelain", "--branch"]), format!("## {BRANCH}"));
    assert_eq!(git(&checkout.path, &["fsck", "--strict"]), "");
    let file = std::fs::read_to_string(checkout.path.join("src/deep/file.txt"));
    assert_eq!(file.expect("file is checked out"), "one\n");
    assert_eq!(git(&desk.repo, &["status", "--porcelain"]), "", "the main tree does not see it");
    let listed = git(&desk.repo, &["worktree", "list", "--porcelain"]);
    assert!(listed.contains(&format!("worktree {}", checkout.path.display())), "{listed}");
    assert!(!listed.contains("prunable"), "{listed}");
}

#[tokio::test]
async fn the_parent_is_private_and_excluded_once() {
    let desk = Desk::new();
    desk.create("run1").await;
    desk.create("run2").await;
    let parent = desk.repo.join(".fleet-worktrees");
    let mode = parent.metadata().expect("parent is there").permissions().mode();
    assert_eq!(mode & 0o7777, 0o700);
    let exclude = std::fs::read_to_string(desk.repo.join(".git/info/exclude")).expect("exclude");
    assert_eq!(exclude.matches("/.fleet-worktrees/\n").count(), 1, "{exclude}");
}

#[tokio::test]
async fn the_repository_s_configuration_is_not_touched() {
    let desk = Desk::new();
    let config = desk.repo.join(".git/config");
    let before = std::fs::read(&config).expect("config");
    let checkout = desk.create("run1").await;
    let work = desk.agent_bundle(&checkout, &[("new.txt", "x\n")]);
    worktree::collect(&checkout, super::collect_request(work)).await.expect("collected");
    worktree::remove(checkout.path).await.expect("removed");
    assert_eq!(std::fs::read(&config).expect("config"), before);
}

#[tokio::test]
async fn a_path_with_spaces_and_unicode_works() {
    let desk = Desk::named("dépôt of ☂ things");
    let checkout = desk.create("run1").await;
    assert_eq!(git(&checkout.path, &["status", "--porcelain"]), "");
}

#[tokio::test]
async fn a_bare_repository_works_and_hides_the_siblings() {
    let desk = Desk::new();
    let bare = desk.path("bare.git");
    let (from, to) = (desk.repo.to_str().expect("text"), bare.to_str().expect("text"));
    git(desk.dir.path(), &["clone", "--quiet", "--bare", from, to]);
    let mut request = desk.request("run1", 1);
    request.source = RepoSource::Path(bare.clone());
    let checkout = worktree::create(request).await.expect("workspace is made");
    assert_eq!(checkout.path, bare.join(".fleet-worktrees/daily-report-run1"));
    assert_eq!(git(&checkout.path, &["status", "--porcelain"]), "");
    let view = checkout.git.expect("a branch has a view");
    let parent = view.masks.iter().find(|(_, inside)| *inside == bare.join(".fleet-worktrees"));
    let (alone, _) = parent.expect("the parent is masked");
    let names: Vec<_> = std::fs::read_dir(alone)
        .expect("mask is a directory")
        .map(|entry| entry.expect("entry").file_name())
        .collect();
    assert_eq!(names, ["daily-report-run1"]);
}

#[tokio::test]
async fn a_sha256_repository_works() {
    let desk = Desk::new();
    let repo = desk.path("sha256");
    std::fs::create_dir(&repo).expect("directory");
    git(&repo, &["init", "--quiet", "--object-format=sha256", "--initial-branch=main"]);
    commit_files(&repo, &[("a.txt", "a\n")], "start");
    let mut request = desk.request("run1", 1);
    request.source = RepoSource::Path(repo);
    let checkout = worktree::create(request).await.expect("workspace is made");
    assert_eq!(checkout.base_commit.len(), 64);
    assert_eq!(git(&checkout.path, &["status", "--porcelain"]), "");
    let work = desk.agent_bundle(&checkout, &[("b.txt", "b\n")]);
    let tip = work.1.clone();
    let collected = worktree::collect(&checkout, super::collect_request(work)).await;
    assert_eq!(collected.expect("collected").commit, tip);
}

#[tokio::test]
async fn a_dirty_main_tree_stays_as_it_is_and_out_of_the_workspace() {
    let desk = Desk::new();
    std::fs::write(desk.repo.join("README.md"), "changed\n").expect("write");
    std::fs::write(desk.repo.join(".env"), "TOKEN=1\n").expect("write");
    let before = git(&desk.repo, &["status", "--porcelain"]);
    let checkout = desk.create("run1").await;
    assert_eq!(git(&desk.repo, &["status", "--porcelain"]), before);
    let readme = std::fs::read_to_string(checkout.path.join("README.md")).expect("file");
    assert_eq!(readme, "hello\n");
    assert!(!checkout.path.join(".env").exists());
}

#[tokio::test]
async fn a_detached_head_is_a_base() {
    let desk = Desk::new();
    commit_files(&desk.repo, &[("later.txt", "x\n")], "later");
    git(&desk.repo, &["checkout", "--quiet", "--detach", "HEAD~1"]);
    let checkout = desk.create("run1").await;
    assert_eq!(checkout.base_commit, git(&desk.repo, &["rev-parse", "main~1"]));
    assert!(!checkout.path.join("later.txt").exists());
}

#[tokio::test]
async fn a_base_is_a_branch_or_a_commit() {
    let desk = Desk::new();
    git(&desk.repo, &["branch", "stable"]);
    commit_files(&desk.repo, &[("later.txt", "x\n")], "later");
    let stable = git(&desk.repo, &["rev-parse", "stable"]);
    for (run, base) in [("run1", "stable"), ("run2", "refs/heads/stable"), ("run3", &stable)] {
        let mut request = desk.request(run, 1);
        request.base = Some(base.to_owned());
        let checkout = worktree::create(request).await.expect("workspace is made");
        assert_eq!(checkout.base_commit, stable, "{base}");
    }
}

#[tokio::test]
async fn a_plain_checkout_has_files_and_no_git() {
    let desk = Desk::new();
    let mut request = desk.request("run1", 1);
    request.mode = CheckoutMode::Plain;
    let before = desk.refs();
    let checkout = worktree::create(request).await.expect("workspace is made");
    assert_eq!((checkout.branch.clone(), checkout.git.clone()), (None, None));
    assert!(checkout.path.join("src/deep/file.txt").is_file());
    assert!(!checkout.path.join(".git").exists());
    assert_eq!(desk.refs(), before);
    assert!(!checkout.admin_dir.exists());
    worktree::remove(checkout.path.clone()).await.expect("removed");
    assert!(!checkout.path.exists());
}

#[tokio::test]
async fn a_private_repository_is_made_once_with_an_empty_commit() {
    let desk = Desk::new();
    let dir = desk.path("state/repos");
    let mut request = desk.request("run1", 1);
    request.source = RepoSource::Private { task: "daily-report".into(), dir: dir.clone() };
    let first = worktree::create(request.clone()).await.expect("workspace is made");
    request.run_id = "run2".into();
    let second = worktree::create(request).await.expect("workspace is made");
    assert_eq!(first.base_commit, second.base_commit);
    assert_eq!(first.repo_root, dir.join("daily-report"));
    assert_eq!(git(&first.repo_root, &["log", "--format=%s %an"]), "Start empty fleet");
    assert_eq!(git(&first.path, &["ls-files"]), "");
    let known = worktree::known_repositories(&dir, &desk.path("none"));
    assert_eq!(known, [dir.join("daily-report")]);
}

#[tokio::test]
async fn a_later_attempt_starts_afresh_and_loses_no_commit() {
    let desk = Desk::new();
    let first = desk.create("run1").await;
    let work = desk.agent_bundle(&first, &[("one.txt", "1\n")]);
    let tip = work.1.clone();
    worktree::collect(&first, super::collect_request(work)).await.expect("collected");
    std::fs::write(first.path.join("rubbish"), "x").expect("write");
    let second = worktree::create(desk.request("run1", 2)).await.expect("workspace is made");
    assert!(!second.path.join("rubbish").exists());
    assert!(!second.path.join("one.txt").exists());
    assert_eq!(git(&second.path, &["status", "--porcelain"]), "");
    assert_eq!(git(&desk.repo, &["rev-parse", BRANCH]), first.base_commit);
    assert_eq!(git(&desk.repo, &["rev-parse", "refs/fleet/attempts/run1/1"]), tip);
    assert!(!first.run_dir.exists(), "the earlier attempt's overlay is gone");
}

#[tokio::test]
async fn commits_that_somebody_put_on_the_branch_survive_a_later_attempt() {
    let desk = Desk::new();
    let first = desk.create("run1").await;
    let tree = format!("{}^{{tree}}", first.base_commit);
    let by_hand =
        git(&desk.repo, &["commit-tree", &tree, "-p", &first.base_commit, "-m", "by hand"]);
    git(&desk.repo, &["update-ref", &format!("refs/heads/{BRANCH}"), &by_hand]);
    worktree::create(desk.request("run1", 2)).await.expect("workspace is made");
    assert_eq!(git(&desk.repo, &["rev-parse", "refs/fleet/attempts/run1/1"]), by_hand);
}

#[tokio::test]
async fn many_runs_may_start_and_end_in_one_repository_at_once() {
    let desk = Desk::new();
    let before = desk.refs();
    let runs: Vec<String> = (0..12).map(|number| format!("run{number}")).collect();
    let tasks: Vec<_> = runs
        .iter()
        .map(|run| {
            let request = desk.request(run, 1);
            tokio::spawn(async move {
                let checkout = worktree::create(request).await.expect("workspace is made");
                worktree::remove(checkout.path).await.expect("removed");
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no panic");
    }
    assert_eq!(desk.refs(), before);
}

#[tokio::test]
async fn nothing_planted_in_the_repository_runs_on_the_host() {
    let desk = Desk::new();
    let marker = desk.path("ran");
    plant(&desk.repo, &marker);
    let checkout = desk.create("run1").await;
    let content = std::fs::read_to_string(checkout.path.join("smudged.txt")).expect("file");
    assert_eq!(content, "plain\n");
    // What an agent would leave behind: a nested repository and a pointer to a git directory of its
    // own, both with commands to run.
    let nested = checkout.path.join("nested");
    crate::env::repository(&nested, &[("x", "x")]);
    plant_monitor(&nested, &marker);
    std::fs::write(checkout.path.join(".git"), format!("gitdir: {}/.git\n", nested.display()))
        .expect("write");
    let work = desk.agent_bundle(&checkout, &[("smudged.txt", "new\n")]);
    let _ = std::fs::remove_file(&marker);
    worktree::collect(&checkout, super::collect_request(work)).await.expect("collected");
    worktree::create(desk.request("run1", 2)).await.expect("workspace is made again");
    worktree::remove(checkout.path).await.expect("removed");
    assert!(!marker.exists(), "{:?}", std::fs::read_to_string(&marker));
    git(&desk.repo, &["checkout", "--quiet", "-b", "control"]);
    let ran = std::fs::read_to_string(&marker).expect("git itself runs what was planted");
    assert!(ran.contains("monitor") && ran.contains("post-checkout"), "{ran}");
}

/// Hooks of every kind, a file-system monitor and a smudge filter that leave a mark.
fn plant(repo: &Path, marker: &Path) {
    commit_files(
        repo,
        &[(".gitattributes", "smudged.txt filter=evil diff=evil\n"), ("smudged.txt", "plain\n")],
        "with attributes",
    );
    std::fs::write(repo.join(".git/info/attributes"), "* filter=evil\n").expect("write");
    for hook in ["post-checkout", "reference-transaction", "post-merge", "pre-auto-gc"] {
        let path = repo.join(".git/hooks").join(hook);
        let script = format!("#!/bin/sh\necho {hook} >> '{}'\n", marker.display());
        std::fs::write(&path, script).expect("write");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("mode");
    }
    let command = format!("echo filter >> '{}'; cat", marker.display());
    for key in ["filter.evil.smudge", "filter.evil.clean", "diff.evil.textconv", "diff.external"] {
        git(repo, &["config", key, &command]);
    }
    plant_monitor(repo, marker);
    let _ = std::fs::remove_file(marker);
}

fn plant_monitor(repo: &Path, marker: &Path) {
    let command = format!("echo monitor >> '{}'; false", marker.display());
    git(repo, &["config", "core.fsmonitor", &command]);
}
