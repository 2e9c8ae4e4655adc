//! Makes a run's workspace, whole or not at all.

use std::path::{Path, PathBuf};

use gix::ObjectId;
use jiff::Timestamp;

use super::attempts::{branch_ref, keep_branch_tip};
use super::directory::{make_private, remove_if_there};
use super::layout::{self, Layout, Record};
use super::open::{Expect, Handle};
use super::source::Repository;
use super::{Checkout, RepoSource, WorktreeError, checkout, shield};

/// Whether the agent gets a branch of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckoutMode {
    /// A linked worktree on its own branch, whose commits are collected.
    Branch,
    /// The files alone; what happens to them is not collected.
    Plain,
}

/// What a workspace is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateRequest {
    pub source: RepoSource,
    pub task: String,
    pub run_id: String,
    /// From 1. A later attempt of the run replaces the earlier one's workspace.
    pub attempt: u32,
    /// For example `fleet/task-`.
    pub branch_prefix: String,
    /// A branch, another ref or a full commit id; `None` = HEAD.
    pub base: Option<String>,
    pub mode: CheckoutMode,
    /// A directory of this attempt for the overlay and the masks; made when it is missing.
    pub run_dir: PathBuf,
    pub now: Timestamp,
}

/// Makes the workspace; blocks.
pub(super) fn create(request: &CreateRequest) -> Result<Checkout, WorktreeError> {
    let repository = request.source.open()?;
    let layout = Layout::new(&repository, &request.task, &request.run_id)?;
    layout::prepare(&repository)?;
    std::fs::create_dir_all(&request.run_dir)
        .map_err(|error| WorktreeError::io("make", &request.run_dir, error))?;
    let handle = Handle::open(&repository)?;
    let base = handle.base(request.base.as_deref())?;
    clear_earlier(&layout)?;
    let mut undo = Undo::default();
    let mut record = Record {
        version: 1,
        task: request.task.clone(),
        run_id: request.run_id.clone(),
        attempt: request.attempt,
        branch: None,
        base_commit: base.to_string(),
        run_dir: request.run_dir.clone(),
        made_at: request.now,
        git: None,
    };
    if request.mode == CheckoutMode::Branch {
        record.branch = Some(format!("{}{}", request.branch_prefix, layout.name));
    }
    let named = request.run_dir.join(shield::REPOSITORY_FILE);
    write(&named, repository.root.to_str().expect("a checked path is UTF-8"))?;
    undo.removes(&named);
    layout.write_record(&record)?;
    undo.removes(&layout.record);
    if let Some(branch) = &record.branch {
        start_branch(&handle, request, branch, base, &mut undo)?;
        link(&repository, &layout, branch, &mut undo)?;
    }
    undo.removes(&layout.path);
    make_private(&layout.path)?;
    let index = layout.admin.join("index");
    let index = record.branch.as_ref().map(|_| index.as_path());
    checkout::write_files(&handle, base, &layout.path, index)?;
    if record.branch.is_some() {
        let pointer = layout.path.join(".git");
        write(&pointer, &format!("gitdir: {}\n", layout.admin.display()))?;
        for part in shield::PARTS {
            undo.removes(&request.run_dir.join(part));
        }
        record.git = Some(shield::build(&repository, &layout, &request.run_dir)?);
        layout.write_record(&record)?;
    }
    undo.forget();
    Ok(Checkout::from_record(&repository, &layout, record))
}

/// Removes what an earlier attempt of the same run left: files and registration, never commits.
fn clear_earlier(layout: &Layout) -> Result<(), WorktreeError> {
    if let Some(earlier) = layout.read_record() {
        shield::discard(&earlier.run_dir)?;
    }
    remove_if_there(&layout.path)?;
    remove_if_there(&layout.admin)
}

/// Points the run's branch to the base. Commits of an earlier attempt that it holds are kept first.
fn start_branch(
    handle: &Handle,
    request: &CreateRequest,
    branch: &str,
    base: ObjectId,
    undo: &mut Undo,
) -> Result<(), WorktreeError> {
    let name = branch_ref(branch);
    let why = "fleet: start of an attempt";
    match handle.find(&name)? {
        None => {
            handle.point(&name, base, &Expect::Missing, why)?;
            undo.deletes_ref(handle, &name, base);
            Ok(())
        }
        Some(tip) if tip == base => Ok(()),
        Some(tip) => {
            let earlier = request.attempt.saturating_sub(1);
            keep_branch_tip(handle, &request.run_id, earlier, tip)?;
            handle.point(&name, base, &Expect::At(tip), why)
        }
    }
}

/// Registers the worktree with git, as `git worktree add` does.
fn link(
    repository: &Repository,
    layout: &Layout,
    branch: &str,
    undo: &mut Undo,
) -> Result<(), WorktreeError> {
    let all = repository.git_dir.join("worktrees");
    std::fs::create_dir_all(&all).map_err(|error| WorktreeError::io("make", &all, error))?;
    undo.removes(&layout.admin);
    make_private(&layout.admin)?;
    // `commondir` first: git takes a directory with `gitdir` alone for a broken worktree.
    write(&layout.admin.join("commondir"), "../..\n")?;
    write(&layout.admin.join("HEAD"), &format!("ref: {}\n", branch_ref(branch)))?;
    let pointer = layout.path.join(".git");
    write(&layout.admin.join("gitdir"), &format!("{}\n", pointer.display()))
}

fn write(path: &Path, text: &str) -> Result<(), WorktreeError> {
    std::fs::write(path, text).map_err(|error| WorktreeError::io("write", path, error))
}

/// Takes back what was made, the newest first, unless it is told to forget.
#[derive(Default)]
struct Undo {
    steps: Vec<Step>,
}

enum Step {
    Remove(PathBuf),
    DeleteRef { git: Box<gix::Repository>, name: String, at: ObjectId },
}

impl Undo {
    fn removes(&mut self, path: &Path) {
        self.steps.push(Step::Remove(path.to_owned()));
    }

    fn deletes_ref(&mut self, handle: &Handle, name: &str, at: ObjectId) {
        let (git, name) = (Box::new(handle.git.clone()), name.to_owned());
        self.steps.push(Step::DeleteRef { git, name, at });
    }

    fn forget(&mut self) {
        self.steps.clear();
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        for step in self.steps.drain(..).rev() {
            let undone = match &step {
                Step::Remove(path) => remove_if_there(path),
                Step::DeleteRef { git, name, at } => {
                    Handle::of((**git).clone()).delete(name, &Expect::At(*at))
                }
            };
            if let Err(error) = undone {
                tracing::warn!(%error, "half-made workspace was not taken back; prune removes it");
            }
        }
    }
}
