//! Everything that can go wrong with a workspace, by step.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why a workspace could not be made, collected or removed.
#[derive(Debug, thiserror::Error)]
pub enum WorktreeError {
    #[error("{0} is not a git repository")]
    NotRepository(PathBuf),
    #[error("{path} lies inside the repository {root}: name the root")]
    NotRoot { path: PathBuf, root: PathBuf },
    #[error("{0} is a linked worktree or a submodule: name the repository that owns it")]
    LinkedTree(PathBuf),
    /// The characters that a mount cannot carry, and text that git's pointer files cannot.
    #[error("{path:?} contains {found}: a repository's path may not")]
    UnusablePath { path: PathBuf, found: &'static str },
    #[error("{name:?} cannot be part of a worktree's name: use a-z, 0-9, - and _")]
    UnusableName { name: String },
    #[error("{0} is not writable for this user")]
    NotWritable(PathBuf),
    #[error("{0} belongs to another user: git refuses it in the sandbox")]
    NotOwned(PathBuf),
    #[error("{0} is a partial clone: objects may be missing, clone it whole")]
    PartialClone(PathBuf),
    #[error(
        "{0} borrows objects from another repository: run `git repack -a -d` and remove objects/info/alternates"
    )]
    Alternates(PathBuf),
    #[error("{path} uses {what}, which fleet does not read")]
    UnknownFormat { path: PathBuf, what: String },
    #[error("{0} has no commits yet: commit something first")]
    Unborn(PathBuf),
    #[error("{path} has no branch or commit {base:?}")]
    NoSuchBase { path: PathBuf, base: String },
    #[error("{0} is not a plain directory: remove it, fleet writes through no links")]
    UnsafeParent(PathBuf),
    /// The name cannot be hidden from the sandbox by a mount.
    #[error("{0:?} cannot be hidden from the sandbox: rename or remove it")]
    Unmaskable(PathBuf),
    #[error("{0} is not a checkout that fleet made")]
    NotOurs(PathBuf),
    #[error("{0} belongs to a newer attempt by now")]
    TakenAnew(PathBuf),
    #[error("cannot {doing} {path}")]
    Io {
        doing: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot {doing} in {path}: {message}")]
    Gix { doing: &'static str, path: PathBuf, message: String },
    /// It could not be run, or its output makes no sense.
    #[error("git {verb} failed: {message}")]
    Git { verb: String, message: String },
    /// It ended by itself, and not well.
    #[error("git {verb} failed: {}", ended(.code, .said))]
    GitExit {
        verb: String,
        /// None: a signal ended it.
        code: Option<i32>,
        /// git's own words on one line.
        said: String,
    },
    #[error("git {verb} took longer than {timeout:?} and was killed")]
    GitTimeout { verb: String, timeout: Duration },
    #[error("the agent's bundle is refused: {0}")]
    Bundle(#[from] BundleError),
    #[error("commit {tip} does not descend from the base {base}")]
    NotDescendant { tip: String, base: String },
    /// The work is safe at `kept_at`.
    #[error("branch {branch} was moved to {found} by somebody else; the work is at {kept_at}")]
    BranchMoved { branch: String, found: String, kept_at: String },
    #[error("a task of the runtime ended early: {0}")]
    Interrupted(String),
}

/// Why a bundle is refused before git sees it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BundleError {
    #[error("{0}")]
    Malformed(&'static str),
    #[error("{size} bytes are more than the {max} allowed")]
    TooLarge { size: u64, max: u64 },
    #[error("{objects} objects are more than the {max} allowed")]
    TooManyObjects { objects: u64, max: u64 },
    #[error("it carries the ref {0:?}, not the agent's HEAD")]
    UnexpectedRef(String),
    #[error("it ends in {found}, the sandbox announced {claimed}")]
    OtherTip { claimed: String, found: String },
    /// What git says of its objects.
    #[error("git {verb} does not take it: {said}")]
    Content { verb: String, said: String },
}

fn ended(code: &Option<i32>, said: &str) -> String {
    match code {
        Some(code) => format!("exit status {code}: {said}"),
        None => format!("a signal ended it: {said}"),
    }
}

impl WorktreeError {
    /// Whether only a change of the configuration or of the repository helps, not another try.
    pub fn is_configuration(&self) -> bool {
        use WorktreeError as E;
        match self {
            E::NotRepository(_)
            | E::NotRoot { .. }
            | E::LinkedTree(_)
            | E::UnusablePath { .. }
            | E::UnusableName { .. }
            | E::NotWritable(_)
            | E::NotOwned(_)
            | E::PartialClone(_)
            | E::Alternates(_)
            | E::UnknownFormat { .. }
            | E::Unborn(_)
            | E::NoSuchBase { .. }
            | E::UnsafeParent(_)
            | E::Unmaskable(_)
            | E::NotOurs(_) => true,
            E::TakenAnew(_)
            | E::Io { .. }
            | E::Gix { .. }
            | E::Git { .. }
            | E::GitExit { .. }
            | E::GitTimeout { .. }
            | E::Bundle(_)
            | E::NotDescendant { .. }
            | E::BranchMoved { .. }
            | E::Interrupted(_) => false,
        }
    }

    /// Whether another try of the attempt to take the agent's work changes nothing: the work itself is
    /// refused, or it is kept while its branch is somebody else's by now.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            WorktreeError::Bundle(_)
                | WorktreeError::NotDescendant { .. }
                | WorktreeError::BranchMoved { .. }
        )
    }

    pub(super) fn io(doing: &'static str, path: &Path, source: impl Into<io::Error>) -> Self {
        WorktreeError::Io { doing, path: path.to_owned(), source: source.into() }
    }

    pub(super) fn gix(doing: &'static str, path: &Path, error: &gix::Error) -> Self {
        WorktreeError::Gix { doing, path: path.to_owned(), message: format!("{error:#}") }
    }
}
