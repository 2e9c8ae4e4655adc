//! A run's checkout: made, collected, listed, removed. Owns everything that the host does with a
//! repository. Refuses to run git in, or to read the index or configuration of, a tree that an agent
//! could write: results come as a git bundle, and removal is fleet's own.

mod attempts;
mod bundle_header;
mod checkout;
mod collect;
mod create;
mod directory;
mod error;
mod git;
mod inventory;
mod layout;
mod open;
mod private;
mod prune;
mod remove;
mod shield;
mod source;

use std::path::{Path, PathBuf};

pub use collect::{CollectLimits, CollectRequest, Collected};
pub use create::{CheckoutMode, CreateRequest};
pub use error::{BundleError, WorktreeError};
pub use inventory::{Found, RunLife, WorktreeEntry, WorktreeState};
pub use prune::{PruneMode, PruneRequest, Pruned};
pub use remove::Removed;
pub use shield::GitView;
pub use source::RepoSource;

use layout::{Layout, Record};
use source::Repository;

/// Tells of a run id whether its run still lives.
pub type Life<'a> = dyn Fn(&str) -> RunLife + Sync + 'a;

/// One attempt's workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkout {
    /// `<repository>/.fleet-worktrees/<task>-<run>`: the agent's working directory.
    pub path: PathBuf,
    pub task: String,
    pub run_id: String,
    pub attempt: u32,
    /// Without `refs/heads/`; absent for a plain checkout.
    pub branch: Option<String>,
    pub base_commit: String,
    pub repo_root: PathBuf,
    pub git_dir: PathBuf,
    /// git's own directory for this worktree, `<git dir>/worktrees/<task>-<run>`.
    pub admin_dir: PathBuf,
    /// The attempt's host directory: overlay, masks, the bundle while it is read.
    pub run_dir: PathBuf,
    /// What the sandbox mounts; absent for a plain checkout.
    pub git: Option<GitView>,
}

impl Checkout {
    fn from_record(repository: &Repository, layout: &Layout, record: Record) -> Self {
        Checkout {
            path: layout.path.clone(),
            task: record.task,
            run_id: record.run_id,
            attempt: record.attempt,
            branch: record.branch,
            base_commit: record.base_commit,
            repo_root: repository.root.clone(),
            git_dir: repository.git_dir.clone(),
            admin_dir: layout.admin.clone(),
            run_dir: record.run_dir,
            git: record.git,
        }
    }

    /// The workspace at `path`, as its record tells: after a crash, to salvage what is in it.
    pub async fn reopen(path: PathBuf) -> Result<Self, WorktreeError> {
        blocking(move || {
            let (repository, layout) = remove::locate(&path)?;
            let record = layout.read_record().ok_or(WorktreeError::NotOurs(path))?;
            Ok(Checkout::from_record(&repository, &layout, record))
        })
        .await
    }
}

/// Makes a workspace, or leaves nothing behind.
pub async fn create(request: CreateRequest) -> Result<Checkout, WorktreeError> {
    blocking(move || create::create(&request)).await
}

/// Takes the agent's commits out of the bundle that its sandbox sent, into the run's branch. A
/// refused bundle leaves every ref as it was.
pub async fn collect(
    checkout: &Checkout,
    request: CollectRequest,
) -> Result<Collected, WorktreeError> {
    let checkout = checkout.clone();
    blocking(move || collect::collect(&checkout, &request)).await
}

/// Removes a workspace with its overlay. Its branch goes too when it has no commit of its own.
pub async fn remove(path: PathBuf) -> Result<Removed, WorktreeError> {
    blocking(move || remove::remove(&path, None)).await
}

/// Finds all workspaces of these repositories, half-made ones included; repositories that are gone
/// are left out. Ask who is alive *after* this, so that no newborn run is taken for an orphan.
pub async fn scan(repositories: Vec<PathBuf>) -> Result<Vec<Found>, WorktreeError> {
    blocking(move || Ok(inventory::scan(&repositories))).await
}

/// Tells the state of what was found.
pub fn list(found: Vec<Found>, now: jiff::Timestamp, life: &Life<'_>) -> Vec<WorktreeEntry> {
    found.into_iter().map(|found| found.entry(now, life)).collect()
}

/// Removes what no live run owns and what is old enough; one failure does not stop the rest.
pub async fn prune(
    found: Vec<Found>,
    request: PruneRequest,
    life: &Life<'_>,
) -> Result<Vec<Pruned>, WorktreeError> {
    let due = prune::due(found, &request, life);
    blocking(move || Ok(prune::prune(due, request.mode))).await
}

/// The repositories that fleet keeps under `private` (one a task), and those that the directories of
/// runs under `runs` name; sorted.
pub fn known_repositories(private: &Path, runs: &Path) -> Vec<PathBuf> {
    let mut found = inventory::private_repositories(private);
    found.extend(inventory::used_repositories(runs));
    found.sort();
    found.dedup();
    found
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, WorktreeError> + Send + 'static,
) -> Result<T, WorktreeError> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(WorktreeError::Interrupted(error.to_string())))
}
