//! Listing, removing and pruning.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;

use fleet::worktree::{
    self, PruneMode, PruneRequest, Removed, RunLife, WorktreeEntry, WorktreeError, WorktreeState,
};
use jiff::Timestamp;

use super::{Desk, collect_request};
use crate::env::git;

const HOUR: u64 = 3600;

fn at(hours: u64) -> Timestamp {
    Timestamp::UNIX_EPOCH + Duration::from_secs(hours * HOUR)
}

fn lost(_: &str) -> RunLife {
    RunLife::Lost
}

async fn prune(desk: &Desk, older_than: u64, mode: PruneMode) -> Vec<String> {
    let found = worktree::scan(vec![desk.repo.clone()]).await.expect("scanned");
    let older_than = Duration::from_secs(older_than * HOUR);
    let request = PruneRequest { older_than, now: at(30), mode };
    let pruned = worktree::prune(found, request, &lost).await.expect("pruned");
    pruned
        .into_iter()
        .map(|pruned| {
            assert_eq!(pruned.error, None);
            pruned.entry.run_id
        })
        .collect()
}

#[tokio::test]
async fn an_empty_branch_goes_with_its_workspace() {
    let desk = Desk::new();
    let before = desk.refs();
    let checkout = desk.create("run1").await;
    let removed = worktree::remove(checkout.path.clone()).await.expect("removed");
    assert_eq!(removed, Removed::WithoutBranch);
    assert_eq!(desk.refs(), before);
    for gone in [&checkout.path, &checkout.admin_dir, &checkout.run_dir] {
        assert!(!gone.exists(), "{gone:?}");
    }
    assert_eq!(git(&desk.repo, &["worktree", "prune", "--dry-run", "--verbose"]), "");
    let again = worktree::remove(checkout.path).await.expect("removing twice is fine");
    assert_eq!(again, Removed::WithoutBranch);
}

#[tokio::test]
async fn a_branch_with_commits_stays() {
    let desk = Desk::new();
    let checkout = desk.create("run1").await;
    let work = desk.agent_bundle(&checkout, &[("new.txt", "a\n")]);
    worktree::collect(&checkout, collect_request(work)).await.expect("collected");
    let before = desk.refs();
    let removed = worktree::remove(checkout.path.clone()).await.expect("removed");
    assert_eq!(removed, Removed::BranchKept("fleet/task-daily-report-run1".into()));
    assert_eq!(desk.refs(), before);
    git(&desk.repo, &["checkout", "--quiet", "fleet/task-daily-report-run1"]);
}

#[tokio::test]
async fn whatever_an_agent_left_is_removed_and_no_link_is_followed() {
    let desk = Desk::new();
    let checkout = desk.create("run1").await;
    let precious = desk.path("precious");
    std::fs::create_dir(&precious).expect("directory");
    std::fs::write(precious.join("file"), "x").expect("write");
    symlink(&precious, checkout.path.join("link")).expect("link");
    let closed = checkout.path.join("closed");
    std::fs::create_dir_all(closed.join("inner")).expect("directory");
    std::fs::write(closed.join("inner/file"), "x").expect("write");
    std::fs::set_permissions(closed.join("inner"), PermissionsExt::from_mode(0o000)).expect("mode");
    std::fs::set_permissions(&closed, PermissionsExt::from_mode(0o000)).expect("mode");
    std::fs::set_permissions(&checkout.path, PermissionsExt::from_mode(0o500)).expect("mode");
    worktree::remove(checkout.path.clone()).await.expect("removed");
    assert!(!checkout.path.exists());
    assert!(precious.join("file").exists());
}

#[tokio::test]
async fn what_the_container_s_root_left_in_the_overlay_is_removed() {
    let desk = Desk::new();
    let checkout = desk.create("run1").await;
    let work = checkout.run_dir.join("work/work");
    let script = "mkdir \"$0\" && chown 1:1 \"$0\" && chmod 0 \"$0\"";
    let mut command = std::process::Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        command.args(["--map-root-user", "--map-auto"]);
    }
    let made = command.args(["sh", "-c", script]).arg(&work).status().expect("unshare starts");
    assert!(made.success(), "needs a range of subordinate ids");
    worktree::remove(checkout.path).await.expect("removed");
    assert!(!checkout.run_dir.exists());
}

#[tokio::test]
async fn a_very_deep_tree_is_removed() {
    let desk = Desk::new();
    let checkout = desk.create("run1").await;
    dig(&checkout.path, 3000);
    worktree::remove(checkout.path.clone()).await.expect("removed");
    assert!(!checkout.path.exists());
}

/// A chain of directories deeper than a path can name.
fn dig(from: &Path, depth: u32) {
    use rustix::fs::{Mode, OFlags, mkdirat, open, openat};
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut dir = open(from, flags, Mode::empty()).expect("open");
    for _ in 0..depth {
        mkdirat(&dir, "d", Mode::RWXU).expect("mkdir");
        dir = openat(&dir, "d", flags, Mode::empty()).expect("open");
    }
}

#[tokio::test]
async fn a_directory_that_fleet_did_not_make_is_left_alone() {
    let desk = Desk::new();
    desk.create("run1").await;
    let foreign = desk.repo.join(".fleet-worktrees/mine-run7");
    std::fs::create_dir(&foreign).expect("directory");
    let refused = worktree::remove(foreign.clone()).await.expect_err("refused");
    assert!(matches!(refused, WorktreeError::NotOurs(_)), "{refused}");
    assert_eq!(prune(&desk, 0, PruneMode::Remove).await, ["run1"]);
    assert!(foreign.is_dir());
}

