//! Takes an agent's commits over: from the bundle that its sandbox sent, by way of a ref of fleet's
//! own, into the run's branch. Nothing that people look at changes before every check has passed.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gix::ObjectId;

use super::attempts::{attempt_ref, attempts_of, branch_ref};
use super::bundle_header::{self, BundleHeader};
use super::directory::remove_if_there;
use super::git::Git;
use super::open::{Expect, Handle, is_same};
use super::{BundleError, Checkout, WorktreeError};

/// How much an agent may hand over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectLimits {
    /// Bytes of the bundle.
    pub max_bytes: u64,
    pub max_objects: u64,
    /// Of each git process.
    pub timeout: Duration,
}

impl Default for CollectLimits {
    /// 256 MiB, 200,000 objects, a minute.
    fn default() -> Self {
        CollectLimits {
            max_bytes: 256 << 20,
            max_objects: 200_000,
            timeout: Duration::from_secs(60),
        }
    }
}

/// What the sandbox sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectRequest {
    /// The bundle of `base..HEAD`.
    pub bundle: Vec<u8>,
    /// The tip that the sandbox announced, where it did.
    pub head: Option<String>,
    pub limits: CollectLimits,
}

/// Work that is safe in the repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collected {
    /// The branch's new tip.
    pub commit: String,
    /// Commits beyond the base.
    pub commits: u64,
    /// git's short statistics, for example `2 files changed, 5 insertions(+)`; empty when no file
    /// differs.
    pub diff_stat: String,
    /// The ref that keeps this attempt whatever happens to the branch.
    pub kept_at: String,
}

/// Collects; blocks.
pub(super) fn collect(
    checkout: &Checkout,
    request: &CollectRequest,
) -> Result<Collected, WorktreeError> {
    let Some(branch) = &checkout.branch else {
        return Err(WorktreeError::NotOurs(checkout.path.clone()));
    };
    let header = inspect(request, &branch_ref(branch))?;
    let handle = Handle::open_dir(&checkout.git_dir, &checkout.repo_root)?;
    let file = BundleFile::write(&checkout.run_dir, &request.bundle)?;
    let git =
        Git { git_dir: &checkout.git_dir, cwd: &checkout.run_dir, timeout: request.limits.timeout };
    let incoming = Incoming {
        handle: &handle,
        name: format!("refs/fleet/incoming/{}/{}", checkout.run_id, checkout.attempt),
    };
    fetch(&git, &file.path, &header, &incoming.name)?;
    let tip = accept(&handle, &git, &incoming, &header, &checkout.base_commit)?;
    let collected = Collected {
        commit: tip.to_string(),
        commits: count(&git, &checkout.base_commit, tip)?,
        diff_stat: diff_stat(&git, &checkout.base_commit, tip)?,
        kept_at: attempt_ref(&checkout.run_id, checkout.attempt),
    };
    publish(&handle, checkout, branch, tip)?;
    Ok(collected)
}

/// The checks that need no git.
fn inspect(request: &CollectRequest, branch_ref: &str) -> Result<BundleHeader, BundleError> {
    let size = request.bundle.len() as u64;
    let CollectLimits { max_bytes, max_objects, .. } = request.limits;
    if size > max_bytes {
        return Err(BundleError::TooLarge { size, max: max_bytes });
    }
    let header = bundle_header::parse(&request.bundle, branch_ref)?;
    if header.objects > max_objects {
        return Err(BundleError::TooManyObjects { objects: header.objects, max: max_objects });
    }
    match &request.head {
        Some(claimed) if *claimed != header.tip => {
            Err(BundleError::OtherTip { claimed: claimed.clone(), found: header.tip })
        }
        _ => Ok(header),
    }
}

fn fetch(
    git: &Git<'_>,
    bundle: &Path,
    header: &BundleHeader,
    into: &str,
) -> Result<(), WorktreeError> {
    let verify = ["bundle".as_ref(), "verify".as_ref(), "--quiet".as_ref(), bundle.as_os_str()];
    git.run(&verify).map_err(judged)?;
    let refspec = format!("+{}:{into}", header.tip_ref);
    let flags = [
        "fetch",
        "--quiet",
        "--no-tags",
        "--no-write-fetch-head",
        "--no-auto-maintenance",
        "--no-recurse-submodules",
    ];
    let mut args: Vec<&OsStr> = flags.iter().map(OsStr::new).collect();
    args.extend([bundle.as_os_str(), refspec.as_ref()]);
    git.run(&args).map(drop).map_err(judged)
}

/// What git says when the host is at fault: another try may end well.
const HOST_FAULTS: [&str; 10] = [
    "No space left on device",
    "Disk quota exceeded",
    "Read-only file system",
    "Permission denied",
    "Input/output error",
    "Too many open files",
    "Resource temporarily unavailable",
    "Unable to create",
    "cannot create",
    "cannot lock ref",
];

