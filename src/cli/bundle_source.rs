//! Which bundle a verb reads.

use std::path::PathBuf;
use std::sync::Arc;

use super::{Exit, Failure, Global};
use crate::bundle::{Bundle, Loaded, Revision, Severity, load, load_commit};
use crate::config::Config;
use crate::runner::{ServeLock, commit_in_force};

/// The way out when no bundle is named.
const NO_BUNDLE_HINT: &str =
    "give one with --bundle DIR, or set `bundle` in fleet.toml; fleet init DIR makes one";

/// The repository that a daemon is to serve: the flag, or `bundle` of fleet.toml.
pub(super) fn bundle_dir(flag: Option<PathBuf>, config: &Config) -> Result<PathBuf, Failure> {
    let dir = flag.or_else(|| config.bundle.clone()).ok_or_else(|| {
        Failure::new(Exit::Usage, "no bundle repository is given").hint(NO_BUNDLE_HINT)
    })?;
    std::path::absolute(&dir).map_err(|error| {
        Failure::new(Exit::Usage, format!("cannot use {}: {error}", dir.display()))
    })
}

/// Which bundle is read.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct BundleSource {
    /// The bundle's repository [default: `bundle` of fleet.toml, or the one that the daemon serves or served last]
    #[arg(long, value_name = "DIR")]
    bundle: Option<PathBuf>,
    /// Read this commit instead of HEAD
    #[arg(long, value_name = "REV", conflicts_with = "worktree")]
    rev: Option<String>,
    /// Read the files on disk, committed or not
    #[arg(long)]
    worktree: bool,
}

impl BundleSource {
    fn dir(&self, global: &Global) -> Option<PathBuf> {
        let served = || ServeLock::last_holder(&global.config.state).map(|daemon| daemon.bundle);
        self.bundle.clone().or_else(|| global.config.bundle.clone()).or_else(served)
    }

    /// Reads the bundle, valid or not; `None` when none is given, configured or served.
    pub(super) fn read(&self, global: &Global) -> Result<Option<Loaded>, Failure> {
        let Some(dir) = self.dir(global) else { return Ok(None) };
        let revision = match &self.rev {
            Some(rev) => Revision::Named(rev.clone()),
            None if self.worktree => Revision::Worktree,
            None => Revision::Head,
        };
        Ok(Some(load(&dir, &revision)?))
    }

    /// Reads the bundle, which must be given and valid. While a daemon runs and HEAD is invalid, the
    /// commit that the daemon keeps in force is meant. Where nothing is wrong but that a task's
    /// repository is not there, the bundle serves the other tasks.
    pub(super) fn valid(&self, global: &Global) -> Result<Arc<Bundle>, Failure> {
        let loaded = self.read(global)?.ok_or_else(|| {
            Failure::new(Exit::Usage, "no bundle repository is given").hint(NO_BUNDLE_HINT)
        })?;
        let errors =
            loaded.problems.iter().filter(|problem| problem.severity == Severity::Error).count();
        let usable = match loaded.bundle {
            Some(bundle) => Some(bundle),
            None => self.in_force(global).inspect(|bundle| {
                eprintln!(
                    "warning: HEAD is not valid ({errors} error(s)): {} is in force; fleet bundle \
                     validate lists them",
                    bundle.commit
                );
            }),
        };
        let usable = usable.or(loaded.degraded);
        usable.ok_or_else(|| {
            Failure::new(Exit::Problems, format!("the bundle is not valid: {errors} error(s)"))
                .hint("fleet bundle validate lists them")
        })
    }

    fn in_force(&self, global: &Global) -> Option<Arc<Bundle>> {
        let at_head = self.rev.is_none() && !self.worktree;
        ServeLock::holder(&global.config.state).filter(|_| at_head)?;
        let commit = commit_in_force(&global.config.state)?;
        load_commit(&self.dir(global)?, &commit).ok()?.bundle
    }
}
