//! Workspaces, against real git.

mod collect;
mod create;
mod refuse;
mod remove;

use std::path::{Path, PathBuf};

use fleet::worktree::{
    self, Checkout, CheckoutMode, CollectLimits, CollectRequest, CreateRequest, RepoSource,
    WorktreeError,
};

use crate::env::{git, git_output, repository};

/// A scratch directory with a repository, and places for what fleet makes.
struct Desk {
    dir: tempfile::TempDir,
    repo: PathBuf,
}

impl Desk {
    /// An ordinary repository named `name` with two files in one commit.
    fn named(name: &str) -> Self {
        let dir = tempfile::tempdir().expect("scratch directory");
        let repo = dir.path().canonicalize().expect("scratch directory is there").join(name);
        repository(&repo, &[("README.md", "hello\n"), ("src/deep/file.txt", "one\n")]);
        Desk { dir, repo }
    }

    fn new() -> Self {
        Desk::named("repo")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().expect("scratch directory is there").join(name)
    }

    fn request(&self, run_id: &str, attempt: u32) -> CreateRequest {
        CreateRequest {
            source: RepoSource::Path(self.repo.clone()),
            task: "daily-report".into(),
            run_id: run_id.into(),
            attempt,
            branch_prefix: "fleet/task-".into(),
            base: None,
            mode: CheckoutMode::Branch,
            run_dir: self.path("runs").join(run_id).join(attempt.to_string()),
            now: jiff::Timestamp::UNIX_EPOCH,
        }
    }

    async fn create(&self, run_id: &str) -> Checkout {
        worktree::create(self.request(run_id, 1)).await.expect("workspace is made")
    }

    /// Commits `files` on the checkout's base as an agent would, elsewhere, and bundles them.
    fn agent_bundle(&self, checkout: &Checkout, files: &[(&str, &str)]) -> (Vec<u8>, String) {
        let clone = tempfile::tempdir_in(self.dir.path()).expect("scratch directory");
        let from = checkout.git_dir.to_str().expect("path is text");
        git(clone.path(), &["clone", "--quiet", "--no-checkout", from, "."]);
        git(clone.path(), &["checkout", "--quiet", "--detach", &checkout.base_commit]);
        crate::env::commit_files(clone.path(), files, "agent's work");
        bundle_of(clone.path(), &checkout.base_commit)
    }

    /// Every ref and its target.
    fn refs(&self) -> String {
        git(&self.repo, &["for-each-ref", "--format=%(refname) %(objectname)"])
    }
}

/// The bundle `base..HEAD` of a clone, and its tip.
fn bundle_of(clone: &Path, base: &str) -> (Vec<u8>, String) {
    let range = format!("{base}..HEAD");
    let output = git_output(clone, &["bundle", "create", "--quiet", "-", &range]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    (output.stdout, git(clone, &["rev-parse", "HEAD"]))
}

fn collect_request((bundle, head): (Vec<u8>, String)) -> CollectRequest {
    CollectRequest { bundle, head: Some(head), limits: CollectLimits::default() }
}

/// The error's text with its cause.
fn words(error: &WorktreeError) -> String {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
    format!("{error}{}", cause.unwrap_or_default())
}
