//! Opens a repository with gix so that nothing in it can make the host act: reduced trust, no
//! environment, no configuration but the repository's format. Owns resolving commits and changing
//! refs; runs no hook, filter or file-system monitor.

use std::path::Path;

use gix::ObjectId;
use gix::refs::Target;
use gix::refs::transaction::{PreviousValue, RefEdit};

use super::WorktreeError;
use super::source::Repository;

/// Name and address under which fleet itself writes commits and reflogs.
pub(super) const IDENTITY: (&str, &str) = ("fleet", "fleet@fleet.invalid");

/// A repository opened for reading objects and changing refs.
pub(super) struct Handle {
    pub git: gix::Repository,
    root: std::path::PathBuf,
}

/// Whether an object id is the one written in hexadecimal.
pub(super) fn is_same(id: ObjectId, hex: &str) -> bool {
    ObjectId::from_hex(hex.as_bytes()).is_ok_and(|other| other == id)
}

/// What a ref must be before it is changed.
pub(super) enum Expect {
    Missing,
    /// Exactly this.
    At(ObjectId),
    Anything,
}

impl Handle {
    /// Opens a checked repository.
    pub fn open(repository: &Repository) -> Result<Self, WorktreeError> {
        Handle::open_dir(&repository.git_dir, &repository.root)
    }

    /// Opens the git directory of `root`.
    pub fn open_dir(git_dir: &Path, root: &Path) -> Result<Self, WorktreeError> {
        let (name, email) = IDENTITY;
        let git = gix::open::Options::isolated()
            .with(gix::sec::Trust::Reduced)
            .open_path_as_is(true)
            .config_overrides([
                format!("committer.name={name}"),
                format!("committer.email={email}"),
            ])
            .open(git_dir)
            .map_err(|error| WorktreeError::gix("open the repository", root, &error))?
            .to_thread_local();
        Ok(Handle { git, root: root.to_owned() })
    }

    /// A repository that is open already.
    pub fn of(git: gix::Repository) -> Self {
        let root = git.common_dir().to_owned();
        Handle { git, root }
    }

    /// The commit of a branch, another ref or a full object id; `None` is HEAD.
    pub fn base(&self, base: Option<&str>) -> Result<ObjectId, WorktreeError> {
        match base {
            None => self.head(),
            Some(name) => self.named(name)?.ok_or_else(|| WorktreeError::NoSuchBase {
                path: self.root.clone(),
                base: name.to_owned(),
            }),
        }
    }

    fn head(&self) -> Result<ObjectId, WorktreeError> {
        let head = self.git.head().map_err(|error| self.error("read HEAD", &error))?;
        if head.is_unborn() {
            return Err(WorktreeError::Unborn(self.root.clone()));
        }
        self.git.head_id().map(gix::Id::detach).map_err(|error| self.error("read HEAD", &error))
    }

    fn named(&self, name: &str) -> Result<Option<ObjectId>, WorktreeError> {
        if let Ok(Some(mut found)) = self.git.try_find_reference(name) {
            let commit = found
                .peel_to_commit()
                .map_err(|error| self.error("read the base branch", &error))?;
            return Ok(Some(commit.id));
        }
        let id = ObjectId::from_hex(name.as_bytes()).ok();
        Ok(id.filter(|id| self.is_commit(*id)))
    }

    /// Whether the object is there and a commit.
    pub fn is_commit(&self, id: ObjectId) -> bool {
        self.git.find_header(id).is_ok_and(|header| header.kind() == gix::objs::Kind::Commit)
    }

    /// What a full ref name points to.
    pub fn find(&self, name: &str) -> Result<Option<ObjectId>, WorktreeError> {
        let found =
            self.git.try_find_reference(name).map_err(|error| self.error("read a ref", &error))?;
        Ok(found.and_then(|found| found.try_id().map(gix::Id::detach)))
    }

    /// Names and targets of all refs under a prefix that ends in `/`.
    pub fn under(&self, prefix: &str) -> Result<Vec<(String, ObjectId)>, WorktreeError> {
        let platform = self.git.references().map_err(|error| self.error("list refs", &error))?;
        let found = platform.prefixed(prefix).map_err(|error| self.error("list refs", &error))?;
        Ok(found
            .filter_map(Result::ok)
            .filter_map(|found| {
                let id = found.try_id()?.detach();
                Some((found.name().as_bstr().to_string(), id))
            })
            .collect())
    }

    /// Points a ref to a commit, if it is what it should be.
    pub fn point(
        &self,
        name: &str,
        to: ObjectId,
        expect: &Expect,
        why: &str,
    ) -> Result<(), WorktreeError> {
        let name = self.full_name(name)?;
        let edit = RefEdit::update(name, to, expect.previous(), why);
        self.git.edit_reference(edit).map(drop).map_err(|error| self.error("change a ref", &error))
    }

    /// Deletes a ref, if it is what it should be.
    pub fn delete(&self, name: &str, expect: &Expect) -> Result<(), WorktreeError> {
        let edit = RefEdit::delete(self.full_name(name)?, expect.previous());
        self.git.edit_reference(edit).map(drop).map_err(|error| self.error("delete a ref", &error))
    }

    fn full_name(&self, name: &str) -> Result<gix::refs::FullName, WorktreeError> {
        name.try_into().map_err(|error: gix::validate::reference::name::Error| WorktreeError::Gix {
            doing: "use a ref's name",
            path: self.root.clone(),
            message: format!("{name:?}: {error}"),
        })
    }

    pub fn error(&self, doing: &'static str, error: &gix::Error) -> WorktreeError {
        WorktreeError::gix(doing, &self.root, error)
    }
}

impl Expect {
    fn previous(&self) -> PreviousValue {
        match self {
            Expect::Missing => PreviousValue::MustNotExist,
            Expect::At(id) => PreviousValue::MustExistAndMatch(Target::Object(*id)),
            Expect::Anything => PreviousValue::Any,
        }
    }
}
