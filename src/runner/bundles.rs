//! The bundle in force: loaded from a commit, replaced whole when a valid commit lands. An invalid
//! commit changes nothing but the list of problems that people see.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::watch;
use tracing::{info, warn};

use crate::bundle::{self, Bundle, BundleWatch, LoadError, Loaded, Problem, Revision, Severity};
use crate::config::StateDir;
use crate::run::{CommitId, Outcome, OutcomeClass};
use crate::store::ClaimedRun;

/// What is in force, and what is wrong with the newest commit.
#[derive(Clone, Debug)]
pub struct BundleState {
    pub bundle: Arc<Bundle>,
    pub loaded_at: Timestamp,
    /// The newest commit's problems: warnings when it is in force, also errors when it is not.
    pub problems: Vec<Problem>,
    /// The commit that the problems are about.
    pub problems_commit: CommitId,
}

/// Why there is no bundle to start with.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error("bundle {commit} has {count} error(s), the first: {first}")]
    Invalid { commit: String, count: usize, first: String },
}

/// Keeps the bundle of one repository.
pub struct BundleKeeper {
    dir: PathBuf,
    state_dir: StateDir,
    state: watch::Sender<BundleState>,
    watch: BundleWatch,
}

impl BundleKeeper {
    /// Loads HEAD. When HEAD is invalid, the last commit that was in force is loaded instead, so that
    /// a restart in the night does not stop the work; its problems are shown all the same. Where that
    /// one is invalid too, since a task's repository vanished, the other tasks go on.
    pub fn start(dir: &Path, state_dir: &StateDir, now: Timestamp) -> Result<Self, StartError> {
        let loaded = bundle::load(dir, &Revision::Head)?;
        let state = match in_force(&loaded) {
            Some(bundle) => state_of(bundle, &loaded, now),
            None => last_good(dir, state_dir, &loaded, now)
                .or_else(|| degraded(&loaded, now))
                .ok_or_else(|| invalid(&loaded))?,
        };
        remember(state_dir, &state.bundle.commit);
        info!(bundle.commit = %state.bundle.commit, tasks = state.bundle.tasks.len(), "loaded the bundle");
        let watch = BundleWatch::start(dir, state.problems_commit.clone())?;
        Ok(BundleKeeper {
            dir: dir.to_owned(),
            state_dir: state_dir.clone(),
            state: watch::Sender::new(state),
            watch,
        })
    }

    /// The bundle in force.
    pub fn current(&self) -> Arc<Bundle> {
        self.state.borrow().bundle.clone()
    }

    /// The bundle that a claimed run uses: the one with which it began, or else the one in force.
    pub async fn for_run(&self, claimed: &ClaimedRun) -> Result<Arc<Bundle>, Outcome> {
        let current = self.current();
        let Some(commit) = claimed.bundle_commit.clone().filter(|commit| *commit != current.commit)
        else {
            return Ok(current);
        };
        let dir = self.dir.clone();
        let loaded = tokio::task::spawn_blocking(move || bundle::load_commit(&dir, &commit)).await;
        let loaded = loaded.ok().and_then(Result::ok);
        let bundle = loaded.and_then(|loaded| loaded.bundle.or(loaded.degraded));
        bundle.ok_or_else(|| {
            let commit = claimed.bundle_commit.as_ref().map_or("", CommitId::as_str);
            let reason = format!("the run began with the bundle commit {commit}, which {} does not have (any more): replay it to use the commit in force", self.dir.display());
            Outcome::failed(OutcomeClass::Config, reason)
        })
    }

    /// Follows what is in force and what is wrong.
    pub fn subscribe(&self) -> watch::Receiver<BundleState> {
        self.state.subscribe()
    }

    /// Waits until HEAD names another commit. May be dropped and called again.
    pub async fn changed(&mut self) -> CommitId {
        self.watch.next().await
    }

