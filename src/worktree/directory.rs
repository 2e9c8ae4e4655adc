//! Directories that fleet owns: made private, never through a link, removed whatever the agent left
//! in them.

use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::WorktreeError;

/// Deeper directories are moved up before they are emptied, so that open files stay few however
/// deep the agent nested them.
const MAX_DEPTH: usize = 32;

/// Makes a directory that only this user may enter; its parent must exist.
pub(super) fn make_private(dir: &Path) -> Result<(), WorktreeError> {
    std::fs::DirBuilder::new()
        .mode(0o700)
        .create(dir)
        .map_err(|error| WorktreeError::io("make", dir, error))
}

/// Makes `dir` if it is missing; refuses links, files and other users' directories, and closes it to
/// others.
pub(super) fn ensure_private(dir: &Path) -> Result<(), WorktreeError> {
    if let Err(error) = std::fs::DirBuilder::new().mode(0o700).create(dir)
        && error.kind() != std::io::ErrorKind::AlreadyExists
    {
        return Err(WorktreeError::io("make", dir, error));
    }
    let meta = dir.symlink_metadata().map_err(|error| WorktreeError::io("read", dir, error))?;
    if !meta.is_dir() {
        return Err(WorktreeError::UnsafeParent(dir.to_owned()));
    }
    if meta.uid() != rustix::process::geteuid().as_raw() {
        return Err(WorktreeError::NotOwned(dir.to_owned()));
    }
    if meta.mode() & 0o077 != 0 {
        std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o700))
            .map_err(|error| WorktreeError::io("close", dir, error))?;
    }
    Ok(())
}

/// Removes a file or a whole tree without following a link; nothing there is fine. Directories
/// without permissions are opened up first.
pub(super) fn remove_if_there(path: &Path) -> Result<(), WorktreeError> {
    let failed = |error: Errno| WorktreeError::io("remove", path, error);
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(failed(Errno::INVAL));
    };
    let parent = match open_dir(CWD, parent.as_os_str()) {
        Ok(parent) => parent,
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    match remove_entry(&parent, name) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(failed(error)),
    }
}

fn remove_entry(parent: &OwnedFd, name: &OsStr) -> rustix::io::Result<()> {
    let stat = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        return rustix::fs::unlinkat(parent, name, AtFlags::empty());
    }
    let Some(root) = open_or_remove(parent, name)? else { return Ok(()) };
    // Every pass empties `root` of what was there; what was moved up waits for the next one.
    let mut moved = 0u64;
    loop {
        let before = moved;
        clear(&root, &root, 0, &mut moved)?;
        if moved == before {
            break;
        }
    }
    rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)
}

/// Empties a directory. At the greatest depth, directories are moved to `root` instead.
fn clear(root: &OwnedFd, dir: &OwnedFd, depth: usize, moved: &mut u64) -> rustix::io::Result<()> {
    for (name, kind) in entries(dir)? {
        let name = name.as_c_str();
        if kind != FileType::Directory {
            rustix::fs::unlinkat(dir, name, AtFlags::empty())?;
            continue;
        }
        let Some(inner) = open_or_remove(dir, OsStr::from_bytes(name.to_bytes()))? else {
            continue;
        };
        if depth < MAX_DEPTH {
            clear(root, &inner, depth + 1, moved)?;
            rustix::fs::unlinkat(dir, name, AtFlags::REMOVEDIR)?;
        } else {
            *moved += 1;
            rustix::fs::renameat(dir, name, root, free_name(root, *moved)?.as_str())?;
        }
    }
    Ok(())
}

/// A name that `root` does not have, whatever the agent called its files.
fn free_name(root: &OwnedFd, start: u64) -> rustix::io::Result<String> {
    let mut number = start;
    loop {
        let name = format!(".fleet-removed-{number}");
        match rustix::fs::statat(root, name.as_str(), AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(name),
            Err(error) => return Err(error),
            Ok(_) => number += 1_000_003,
        }
    }
}

fn entries(dir: &OwnedFd) -> rustix::io::Result<Vec<(CString, FileType)>> {
    let mut found = Vec::new();
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        if matches!(entry.file_name().to_bytes(), b"." | b"..") {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => FileType::from_raw_mode(
                rustix::fs::statat(dir, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)?.st_mode,
            ),
            known => known,
        };
        found.push((entry.file_name().to_owned(), kind));
    }
    Ok(found)
}

/// Opens a directory to empty it; `None` when it was empty and is gone. The container's root, a
/// subordinate user of ours, leaves empty directories that we may not enter but may remove, such as
/// the overlay's `work/work`.
fn open_or_remove(parent: &OwnedFd, name: &OsStr) -> rustix::io::Result<Option<OwnedFd>> {
    match open_dir(parent, name) {
        Ok(dir) => Ok(Some(dir)),
        Err(denied @ (Errno::ACCESS | Errno::PERM)) => {
            rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR).map_err(|_| denied)?;
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Opens a directory, never through a link in its last component, after giving its owner all
/// permissions.
fn open_dir(parent: impl AsFd, name: &OsStr) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let pinned = rustix::fs::openat(parent, name, flags | OFlags::PATH, Mode::empty())?;
    let by_number = format!("/proc/self/fd/{}", pinned.as_raw_fd());
    let mode = rustix::fs::fstat(&pinned)?.st_mode;
    if mode & 0o700 != 0o700 {
        rustix::fs::chmod(by_number.as_str(), Mode::from_raw_mode(mode & 0o7777 | 0o700))?;
    }
    // Through the descriptor: the name may stand for something else by now.
    rustix::fs::openat(
        CWD,
        by_number.as_str(),
        OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::RDONLY,
        Mode::empty(),
    )
}
