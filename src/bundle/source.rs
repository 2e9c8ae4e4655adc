//! The bundle's files: blobs of one commit, or (only to validate what is not committed yet) the files
//! on disk. gix opens the repository with reduced trust, so that nothing configured in it runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gix::bstr::ByteSlice;

use crate::run::CommitId;

/// Which state of the bundle is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Revision {
    /// The commit that HEAD names.
    Head,
    /// Any commit, as git names it.
    Named(String),
    /// The files on disk, committed or not.
    Worktree,
}

/// Why a bundle could not be read at all.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("{} is not the root of a git repository", dir.display())]
    NotARepository { dir: PathBuf },
    #[error("{} is not the root of a git repository: {} is", dir.display(), root.display())]
    BelowTheRoot { dir: PathBuf, root: PathBuf },
    #[error("{} has no commit yet", dir.display())]
    NoCommits { dir: PathBuf },
    #[error("{revision:?} is not a commit of {}", dir.display())]
    UnknownRevision { dir: PathBuf, revision: String },
    #[error("cannot read {what} of {}: git's data is missing or damaged", dir.display())]
    Git { dir: PathBuf, what: String, source: Box<dyn std::error::Error + Send + Sync> },
    #[error("cannot read {}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("cannot watch {}", dir.display())]
    Watch { dir: PathBuf, source: notify::Error },
}

impl LoadError {
    /// The way out.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            LoadError::NotARepository { .. } => Some(
                "make the bundle's directory a repository: git init && git add -A && git commit, \
                 or validate the files as they are with --worktree",
            ),
            LoadError::NoCommits { .. } => {
                Some("commit your bundle first: git add -A && git commit")
            }
            LoadError::UnknownRevision { .. } => Some("git log shows the commits that exist"),
            LoadError::BelowTheRoot { .. } => Some(
                "name that root, which holds manifest.yaml, or make this directory a repository of \
                 its own: git init && git add -A && git commit",
            ),
            LoadError::Git { .. } => {
                Some("git fsck shows what is damaged; fetch it again, or clone the repository anew")
            }
            LoadError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
                Some("name the directory of a bundle; fleet init DIR makes one")
            }
            LoadError::Io { .. } => Some("let the user that runs fleet read it"),
            LoadError::Watch { .. } => None,
        }
    }
}

/// A file as it was found.
#[derive(Clone, Debug)]
pub(super) enum Content {
    Bytes(Vec<u8>),
    /// A link or a submodule: never followed.
    NotAFile(&'static str),
    /// Bigger than [`MAX_FILE_BYTES`].
    TooLarge(u64),
    /// A file on disk that cannot be read, and why.
    Unreadable(String),
}

/// The files of one state of the bundle, by `/`-separated path.
#[derive(Debug)]
pub(super) struct Files {
    pub(super) commit: Option<CommitId>,
    pub(super) files: BTreeMap<String, Content>,
}

/// Where the files are from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Commit,
    Disk,
}

impl Files {
    /// Where the files are from.
    pub(super) fn origin(&self) -> Origin {
        if self.commit.is_some() { Origin::Commit } else { Origin::Disk }
    }

    /// A file's text, if it is there and readable.
    pub(super) fn text(&self, file: &str) -> Option<&str> {
        match self.files.get(file)? {
            Content::Bytes(bytes) => super::yaml::read_text(file, bytes).ok(),
            Content::NotAFile(_) | Content::TooLarge(_) | Content::Unreadable(_) => None,
        }
    }
}

/// Directories that a bundle is read from, besides `manifest.yaml`.
const DIRECTORIES: [&str; 4] = ["personas", "tasks", "scripted", "system_prompts"];

/// A file of a bundle is text that people write.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Nothing in a bundle is nested deeper.
const MAX_DEPTH: usize = 4;

/// The commit that HEAD names.
pub fn head_commit(dir: &Path) -> Result<CommitId, LoadError> {
    let repository = open(dir)?;
    Ok(CommitId::new(resolve(&repository, dir, &Revision::Head)?.to_string()))
}

/// Reads the files of a revision.
pub(super) fn read(dir: &Path, revision: &Revision) -> Result<Files, LoadError> {
    if *revision == Revision::Worktree {
        return read_disk(dir);
    }
    let repository = open(dir)?;
    let commit = resolve(&repository, dir, revision)?;
    let tree = repository
        .find_commit(commit)
        .and_then(|commit| commit.tree())
        .map_err(|source| damaged(dir, "the commit", source))?;
    let mut files = BTreeMap::new();
    read_tree(&tree, "", 0, &mut files)
        .map_err(|source| damaged(dir, "the commit's files", source))?;
    Ok(Files { commit: Some(CommitId::new(commit.to_string())), files })
}

/// Opens a repository without running or believing anything that is configured in it.
pub(super) fn open(dir: &Path) -> Result<gix::Repository, LoadError> {
    let options = gix::open::Options::isolated().with(gix::sec::Trust::Reduced);
    gix::open_opts(dir, options).map_err(|source| not_opened(dir, source))
}

