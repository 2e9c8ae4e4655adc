//! Tells when the bundle repository's HEAD names another commit. File events only say when to look;
//! what counts is the commit's id. A slow poll finds what events miss.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use rustix::fs::{Stat, stat};
use tokio::sync::Notify;
use tokio::time::timeout;
use tracing::{debug, warn};

use super::source::{LoadError, head_commit, open};
use crate::run::CommitId;

/// git writes a commit in dozens of events.
const QUIET: Duration = Duration::from_millis(200);

/// A repository that is never quiet is looked at all the same.
const MAX_QUIET_WAITS: u32 = 5;

/// The backstop.
const POLL: Duration = Duration::from_secs(60);

/// A watch on the bundle repository's refs.
#[derive(Debug)]
pub struct BundleWatch {
    dir: PathBuf,
    poll: Duration,
    changed: Arc<Notify>,
    /// Replaced when the watched directories were.
    watcher: Option<RecommendedWatcher>,
    watched: Vec<(PathBuf, Option<FileId>)>,
    seen: CommitId,
    /// An event was taken but HEAD not looked at since.
    pending: bool,
    /// The files that name the commit, as they were when HEAD was read last.
    stamps: Vec<(PathBuf, Option<Stamp>)>,
}

/// A file's inode, size and times of change: reading files makes events of its own, asking for these
/// does not.
type Stamp = (u64, i64, i64, i64);

/// Device and inode: a directory that was made anew is another one.
type FileId = (u64, u64);

impl BundleWatch {
    /// Watches a repository of which `seen` is known already.
    pub fn start(dir: &Path, seen: CommitId) -> Result<Self, LoadError> {
        Self::start_with_poll(dir, seen, POLL)
    }

    /// As [`BundleWatch::start`], with another interval of the backstop.
    pub fn start_with_poll(dir: &Path, seen: CommitId, poll: Duration) -> Result<Self, LoadError> {
        let mut watch = BundleWatch {
            dir: dir.to_owned(),
            poll,
            changed: Arc::new(Notify::new()),
            watcher: None,
            watched: Vec::new(),
            seen,
            // A commit may have landed since `seen` was read.
            pending: true,
            stamps: Vec::new(),
        };
        match watch.arm() {
            Err(LoadError::Watch { source, .. }) => {
                warn!(error = %source, "the bundle cannot be watched; it is polled");
            }
            armed => armed?,
        }
        Ok(watch)
    }

    /// Waits for the next commit that HEAD names. While the repository is absent or unreadable the last
    /// one stands. May be dropped and called again without losing a commit.
    pub async fn next(&mut self) -> CommitId {
        loop {
            if !self.pending {
                let event = timeout(self.poll, self.changed.notified()).await;
                self.pending = true;
                if event.is_ok() {
                    self.settle().await;
                } else if self.is_untouched() {
                    self.pending = false;
                    continue;
                }
            }
            self.rearm();
            self.stamps = stamps(&self.dir);
            let head = head_commit(&self.dir);
            self.pending = false;
            match head {
                Ok(head) if head != self.seen => {
                    self.seen = head.clone();
                    return head;
                }
                Ok(_) => {}
                Err(error) => debug!(%error, "the bundle cannot be read; the last one stands"),
            }
        }
    }

    /// The poll's question: what is watched is the same, and no file that names the commit changed.
    fn is_untouched(&self) -> bool {
        self.is_armed()
            && !self.stamps.is_empty()
            && self.stamps.iter().all(|(path, seen)| stamp(path) == *seen)
    }

    async fn settle(&self) {
        for _ in 0..MAX_QUIET_WAITS {
            if timeout(QUIET, self.changed.notified()).await.is_err() {
                return;
            }
        }
    }

    fn is_armed(&self) -> bool {
        let same = self.watched.iter().all(|(path, id)| id.is_some() && file_id(path) == *id);
        same && self.watcher.is_some()
    }

    fn rearm(&mut self) {
        if self.is_armed() {
            return;
        }
        if let Err(error) = self.arm() {
            debug!(%error, "the bundle cannot be watched; it is polled");
        }
    }

    fn arm(&mut self) -> Result<(), LoadError> {
        let failed = |source| LoadError::Watch { dir: self.dir.clone(), source };
        let changed = Arc::clone(&self.changed);
        let mut watcher =
            notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
                // Reading the repository makes events of its own.
                if !event.is_ok_and(|event| event.kind.is_access()) {
                    changed.notify_one();
                }
            })
            .map_err(failed)?;
        let repository = open(&self.dir)?;
        let common = repository.common_dir().to_owned();
        let places = [
            (self.dir.clone(), RecursiveMode::NonRecursive),
            (repository.git_dir().to_owned(), RecursiveMode::NonRecursive),
            (common.clone(), RecursiveMode::NonRecursive),
            (common.join("refs"), RecursiveMode::Recursive),
        ];
        self.watched.clear();
        for (path, mode) in places {
            watcher.watch(&path, mode).map_err(failed)?;
            let id = file_id(&path);
            self.watched.push((path, id));
        }
        self.watcher = Some(watcher);
        Ok(())
    }
}

/// HEAD, the packed refs, and the ref that HEAD names. Empty when the repository cannot be read.
fn stamps(dir: &Path) -> Vec<(PathBuf, Option<Stamp>)> {
    let Ok(repository) = open(dir) else { return Vec::new() };
    let common = repository.common_dir();
    let mut files = vec![repository.git_dir().join("HEAD"), common.join("packed-refs")];
    if let Ok(Some(name)) = repository.head_name() {
        files.push(common.join(name.as_bstr().to_string()));
    }
    files.into_iter().map(|path| (path.clone(), stamp(&path))).collect()
}

fn stamp(path: &Path) -> Option<Stamp> {
    let found = stat(path).ok()?;
    let nanos = i64::try_from(found.st_mtime_nsec).unwrap_or_default();
    Some((found.st_ino, found.st_size, found.st_mtime, nanos))
}

fn file_id(path: &Path) -> Option<FileId> {
    let Stat { st_dev, st_ino, .. } = stat(path).ok()?;
    Some((st_dev, st_ino))
}
