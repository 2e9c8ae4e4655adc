//! `workspace` and `worktree_config`.

use std::path::{Path as FsPath, PathBuf};
use std::time::Duration;

use super::range::check_range;
use crate::bundle::WorktreeConfig;
use crate::bundle::raw::RawWorktreeConfig;
use crate::bundle::source::open;
use crate::bundle::yaml::{Document, Finding, Path};

/// The source document's default.
const DEFAULT_PREFIX: &str = "fleet/task-";

/// 30 days.
const MAX_DELAY_SECONDS: u64 = 30 * 24 * 3600;

/// Reports mistakes where they are written.
pub(super) fn check_worktree(raw: &RawWorktreeConfig, at: &Path, document: &Document<'_>) {
    if let Some(prefix) = &raw.branch_prefix {
        let branch = format!("refs/heads/{prefix}task-0");
        let hint = if prefix.is_empty() {
            Some("write a prefix, or remove the key for fleet/task-")
        } else if prefix.starts_with("refs/") {
            Some("a branch's name begins after refs/heads/: write for example fleet/task-")
        } else if !is_reference(&branch) || prefix.starts_with('-') {
            Some("use letters, digits, - and /, for example fleet/task-")
        } else {
            None
        };
        if let Some(hint) = hint {
            let message = format!("{prefix:?} cannot begin a branch's name");
            let finding = Finding::error("invalid-branch", message);
            document.report(&at.key("branch_prefix"), finding.hint(hint));
        }
    }
    let delay = at.key("cleanup_delay_seconds");
    check_range(raw.cleanup_delay_seconds, 0..=MAX_DELAY_SECONDS, &delay, document);
    if let Some(base) = &raw.base_branch
        && (!is_reference(&format!("refs/heads/{base}")) || base.starts_with('-'))
    {
        let finding = Finding::error("invalid-branch", format!("{base:?} is not a branch's name"));
        document.report(
            &at.key("base_branch"),
            finding.hint("write a branch such as main, or remove the key for HEAD"),
        );
    }
}

fn is_reference(name: &str) -> bool {
    gix::validate::reference::name(name.into()).is_ok()
}

/// The valid configuration: the task's over the manifest's over the defaults.
pub(super) fn resolve_worktree(
    task: &RawWorktreeConfig,
    inherited: &RawWorktreeConfig,
) -> WorktreeConfig {
    let prefix = task.branch_prefix.as_ref().or(inherited.branch_prefix.as_ref());
    let base = task.base_branch.as_ref().or(inherited.base_branch.as_ref());
    let delay = task.cleanup_delay_seconds.or(inherited.cleanup_delay_seconds).unwrap_or(0);
    WorktreeConfig {
        enabled: task.enabled.or(inherited.enabled).unwrap_or(true),
        base_branch: base.filter(|base| !base.is_empty()).cloned(),
        branch_prefix: prefix.cloned().unwrap_or_else(|| DEFAULT_PREFIX.to_owned()),
        auto_cleanup: task.auto_cleanup.or(inherited.auto_cleanup).unwrap_or(true),
        cleanup_delay: Duration::from_secs(delay),
    }
}

/// The root of a local repository, absolute; a mistake is reported. A repository that is not there is
/// named all the same: it may come back.
pub(super) fn check_repo(
    repo: &str,
    bundle: &FsPath,
    at: &Path,
    document: &Document<'_>,
) -> Option<PathBuf> {
    match find_repo(repo, bundle) {
        Ok(path) => Some(path),
        Err(finding) => {
            document.report(at, finding);
            Some(bundle.join(repo))
        }
    }
}

fn find_repo(repo: &str, bundle: &FsPath) -> Result<PathBuf, Finding> {
    let refuse = |why: &str, hint: &str| {
        Finding::error("invalid-repo", format!("{repo:?} {why}")).hint(hint)
    };
    let missing = |why: &str, hint: &str| {
        Finding::error("missing-repo", format!("{repo:?} {why}")).hint(hint)
    };
    if repo.contains("://") || repo.starts_with("git@") {
        return Err(refuse("is a URL", "clone it, and write the clone's path"));
    }
    if repo.starts_with('~') {
        return Err(refuse("is not expanded", "write the path in full"));
    }
    if repo.contains([':', ',']) {
        let why = "holds a character that a container mount cannot";
        return Err(refuse(why, "move the repository to a path without : and ,"));
    }
    let path = bundle.join(repo);
    let path = path
        .canonicalize()
        .map_err(|_| missing("does not exist", "write the path of a local repository's root"))?;
    if path.to_string_lossy().contains([':', ',']) {
        let why = "lies at a path with : or ,";
        return Err(refuse(why, "move the repository to a path without : and ,"));
    }
    let Ok(repository) = open(&path) else {
        let why = "is not the root of a git repository";
        return Err(missing(why, "write the directory that holds .git, or run git init there"));
    };
    if repository.config_snapshot().string("extensions.partialClone").is_some() {
        let why = "is a partial clone: its files may be missing in the sandbox";
        return Err(refuse(why, "clone it in full"));
    }
    if bundle.canonicalize().is_ok_and(|bundle| bundle == path) {
        let why = "is the bundle itself, which runs never write";
        return Err(refuse(why, "let the task work in another repository"));
    }
    Ok(path)
}
