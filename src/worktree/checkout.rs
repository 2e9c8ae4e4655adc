//! Writes a commit's files into a directory with gix: no filter program, hook or file-system monitor
//! runs, whatever attributes and configuration the repository has.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use gix::ObjectId;

use super::WorktreeError;
use super::open::Handle;

/// Checks the tree of `commit` out into the empty directory `dir`, and writes the index that belongs
/// to it where one is wanted.
pub(super) fn write_files(
    handle: &Handle,
    commit: ObjectId,
    dir: &Path,
    index_path: Option<&Path>,
) -> Result<(), WorktreeError> {
    let doing = "check out";
    let failed = |error: gix::Error| handle.error(doing, &error);
    let tree = handle.git.find_commit(commit).map_err(failed)?.tree_id().map_err(failed)?;
    let mut index = handle.git.index_from_tree(&tree).map_err(failed)?;
    let source = gix::worktree::stack::state::attributes::Source::IdMapping;
    let mut options = handle.git.checkout_options(source).map_err(failed)?;
    options.destination_is_initially_empty = true;
    let objects = handle
        .git
        .objects
        .clone()
        .into_arc()
        .map_err(|error| WorktreeError::io("read objects for", dir, error))?;
    let nobody = gix::progress::Discard;
    let done = gix::worktree::state::checkout(
        &mut index,
        dir,
        objects,
        &nobody,
        &nobody,
        &AtomicBool::new(false),
        options,
    )
    .map_err(failed)?;
    let refused = |what: String| WorktreeError::Gix { doing, path: dir.to_owned(), message: what };
    if let Some(first) = done.errors.first() {
        return Err(refused(format!("{}: {}", first.path, first.error)));
    }
    if let Some(first) = done.collisions.first() {
        return Err(refused(format!("{} collides with another file", first.path)));
    }
    if let Some(path) = index_path {
        index.set_path(path);
        index.write(gix::index::write::Options::default()).map_err(failed)?;
    }
    Ok(())
}
