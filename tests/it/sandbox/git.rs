//! A repository inside: the agent works in an overlay, and its commits leave as a bundle.

use std::collections::BTreeMap;
use std::path::Path;

use fleet::sandbox::{Call, GitMounts, Reply, Sandbox};
use fleet::worktree::{
    self, Checkout, CheckoutMode, CollectLimits, CollectRequest, CreateRequest, RepoSource,
};

use super::{call, ended, told};
use crate::env::sandbox::Cell;
use crate::env::{git, git_output, repository};

async fn checkout(cell: &Cell, run_id: &str) -> Checkout {
    let repo = cell.path("repo");
    repository(&repo, &[("README.md", "hello\n")]);
    let request = CreateRequest {
        source: RepoSource::Path(repo),
        task: "some-task".into(),
        run_id: run_id.into(),
        attempt: 1,
        branch_prefix: "fleet/task-".into(),
        base: None,
        mode: CheckoutMode::Branch,
        run_dir: cell.path("attempt"),
        now: jiff::Timestamp::UNIX_EPOCH,
    };
    worktree::create(request).await.expect("workspace is made")
}

fn mounts(checkout: &Checkout) -> GitMounts {
    let view = checkout.git.clone().expect("a checkout with a branch");
    GitMounts { git_dir: view.git_dir, upper: view.upper, work: view.work, masks: view.masks }
}

/// Every file below `dir` with its content.
fn content(dir: &Path) -> BTreeMap<std::path::PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(dir).expect("list") {
        let path = entry.expect("entry").path();
        if path.is_dir() && !path.is_symlink() {
            all.extend(content(&path));
        } else {
            let bytes = std::fs::read(&path).expect("file");
            all.insert(path, bytes);
        }
    }
    all
}

async fn bundle(
    sandbox: &fleet::sandbox::PodmanSandbox,
    checkout: &Checkout,
) -> (Vec<u8>, String, bool) {
    let collect = Call::CollectGit {
        base: checkout.base_commit.clone(),
        message: "uncommitted work".into(),
        max_bytes: 1 << 20,
    };
    match call(sandbox, collect).await.expect("collected") {
        Reply::Git(bundle) => {
            (bundle.bytes.expect("a bundle"), bundle.head.expect("a tip"), bundle.salvaged)
        }
        other => panic!("another reply: {other:?}"),
    }
}

#[tokio::test]
async fn commits_stay_in_the_overlay_and_leave_as_a_bundle() {
    let cell = Cell::new().await;
    let checkout = checkout(&cell, "run-git").await;
    let before = content(&checkout.git_dir);
    let spec = cell.spec_with("run-git", checkout.path.clone(), mounts(&checkout));
    let sandbox = cell.start_spec(spec).await;
    let seen = told(
        &sandbox,
        "git status --porcelain && echo more >> README.md && git commit -qam 'agent work' && git branch side && \
         git stash list && git log --format='%an %s' | head -1 && echo loose > loose.txt ; echo x 2>/dev/null > .git; \
         git config user.name nobody 2>/dev/null; ls .git/hooks 2>/dev/null; git rev-parse --abbrev-ref HEAD",
    )
    .await;
    assert_eq!(seen, ended(0, "fleet agent agent work\nfleet/task-some-task-run-git\n"));
    assert_eq!(content(&checkout.git_dir), before);
    let (bytes, head, salvaged) = bundle(&sandbox, &checkout).await;
    assert!(salvaged);
    let file = cell.path("work.bundle");
    std::fs::write(&file, &bytes).expect("file");
    let verified =
        git_output(&cell.path("repo"), &["bundle", "verify", file.to_str().expect("text")]);
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
    assert_eq!(content(&checkout.git_dir), before);
    sandbox.close().await;
    let request =
        CollectRequest { bundle: bytes, head: Some(head), limits: CollectLimits::default() };
    let collected = worktree::collect(&checkout, request).await.expect("fetched");
    assert_eq!(collected.commits, 2);
    let range = format!("{}..{}", checkout.base_commit, collected.commit);
    let subjects = git(&cell.path("repo"), &["log", "--format=%s", &range]);
    assert_eq!(subjects, "uncommitted work\nagent work");
}

#[tokio::test]
async fn a_fresh_container_on_the_same_overlay_salvages_the_commits() {
    let cell = Cell::new().await;
    let checkout = checkout(&cell, "run-salvage").await;
    let spec = cell.spec_with("run-salvage", checkout.path.clone(), mounts(&checkout));
    let first = cell.start_spec(spec.clone()).await;
    let committed =
        told(&first, "echo more >> README.md && git commit -qam 'agent work'; git rev-parse HEAD")
            .await;
    cell.podman.remove_run("run-salvage").await.expect("it is removed");
    let second = cell.start_spec(spec).await;
    let (_, head, salvaged) = bundle(&second, &checkout).await;
    assert_eq!((committed, salvaged), (ended(0, &format!("{head}\n")), false));
    second.close().await;
}

#[tokio::test]
async fn the_pointer_to_the_repository_is_neither_linked_nor_replaced() {
    let cell = Cell::new().await;
    let checkout = checkout(&cell, "run-pointer").await;
    let pointer = std::fs::read(checkout.path.join(".git")).expect("a pointer");
    let spec = cell.spec_with("run-pointer", checkout.path.clone(), mounts(&checkout));
    let sandbox = cell.start_spec(spec).await;
    let seen = told(
        &sandbox,
        "for attempt in 'ln .git hard' 'mv .git moved' 'rm -f .git' 'rm -rf .git' 'ln -sfn /tmp .git' 'cp /dev/null .git' \
         'truncate -s 0 .git' 'chmod 777 .git' 'mv README.md .git' 'umount .git'; do \
         $attempt 2>/dev/null && echo $attempt; done; ls -A",
    )
    .await;
    assert_eq!(seen, ended(0, ".git\nREADME.md\n"));
    sandbox.close().await;
    assert_eq!(std::fs::read(checkout.path.join(".git")).expect("a pointer"), pointer);
}
