//! What workspaces there are, found by their records, and whether somebody needs them.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Serialize;

use super::Life;
use super::layout::{Layout, Record, read_record, records_dir};
use super::shield::REPOSITORY_FILE;
use super::source::Repository;

/// Whether a run still needs its workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunLife {
    /// It is open and its holder lives.
    Live,
    /// It ended, and its workspace was left in place.
    Ended,
    /// It is open without a living holder, or nobody knows it.
    Lost,
}

/// How a workspace stands, in words of the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WorktreeState {
    Live,
    Orphan,
    Kept,
}

/// A workspace that was found; who needs it is not known yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    path: PathBuf,
    pub(super) record: Record,
    bytes: u64,
}

/// One workspace: the documented JSON of `fleet worktree list --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WorktreeEntry {
    pub path: PathBuf,
    pub task: String,
    pub run_id: String,
    /// Absent for a plain checkout.
    pub branch: Option<String>,
    pub age_secs: u64,
    /// Of the files and the overlay.
    pub bytes: u64,
    pub state: WorktreeState,
}

impl Found {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the attempt's host directory lies below `runs`: a repository may hold workspaces of
    /// several state directories, and each is to leave the others' alone.
    pub fn belongs_below(&self, runs: &std::path::Path) -> bool {
        self.record.run_dir.starts_with(runs)
    }

    /// The run that it was made for.
    pub fn run_id(&self) -> &str {
        &self.record.run_id
    }

    /// The entry, once it is known who lives.
    pub(super) fn entry(self, now: Timestamp, life: &Life<'_>) -> WorktreeEntry {
        let state = match life(&self.record.run_id) {
            RunLife::Live => WorktreeState::Live,
            RunLife::Ended => WorktreeState::Kept,
            RunLife::Lost => WorktreeState::Orphan,
        };
        let age = now.duration_since(self.record.made_at).as_secs();
        WorktreeEntry {
            path: self.path,
            task: self.record.task,
            run_id: self.record.run_id,
            branch: self.record.branch,
            age_secs: u64::try_from(age).unwrap_or(0),
            bytes: self.bytes,
            state,
        }
    }
}

/// Finds the workspaces of all these repositories, by path. A repository that cannot be read is left
/// out with a warning: it must not hide the others.
pub(super) fn scan(repositories: &[PathBuf]) -> Vec<Found> {
    let mut found = Vec::new();
    for root in repositories {
        match Repository::find(root) {
            Ok(repository) => scan_one(&repository, &mut found),
            Err(error) => tracing::warn!(%error, "repository is left out"),
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found.dedup_by(|a, b| a.path == b.path);
    found
}

fn scan_one(repository: &Repository, found: &mut Vec<Found>) {
    // Never used, or used and removed: no workspaces either way.
    let Ok(entries) = std::fs::read_dir(records_dir(&repository.git_dir)) else { return };
    for entry in entries.filter_map(Result::ok) {
        let file = entry.path();
        if file.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let name = file.file_stem().and_then(|name| name.to_str());
        let (Some(name), Some(record)) = (name, read_record(&file)) else {
            tracing::warn!(path = %file.display(), "worktree record is not readable");
            continue;
        };
        let layout = Layout::named(repository, name);
        let bytes = size_of(&layout.path) + size_of(&record.run_dir);
        found.push(Found { path: layout.path, record, bytes });
    }
}

/// Bytes on disk beneath `path`; links count as themselves, unreadable directories as nothing.
fn size_of(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let mut bytes = 0;
    let mut open = vec![path.to_owned()];
    while let Some(path) = open.pop() {
        let Ok(meta) = path.symlink_metadata() else { continue };
        bytes += meta.blocks() * 512;
        if meta.is_dir()
            && let Ok(entries) = std::fs::read_dir(&path)
        {
            open.extend(entries.filter_map(Result::ok).map(|entry| entry.path()));
        }
    }
    bytes
}

/// The repositories named by runs' directories under `runs`: `<run>/repository` and
/// `<run>/<attempt>/repository`.
pub(super) fn used_repositories(runs: &Path) -> Vec<PathBuf> {
    let children = |dir: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(dir).into_iter().flatten().filter_map(Result::ok);
        entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
    };
    let mut found = Vec::new();
    for run in children(runs) {
        for dir in children(&run).into_iter().chain([run]) {
            if let Ok(root) = std::fs::read_to_string(dir.join(REPOSITORY_FILE)) {
                found.push(PathBuf::from(root));
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

/// The repositories under fleet's own directory of private ones.
pub(super) fn private_repositories(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let mut found: Vec<PathBuf> = entries
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .filter(|path| path.join(".git").is_dir())
        .filter(|path| {
            path.file_name().is_some_and(|name| !name.as_encoded_bytes().starts_with(b"."))
        })
        .collect();
    found.sort();
    found
}
