//! Where a run's workspace and its book-keeping lie. Owns `.fleet-worktrees`, its entry in
//! `info/exclude`, and the record that outlives a crash.
//!
//! Records are kept inside the git directory: a repository's content can put files anywhere else.

use std::io::Write;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::WorktreeError;
use super::directory::ensure_private;
use super::shield::GitView;
use super::source::{Repository, check_name};

/// The directory of all checkouts in a repository's root.
pub(super) const PARENT: &str = ".fleet-worktrees";
const RECORDS: &str = "fleet";

/// The places of one run's workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub name: String,
    /// `<root>/.fleet-worktrees/<name>`.
    pub path: PathBuf,
    /// `<git dir>/worktrees/<name>`.
    pub admin: PathBuf,
    /// `<git dir>/fleet/<name>.json`.
    pub record: PathBuf,
}

/// What is written down before anything is made, so that nothing half-made is ever forgotten.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    pub version: u32,
    pub task: String,
    pub run_id: String,
    pub attempt: u32,
    /// Absent for a plain checkout.
    pub branch: Option<String>,
    pub base_commit: String,
    pub run_dir: PathBuf,
    pub made_at: Timestamp,
    /// Absent until the workspace is complete, and for a plain checkout.
    pub git: Option<GitView>,
}

impl Layout {
    /// The places for a task's run.
    pub fn new(repository: &Repository, task: &str, run_id: &str) -> Result<Self, WorktreeError> {
        check_name(task)?;
        check_name(run_id)?;
        Ok(Layout::named(repository, &format!("{task}-{run_id}")))
    }

    /// The places for the workspace of that name.
    pub fn named(repository: &Repository, name: &str) -> Self {
        Layout {
            name: name.to_owned(),
            path: repository.root.join(PARENT).join(name),
            admin: repository.git_dir.join("worktrees").join(name),
            record: records_dir(&repository.git_dir).join(format!("{name}.json")),
        }
    }

    /// The record, when it is there and readable.
    pub fn read_record(&self) -> Option<Record> {
        read_record(&self.record)
    }

    /// Writes the record whole or not at all.
    pub fn write_record(&self, record: &Record) -> Result<(), WorktreeError> {
        let text = serde_json::to_vec(record).expect("a record has no maps with other keys");
        let draft = self.record.with_extension("new");
        std::fs::write(&draft, text)
            .and_then(|()| std::fs::rename(&draft, &self.record))
            .map_err(|error| WorktreeError::io("write", &self.record, error))
    }
}

/// The directory of records of a repository.
pub(super) fn records_dir(git_dir: &Path) -> PathBuf {
    git_dir.join(RECORDS)
}

/// A record from its file.
pub(super) fn read_record(path: &Path) -> Option<Record> {
    let text = std::fs::read(path).ok()?;
    serde_json::from_slice(&text).ok().filter(|record: &Record| record.version == 1)
}

/// Makes the directories that hold checkouts and records, and keeps them out of `git status`.
pub(super) fn prepare(repository: &Repository) -> Result<(), WorktreeError> {
    ensure_private(&repository.root.join(PARENT))?;
    ensure_private(&records_dir(&repository.git_dir))?;
    if repository.is_bare() {
        return Ok(());
    }
    let info = repository.git_dir.join("info");
    let path = info.join("exclude");
    let line = format!("/{PARENT}/");
    let failed = |error| WorktreeError::io("write", &path, error);
    let text = match std::fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(failed(error)),
    };
    if text.split(|byte| *byte == b'\n').any(|found| found == line.as_bytes()) {
        return Ok(());
    }
    let start = if text.is_empty() || text.ends_with(b"\n") { "" } else { "\n" };
    std::fs::create_dir_all(&info).map_err(failed)?;
    // One write in append mode: two runs at once at worst leave the line twice.
    std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .and_then(|mut file| file.write_all(format!("{start}{line}\n").as_bytes()))
        .map_err(failed)
}
