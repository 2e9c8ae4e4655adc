//! Removes a workspace: its files, its registration with git, its overlay, and its branch when
//! nothing was committed on it. Runs no git: git refuses locked worktrees and those with submodules.

use std::path::Path;

use super::attempts::branch_ref;
use super::directory::remove_if_there;
use super::layout::{Layout, PARENT, Record};
use super::open::{Expect, Handle, is_same};
use super::source::Repository;
use super::{WorktreeError, shield};

/// What became of the branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Removed {
    /// It had no commit of its own, or there was none.
    WithoutBranch,
    /// It holds work and stays.
    BranchKept(String),
}

/// The repository and the places of the workspace at `path`.
pub(super) fn locate(path: &Path) -> Result<(Repository, Layout), WorktreeError> {
    let not_ours = || WorktreeError::NotOurs(path.to_owned());
    let parent = path.parent().ok_or_else(not_ours)?;
    let root = parent.parent().ok_or_else(not_ours)?;
    let name = path.file_name().and_then(|name| name.to_str()).ok_or_else(not_ours)?;
    if parent.file_name().is_none_or(|name| name != PARENT) {
        return Err(not_ours());
    }
    if parent.symlink_metadata().is_ok_and(|meta| !meta.is_dir()) {
        return Err(WorktreeError::UnsafeParent(parent.to_owned()));
    }
    let repository = Repository::find(root)?;
    let layout = Layout::named(&repository, name);
    Ok((repository, layout))
}

/// Removes the workspace at `path`; what is already gone is fine, what fleet did not make is not.
/// With `seen`, only as long as the record still says that: a newer attempt may have taken the place.
/// The record goes last, so that an interrupted removal is found again.
pub(super) fn remove(path: &Path, seen: Option<&Record>) -> Result<Removed, WorktreeError> {
    let (repository, layout) = locate(path)?;
    let Some(record) = layout.read_record() else {
        return if layout.path.symlink_metadata().is_ok() {
            Err(WorktreeError::NotOurs(path.to_owned()))
        } else {
            Ok(Removed::WithoutBranch)
        };
    };
    if seen.is_some_and(|seen| *seen != record) {
        return Err(WorktreeError::TakenAnew(path.to_owned()));
    }
    remove_if_there(&layout.path)?;
    remove_if_there(&layout.admin)?;
    shield::discard(&record.run_dir)?;
    let removed = drop_empty_branch(&repository, &record)?;
    remove_if_there(&layout.record)?;
    Ok(removed)
}

fn drop_empty_branch(repository: &Repository, record: &Record) -> Result<Removed, WorktreeError> {
    let Some(branch) = &record.branch else { return Ok(Removed::WithoutBranch) };
    let handle = Handle::open(repository)?;
    let name = branch_ref(branch);
    match handle.find(&name)? {
        None => Ok(Removed::WithoutBranch),
        Some(tip) if is_same(tip, &record.base_commit) => {
            handle.delete(&name, &Expect::At(tip))?;
            Ok(Removed::WithoutBranch)
        }
        Some(_) => Ok(Removed::BranchKept(branch.clone())),
    }
}
