//! A new commit is noticed, once, whatever git does to its files.

use std::path::Path;
use std::time::Duration;

use fleet::bundle::{BundleWatch, head_commit};
use fleet::run::CommitId;

use super::MANIFEST;
use crate::env::{commit_files, git, repository};

/// So slow that only events can wake the watch.
const NEVER: Duration = Duration::from_secs(3600);

async fn next(watch: &mut BundleWatch) -> CommitId {
    tokio::time::timeout(Duration::from_secs(20), watch.next()).await.expect("a commit is noticed")
}

fn head(dir: &Path) -> CommitId {
    head_commit(dir).expect("a commit")
}

#[tokio::test]
async fn two_commits_and_a_checkout_are_three_reloads() {
    let dir = tempfile::tempdir().expect("a directory");
    repository(dir.path(), &[("manifest.yaml", MANIFEST)]);
    git(dir.path(), &["branch", "other"]);
    let first = head(dir.path());
    let mut watch =
        BundleWatch::start_with_poll(dir.path(), first.clone(), NEVER).expect("a watch");
    for text in ["one", "two"] {
        commit_files(dir.path(), &[("note", text)], text);
        assert_eq!(next(&mut watch).await, head(dir.path()));
    }
    git(dir.path(), &["checkout", "--quiet", "other"]);
    assert_eq!(next(&mut watch).await, first);
}

#[tokio::test]
async fn a_commit_before_the_watch_is_not_lost() {
    let dir = tempfile::tempdir().expect("a directory");
    repository(dir.path(), &[("manifest.yaml", MANIFEST)]);
    let seen = head(dir.path());
    commit_files(dir.path(), &[("note", "x")], "second");
    let mut watch = BundleWatch::start_with_poll(dir.path(), seen, NEVER).expect("a watch");
    assert_eq!(next(&mut watch).await, head(dir.path()));
}

#[tokio::test]
async fn an_absent_repository_changes_nothing_and_a_new_one_is_watched_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let bundle = dir.path().join("bundle");
    repository(&bundle, &[("manifest.yaml", MANIFEST)]);
    let poll = Duration::from_millis(20);
    let mut watch = BundleWatch::start_with_poll(&bundle, head(&bundle), poll).expect("a watch");

    std::fs::rename(&bundle, dir.path().join("away")).expect("moved");
    let waited = tokio::time::timeout(Duration::from_millis(500), watch.next()).await;
    assert!(waited.is_err(), "the last good commit stands");

    git(dir.path(), &["clone", "--quiet", "away", "bundle"]);
    commit_files(&bundle, &[("note", "x")], "after the return");
    assert_eq!(next(&mut watch).await, head(&bundle));
}

#[tokio::test]
async fn packed_refs_are_noticed() {
    let dir = tempfile::tempdir().expect("a directory");
    repository(dir.path(), &[("manifest.yaml", MANIFEST)]);
    let mut watch =
        BundleWatch::start_with_poll(dir.path(), head(dir.path()), NEVER).expect("a watch");
    git(dir.path(), &["pack-refs", "--all"]);
    commit_files(dir.path(), &[("note", "x")], "after packing");
    assert_eq!(next(&mut watch).await, head(dir.path()));
}
