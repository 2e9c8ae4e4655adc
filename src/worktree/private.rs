//! Repositories that fleet keeps for tasks without one of their own: an ordinary repository whose
//! `main` holds one empty commit.

use std::path::{Path, PathBuf};

use super::WorktreeError;
use super::directory::{make_private, remove_if_there};
use super::open::{Handle, IDENTITY};

/// The repository of `task` under `dir`; made when it is missing. Two makers at once are fine: one
/// finished repository is moved into place, the other is thrown away.
pub(super) fn ensure(dir: &Path, task: &str) -> Result<PathBuf, WorktreeError> {
    let root = dir.join(task);
    if root.join(".git").is_dir() {
        return Ok(root);
    }
    std::fs::create_dir_all(dir).map_err(|error| WorktreeError::io("make", dir, error))?;
    let draft = dir.join(format!(".{task}.{}", std::process::id()));
    remove_if_there(&draft)?;
    make_private(&draft)?;
    let made = initialise(&draft).and_then(|()| match std::fs::rename(&draft, &root) {
        Ok(()) => Ok(()),
        // Another process was faster.
        Err(_) if root.join(".git").is_dir() => remove_if_there(&draft),
        Err(error) => Err(WorktreeError::io("make the private repository", &root, error)),
    });
    if made.is_err() {
        // The first error is the one to report.
        let _ = remove_if_there(&draft);
    }
    made.map(|()| root)
}

fn initialise(root: &Path) -> Result<(), WorktreeError> {
    let failed = |error| WorktreeError::gix("make the private repository", root, &error);
    gix::create::into(root, gix::create::Kind::WithWorktree, gix::create::Options::default())
        .map_err(failed)?;
    let handle = Handle::open_dir(&root.join(".git"), root)?;
    let (name, email) = IDENTITY;
    let signature =
        gix::actor::SignatureRef { name: name.into(), email: email.into(), time: "0 +0000" };
    let tree = handle.git.write_object(gix::objs::Tree::empty()).map_err(failed)?.detach();
    handle
        .git
        .commit_as(signature, signature, "HEAD", "Start empty", tree, gix::commit::NO_PARENT_IDS)
        .map(drop)
        .map_err(failed)
}