fn not_opened(dir: &Path, source: gix::Error) -> LoadError {
    if let Err(source) = std::fs::read_dir(dir) {
        return LoadError::Io { path: dir.to_owned(), source };
    }
    let is_root = |dir: &Path| dir.join(".git").symlink_metadata().is_ok();
    if is_root(dir) {
        return damaged(dir, "the repository", source);
    }
    let absolute = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    match absolute.ancestors().skip(1).find(|above| is_root(above)) {
        Some(root) => LoadError::BelowTheRoot { dir: dir.to_owned(), root: root.to_owned() },
        None => LoadError::NotARepository { dir: dir.to_owned() },
    }
}

fn damaged(
    dir: &Path,
    what: &str,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> LoadError {
    LoadError::Git { dir: dir.to_owned(), what: what.to_owned(), source: source.into() }
}

fn resolve(
    repository: &gix::Repository,
    dir: &Path,
    revision: &Revision,
) -> Result<gix::ObjectId, LoadError> {
    let unborn = repository.head().is_ok_and(|head| head.is_unborn());
    let name = match revision {
        Revision::Named(name) => name.as_str(),
        Revision::Head | Revision::Worktree if unborn => {
            return Err(LoadError::NoCommits { dir: dir.to_owned() });
        }
        Revision::Head | Revision::Worktree => "HEAD",
    };
    let unknown = || LoadError::UnknownRevision { dir: dir.to_owned(), revision: name.to_owned() };
    let id = repository.rev_parse_single(name).map_err(|error| match revision {
        Revision::Named(_) => unknown(),
        Revision::Head | Revision::Worktree => damaged(dir, "HEAD", error),
    })?;
    // An id in full is taken as it is; a name that leads to an object leads to one that is there.
    let by_id = name.bytes().all(|byte| byte.is_ascii_hexdigit());
    let object = id.object().map_err(|error| match by_id {
        true => unknown(),
        false => damaged(dir, &format!("the commit of {name}"), error),
    })?;
    let commit = object.peel_to_commit().map_err(|_| unknown())?;
    Ok(commit.id)
}

fn is_read(path: &str, is_directory: bool) -> bool {
    match path.split_once('/') {
        Some((top, _)) => DIRECTORIES.contains(&top),
        None if is_directory => DIRECTORIES.contains(&path),
        None => path == "manifest.yaml" || path == "manifest.yml",
    }
}

fn read_tree(
    tree: &gix::Tree<'_>,
    prefix: &str,
    depth: usize,
    files: &mut BTreeMap<String, Content>,
) -> Result<(), gix::Error> {
    for entry in tree.iter() {
        let entry = entry?;
        let path = format!("{prefix}{}", entry.filename().to_str_lossy());
        let mode = entry.mode();
        if !is_read(&path, mode.is_tree()) {
            continue;
        }
        if mode.is_tree() {
            if depth < MAX_DEPTH {
                let below = entry.object()?.peel_to_tree()?;
                read_tree(&below, &format!("{path}/"), depth + 1, files)?;
            }
            continue;
        }
        let content = if mode.is_blob() {
            let size = entry.id().header()?.size();
            if size > MAX_FILE_BYTES {
                Content::TooLarge(size)
            } else {
                Content::Bytes(entry.object()?.detach().data)
            }
        } else {
            Content::NotAFile(if mode.is_link() { "a symbolic link" } else { "a submodule" })
        };
        files.insert(path, content);
    }
    Ok(())
}

fn read_disk(dir: &Path) -> Result<Files, LoadError> {
    let mut files = BTreeMap::new();
    read_directory(dir, "", 0, &mut files)
        .map_err(|source| LoadError::Io { path: dir.to_owned(), source })?;
    Ok(Files { commit: None, files })
}

/// Fails where the directory itself cannot be read; what is in it is a problem of its own.
fn read_directory(
    dir: &Path,
    prefix: &str,
    depth: usize,
    files: &mut BTreeMap<String, Content>,
) -> std::io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        let kind = entry.file_type()?;
        if !is_read(&path, kind.is_dir()) {
            continue;
        }
        if kind.is_dir() {
            if depth < MAX_DEPTH
                && let Err(error) =
                    read_directory(&entry.path(), &format!("{path}/"), depth + 1, files)
            {
                files.insert(path, Content::Unreadable(error.to_string()));
            }
            continue;
        }
        let content = if kind.is_file() {
            read_file(&entry).unwrap_or_else(|error| Content::Unreadable(error.to_string()))
        } else {
            Content::NotAFile(if kind.is_symlink() { "a symbolic link" } else { "a special file" })
        };
        files.insert(path, content);
    }
    Ok(())
}

fn read_file(entry: &std::fs::DirEntry) -> std::io::Result<Content> {
    let size = entry.metadata()?.len();
    if size > MAX_FILE_BYTES {
        return Ok(Content::TooLarge(size));
    }
    std::fs::read(entry.path()).map(Content::Bytes)
}