/// git read a bundle and ended badly: for what is in it, unless a signal or the host ended it. Memory
/// that runs out is the bundle's own doing: git has two gigabytes.
fn judged(error: WorktreeError) -> WorktreeError {
    match error {
        WorktreeError::GitExit { verb, code: Some(_), said }
            if !HOST_FAULTS.iter().any(|fault| said.contains(fault)) =>
        {
            BundleError::Content { verb, said }.into()
        }
        other => other,
    }
}

/// The checks that need the objects: the tip is what was announced, a commit, and beyond the base.
fn accept(
    handle: &Handle,
    git: &Git<'_>,
    incoming: &Incoming<'_>,
    header: &BundleHeader,
    base: &str,
) -> Result<ObjectId, WorktreeError> {
    let tip = handle.find(&incoming.name)?;
    let tip = tip.filter(|tip| is_same(*tip, &header.tip) && handle.is_commit(*tip));
    let Some(tip) = tip else {
        return Err(BundleError::Malformed("its tip is not the commit that it names").into());
    };
    let text = tip.to_string();
    match git.run(&["merge-base", base, &text].map(OsStr::new)) {
        Ok(found) if found.trim() == base => Ok(tip),
        Ok(_) => Err(WorktreeError::NotDescendant { tip: text, base: base.to_owned() }),
        // No common commit at all: exit 1 without a word.
        Err(WorktreeError::GitExit { code: Some(1), .. }) => {
            Err(WorktreeError::NotDescendant { tip: text, base: base.to_owned() })
        }
        Err(error) => Err(error),
    }
}

fn count(git: &Git<'_>, base: &str, tip: ObjectId) -> Result<u64, WorktreeError> {
    let range = format!("{base}..{tip}");
    let text = git.run(&["rev-list", "--count", &range].map(OsStr::new))?;
    text.trim().parse().map_err(|_| WorktreeError::Git {
        verb: "rev-list".into(),
        message: format!("{text:?} is not a number"),
    })
}

fn diff_stat(git: &Git<'_>, base: &str, tip: ObjectId) -> Result<String, WorktreeError> {
    let tip = tip.to_string();
    let args = ["diff-tree", "-r", "--shortstat", "--no-ext-diff", "--no-textconv", base, &tip];
    git.run(&args.map(OsStr::new)).map(|text| text.trim().to_owned())
}

/// Keeps the attempt, then moves the branch: only from the base or from a kept attempt.
fn publish(
    handle: &Handle,
    checkout: &Checkout,
    branch: &str,
    tip: ObjectId,
) -> Result<(), WorktreeError> {
    let why = "fleet: collect";
    let kept_at = attempt_ref(&checkout.run_id, checkout.attempt);
    handle.point(&kept_at, tip, &Expect::Anything, why)?;
    let name = branch_ref(branch);
    let (found, safe) = match handle.find(&name)? {
        None => (None, true),
        Some(found) => {
            let kept = handle.under(&attempts_of(&checkout.run_id))?;
            let at_base = is_same(found, &checkout.base_commit);
            (Some(found), at_base || kept.iter().any(|(_, id)| *id == found))
        }
    };
    let expect = found.map_or(Expect::Missing, Expect::At);
    if safe && handle.point(&name, tip, &expect, why).is_ok() {
        return Ok(());
    }
    let found = handle.find(&name)?.map_or_else(|| "nothing".to_owned(), |id| id.to_string());
    Err(WorktreeError::BranchMoved { branch: branch.to_owned(), found, kept_at })
}

/// The ref that fetched objects hang on until they are accepted; gone when this is.
struct Incoming<'a> {
    handle: &'a Handle,
    name: String,
}

impl Drop for Incoming<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.handle.delete(&self.name, &Expect::Anything) {
            tracing::warn!(%error, "a fetched bundle's temporary ref stays");
        }
    }
}

/// The bundle as a file in the attempt's own directory; gone when this is.
struct BundleFile {
    path: PathBuf,
}

impl BundleFile {
    fn write(run_dir: &Path, bytes: &[u8]) -> Result<Self, WorktreeError> {
        let file = BundleFile { path: run_dir.join("agent.bundle") };
        std::fs::write(&file.path, bytes)
            .map_err(|error| WorktreeError::io("write", &file.path, error))?;
        Ok(file)
    }
}

impl Drop for BundleFile {
    fn drop(&mut self) {
        // It lies in the attempt's directory, which is removed with the workspace.
        let _ = remove_if_there(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn git_that_ends_for_the_host_s_sake_is_no_refusal_of_the_work() {
        let ended = |code, said: &str| {
            let verb = "fetch".to_owned();
            judged(WorktreeError::GitExit { verb, code, said: said.to_owned() }).is_refusal()
        };
        assert!(ended(Some(128), "fatal: bad object 0123"));
        assert!(ended(
            Some(128),
            "fatal: Out of memory, malloc failed (tried to allocate 9 bytes)"
        ));
        assert!(!ended(Some(128), "fatal: write error: No space left on device"));
        assert!(!ended(Some(128), "fatal: Unable to create '/r/.git/shallow.lock': File exists."));
        assert!(!ended(None, ""));
        let git = WorktreeError::Git { verb: "fetch".to_owned(), message: "no git".to_owned() };
        assert!(!judged(git).is_refusal());
    }
}
