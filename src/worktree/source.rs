//! Which repository a task works on, and whether fleet can work on it at all.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD};

use super::{WorktreeError, private};

/// Where a task's files come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RepoSource {
    /// A repository of the operator: its root, or a bare repository.
    Path(PathBuf),
    /// A repository that fleet keeps for the task, at `dir/<task>`; made when it is missing.
    Private { task: String, dir: PathBuf },
}

/// A repository that was found fit. All paths are absolute and free of links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Repository {
    pub root: PathBuf,
    /// `<root>/.git`, or the root itself when it is bare.
    pub git_dir: PathBuf,
    pub sha256: bool,
}

impl RepoSource {
    /// Checks that fleet can work on the repository. Writes nothing; a private repository that does
    /// not exist yet is fine.
    pub fn validate(&self) -> Result<(), WorktreeError> {
        match self {
            RepoSource::Path(path) => Repository::find(path).map(drop),
            RepoSource::Private { task, dir } => {
                check_name(task)?;
                check_path(dir)
            }
        }
    }

    /// The checked repository; a private one is made when it is missing.
    pub(super) fn open(&self) -> Result<Repository, WorktreeError> {
        match self {
            RepoSource::Path(path) => Repository::find(path),
            RepoSource::Private { task, dir } => {
                check_name(task)?;
                Repository::find(&private::ensure(dir, task)?)
            }
        }
    }
}

impl Repository {
    /// Whether the repository has no tree of its own.
    pub fn is_bare(&self) -> bool {
        self.root == self.git_dir
    }

    /// Finds the repository whose root is `path` and refuses what fleet cannot keep safe.
    pub fn find(path: &Path) -> Result<Self, WorktreeError> {
        let root = path
            .canonicalize()
            .map_err(|error| WorktreeError::io("find the repository", path, error))?;
        check_path(&root)?;
        let git_dir = locate_git_dir(&root)?;
        for dir in [&root, &git_dir] {
            check_access(dir)?;
        }
        if git_dir.join("objects/info/alternates").exists() {
            return Err(WorktreeError::Alternates(root));
        }
        let sha256 = read_format(&root, &git_dir)?;
        Ok(Repository { root, git_dir, sha256 })
    }
}

/// `.git` of a root, or the root itself when it is bare.
fn locate_git_dir(root: &Path) -> Result<PathBuf, WorktreeError> {
    let dot_git = root.join(".git");
    match dot_git.symlink_metadata() {
        Ok(meta) if meta.is_dir() && looks_like_git_dir(&dot_git) => Ok(dot_git),
        Ok(meta) if meta.is_file() => Err(WorktreeError::LinkedTree(root.to_owned())),
        Ok(_) => Err(WorktreeError::NotRepository(root.to_owned())),
        Err(_) if looks_like_git_dir(root) => Ok(root.to_owned()),
        Err(_) => Err(match root.ancestors().skip(1).find(|above| above.join(".git").exists()) {
            Some(above) => WorktreeError::NotRoot { path: root.to_owned(), root: above.to_owned() },
            None => WorktreeError::NotRepository(root.to_owned()),
        }),
    }
}

fn looks_like_git_dir(dir: &Path) -> bool {
    dir.join("HEAD").is_file() && dir.join("objects").is_dir() && dir.join("refs").is_dir()
}

fn check_access(dir: &Path) -> Result<(), WorktreeError> {
    let access = Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK;
    rustix::fs::accessat(CWD, dir, access, AtFlags::EACCESS)
        .map_err(|_| WorktreeError::NotWritable(dir.to_owned()))?;
    let owner =
        dir.metadata().map_err(|error| WorktreeError::io("read the owner of", dir, error))?.uid();
    if owner != rustix::process::geteuid().as_raw() {
        return Err(WorktreeError::NotOwned(dir.to_owned()));
    }
    Ok(())
}

/// Refuses formats that fleet cannot carry; tells whether object ids are SHA-256. Includes are not
/// followed: what they could name, git itself reads from the repository's own file only.
fn read_format(root: &Path, git_dir: &Path) -> Result<bool, WorktreeError> {
    let path = git_dir.join("config");
    let config = gix::config::File::from_path_no_includes(path.clone(), gix::config::Source::Local)
        .map_err(|error| WorktreeError::gix("read config", root, &error))?;
    let promisor = config
        .sections_by_name("remote")
        .is_some_and(|mut all| all.any(|remote| remote.value("promisor").is_some()));
    if promisor || config.string("extensions.partialClone").is_some() {
        return Err(WorktreeError::PartialClone(root.to_owned()));
    }
    let unknown = |what: String| WorktreeError::UnknownFormat { path: root.to_owned(), what };
    if config.string("core.worktree").is_some() {
        return Err(unknown("core.worktree".into()));
    }
    if let Some(storage) = config.string("extensions.refStorage")
        && storage != "files"
    {
        return Err(unknown(format!("ref storage {storage}")));
    }
    match config.string("extensions.objectFormat").map(|name| name.to_string()).as_deref() {
        None | Some("sha1") => Ok(false),
        Some("sha256") => Ok(true),
        Some(other) => Err(unknown(format!("object format {other}"))),
    }
}

/// Refuses paths that mounts (`:` and `,`) or git's one-line pointer files cannot carry.
pub(super) fn check_path(path: &Path) -> Result<(), WorktreeError> {
    let refuse = |found| Err(WorktreeError::UnusablePath { path: path.to_owned(), found });
    let Some(text) = path.to_str() else { return refuse("bytes that are not UTF-8") };
    match text.chars().find(|c| matches!(c, ':' | ',') || c.is_control()) {
        Some(':') => refuse("a colon"),
        Some(',') => refuse("a comma"),
        Some(_) => refuse("a control character"),
        None => Ok(()),
    }
}

/// Refuses task names and run ids that would not be one plain path component.
pub(super) fn check_name(name: &str) -> Result<(), WorktreeError> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    if name.is_empty() || name.starts_with(['-', '_']) || !name.chars().all(plain) {
        return Err(WorktreeError::UnusableName { name: name.to_owned() });
    }
    Ok(())
}