    /// Loads a commit that landed; true when its bundle came into force.
    pub async fn reload(&mut self, commit: CommitId, now: Timestamp) -> bool {
        let dir = self.dir.clone();
        let loaded = tokio::task::spawn_blocking(move || bundle::load_commit(&dir, &commit)).await;
        match loaded {
            Ok(Ok(loaded)) => self.replace(&loaded, now),
            Ok(Err(error)) => {
                warn!(error = %error, "cannot read the bundle repository: the last bundle stays in force");
                false
            }
            Err(_) => {
                warn!("the bundle's loading failed: the last bundle stays in force");
                false
            }
        }
    }

    fn replace(&self, loaded: &Loaded, now: Timestamp) -> bool {
        match in_force(loaded) {
            Some(bundle) => {
                info!(bundle.commit = %bundle.commit, tasks = bundle.tasks.len(), "a new bundle is in force");
                remember(&self.state_dir, &bundle.commit);
                self.state.send_replace(state_of(bundle, loaded, now));
                true
            }
            None => {
                warn!(bundle.commit = %commit_of(loaded), problems = loaded.problems.len(), "the new bundle is invalid: the last one stays in force");
                self.state.send_modify(|state| {
                    state.problems = loaded.problems.clone();
                    state.problems_commit = commit_of(loaded);
                });
                false
            }
        }
    }
}

fn in_force(loaded: &Loaded) -> Option<Arc<Bundle>> {
    loaded.bundle.clone()
}

/// A commit in which nothing is wrong but that the host lacks something: only the tasks that need it
/// fail. A new commit of that kind does not replace a whole one.
fn degraded(loaded: &Loaded, now: Timestamp) -> Option<BundleState> {
    let bundle = loaded.degraded.clone()?;
    for problem in loaded.problems.iter().filter(|problem| problem.is_of_host()) {
        warn!(
            file = problem.file,
            line = problem.line,
            problem = problem.message,
            "the host lacks what a task needs: its runs fail until it is there"
        );
    }
    Some(state_of(bundle, loaded, now))
}

fn commit_of(loaded: &Loaded) -> CommitId {
    loaded.commit.clone().unwrap_or_else(|| CommitId::new("unknown"))
}

fn state_of(bundle: Arc<Bundle>, loaded: &Loaded, now: Timestamp) -> BundleState {
    BundleState {
        bundle,
        loaded_at: now,
        problems: loaded.problems.clone(),
        problems_commit: commit_of(loaded),
    }
}

fn invalid(loaded: &Loaded) -> StartError {
    let errors = || loaded.problems.iter().filter(|problem| problem.severity == Severity::Error);
    let first = errors().next().map_or_else(String::new, |problem| {
        format!("{}:{}:{}: {}", problem.file, problem.line, problem.column, problem.message)
    });
    StartError::Invalid { commit: commit_of(loaded).to_string(), count: errors().count(), first }
}

/// The file that remembers the commit in force.
fn memory(state_dir: &StateDir) -> PathBuf {
    state_dir.root().join("bundle-in-force")
}

/// The commit that was in force last on a state directory.
pub fn commit_in_force(state_dir: &StateDir) -> Option<CommitId> {
    let text = std::fs::read_to_string(memory(state_dir)).ok()?;
    Some(CommitId::new(text.trim()))
}

fn remember(state_dir: &StateDir, commit: &CommitId) {
    let unnamed = memory(state_dir).with_extension("new");
    let written = std::fs::write(&unnamed, format!("{commit}\n"))
        .and_then(|()| std::fs::rename(&unnamed, memory(state_dir)));
    if let Err(error) = written {
        warn!(error = %error, "cannot remember the bundle in force: an invalid commit would stop the next start");
    }
}

fn last_good(
    dir: &Path,
    state_dir: &StateDir,
    newest: &Loaded,
    now: Timestamp,
) -> Option<BundleState> {
    let loaded = bundle::load_commit(dir, &commit_in_force(state_dir)?).ok()?;
    let bundle = in_force(&loaded)?;
    warn!(bundle.commit = %bundle.commit, newest.commit = %commit_of(newest), problems = newest.problems.len(), "the newest bundle is invalid: the one that was in force last is used");
    Some(state_of(bundle, newest, now))
}