#[tokio::test]
async fn a_list_tells_who_needs_each_workspace() {
    let desk = Desk::new();
    for run in ["run1", "run2", "run3"] {
        desk.create(run).await;
    }
    let found = worktree::scan(vec![desk.repo.clone(), desk.path("gone")]).await.expect("scanned");
    let entries = worktree::list(found, at(2), &|run| match run {
        "run1" => RunLife::Live,
        "run2" => RunLife::Ended,
        _ => RunLife::Lost,
    });
    let entry = |run: &str, state| WorktreeEntry {
        path: desk.repo.join(format!(".fleet-worktrees/daily-report-{run}")),
        task: "daily-report".into(),
        run_id: run.into(),
        branch: Some(format!("fleet/task-daily-report-{run}")),
        age_secs: 2 * HOUR,
        bytes: 0,
        state,
    };
    assert!(entries.iter().all(|entry| entry.bytes > 0));
    let entries: Vec<_> =
        entries.into_iter().map(|entry| WorktreeEntry { bytes: 0, ..entry }).collect();
    let expected = [
        entry("run1", WorktreeState::Live),
        entry("run2", WorktreeState::Kept),
        entry("run3", WorktreeState::Orphan),
    ];
    assert_eq!(entries, expected);
}

#[tokio::test]
async fn prune_takes_the_old_and_unneeded_and_leaves_the_siblings_whole() {
    let desk = Desk::new();
    let mut made = Vec::new();
    for (run, hours) in [("run1", 0), ("run2", 0), ("run3", 20)] {
        let mut request = desk.request(run, 1);
        request.now = at(hours);
        made.push(worktree::create(request).await.expect("workspace is made"));
    }
    let found = worktree::scan(vec![desk.repo.clone()]).await.expect("scanned");
    let older_than = Duration::from_secs(24 * HOUR);
    let request = PruneRequest { older_than, now: at(30), mode: PruneMode::Remove };
    let life = |run: &str| if run == "run2" { RunLife::Live } else { RunLife::Lost };
    let pruned = worktree::prune(found, request, &life).await.expect("pruned");
    let ids: Vec<_> = pruned.iter().map(|pruned| pruned.entry.run_id.as_str()).collect();
    assert_eq!(ids, ["run1"]);
    assert!(!made[0].path.exists());
    for sibling in &made[1..] {
        assert_eq!(git(&sibling.path, &["status", "--porcelain"]), "");
        assert!(sibling.run_dir.join("upper").is_dir());
    }
}

#[tokio::test]
async fn the_directory_of_a_run_tells_which_repository_it_uses() {
    let desk = Desk::new();
    let checkout = desk.create("run1").await;
    let known = || worktree::known_repositories(&desk.path("none"), &desk.path("runs"));
    assert_eq!(known(), std::slice::from_ref(&desk.repo));
    worktree::remove(checkout.path).await.expect("removed");
    assert_eq!(known(), Vec::<std::path::PathBuf>::new());
}

#[tokio::test]
async fn a_workspace_that_was_made_anew_after_the_scan_stays() {
    let desk = Desk::new();
    desk.create("run1").await;
    let found = worktree::scan(vec![desk.repo.clone()]).await.expect("scanned");
    let second = worktree::create(desk.request("run1", 2)).await.expect("workspace is made");
    let request = PruneRequest { older_than: Duration::ZERO, now: at(30), mode: PruneMode::Remove };
    let pruned = worktree::prune(found, request, &lost).await.expect("pruned");
    let error = format!("{} belongs to a newer attempt by now", second.path.display());
    assert_eq!(pruned[0].error, Some(error));
    assert_eq!(git(&second.path, &["status", "--porcelain"]), "");
}

#[tokio::test]
async fn a_dry_run_removes_nothing() {
    let desk = Desk::new();
    let checkout = desk.create("run1").await;
    let before = desk.refs();
    assert_eq!(prune(&desk, 24, PruneMode::DryRun).await, ["run1"]);
    assert_eq!(desk.refs(), before);
    assert_eq!(git(&checkout.path, &["status", "--porcelain"]), "");
}

#[tokio::test]
async fn half_made_locked_and_submodule_bearing_workspaces_are_pruned() {
    let desk = Desk::new();
    let locked = desk.create("run1").await;
    git(&desk.repo, &["worktree", "lock", locked.path.to_str().expect("text")]);
    let with_modules = desk.create("run2").await;
    std::fs::create_dir_all(with_modules.admin_dir.join("modules/sub/objects")).expect("directory");
    std::fs::create_dir_all(with_modules.path.join("sub")).expect("directory");
    std::fs::write(with_modules.path.join("sub/.git"), "gitdir: elsewhere\n").expect("write");
    let no_files = desk.create("run3").await;
    std::fs::remove_dir_all(&no_files.path).expect("remove");
    let no_common_dir = desk.create("run4").await;
    std::fs::remove_file(no_common_dir.admin_dir.join("commondir")).expect("remove");
    let unregistered = desk.create("run5").await;
    std::fs::remove_dir_all(&unregistered.admin_dir).expect("remove");
    let all = ["run1", "run2", "run3", "run4", "run5"];
    assert_eq!(prune(&desk, 24, PruneMode::Remove).await, all);
    assert_eq!(prune(&desk, 0, PruneMode::Remove).await, [""; 0]);
    assert_eq!(desk.refs().lines().count(), 1, "{}", desk.refs());
    for checkout in [locked, with_modules, no_files, no_common_dir, unregistered] {
        assert!(!checkout.path.exists());
        assert!(!checkout.admin_dir.exists());
    }
}
