//! One repository under attack.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use fleet::sandbox::{Call, GitMounts, PodmanSandbox, Reply, Sandbox};
use fleet::worktree::{
    self, Checkout, CheckoutMode, CollectLimits, CollectRequest, Collected, CreateRequest,
    RepoSource,
};
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use crate::env::sandbox::Cell;
use crate::env::{commit_files, git, git_output, repository};

pub const RUN: &str = "run-attack";

/// The repository's kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Normal,
    Bare,
    Shallow,
    Submodules,
    Sha256,
}

pub struct Lab {
    pub cell: Cell,
    pub repo: PathBuf,
    pub checkout: Checkout,
    /// Made by whatever an attacker gets to run on the host; inside, its directory does not exist.
    canary: PathBuf,
    before: BTreeMap<PathBuf, String>,
}

impl Lab {
    /// A repository of that kind with a workspace for the run.
    pub async fn new(kind: Kind) -> Self {
        Lab::prepared(kind, |_| {}).await
    }

    /// The same, changed by `prepare` before the run begins.
    pub async fn prepared(kind: Kind, prepare: impl FnOnce(&Path)) -> Self {
        let cell = Cell::new().await;
        let repo = make(kind, &cell.dir.path().canonicalize().expect("it is there"));
        prepare(&repo);
        let checkout = checkout(&cell, &repo, RUN).await;
        let canary = cell.path("owned");
        let before = picture(&repo);
        Lab { cell, repo, checkout, canary, before }
    }

    /// The path that an attacker's command touches.
    pub fn canary(&self) -> String {
        self.canary.display().to_string()
    }

    pub async fn sandbox(&self) -> PodmanSandbox {
        let view = self.checkout.git.clone().expect("a checkout with a branch");
        let mounts = GitMounts {
            git_dir: view.git_dir,
            upper: view.upper,
            work: view.work,
            masks: view.masks,
        };
        self.cell.start_spec(self.cell.spec_with(RUN, self.checkout.path.clone(), mounts)).await
    }

    /// Runs a script inside and collects what came of it. Each line of the script may fail. Returns
    /// what it printed, and the work or why there is none.
    pub async fn attack(&self, script: &str) -> (String, Result<Option<Collected>, String>) {
        let sandbox = self.sandbox().await;
        let said = shell(&sandbox, script).await;
        let collected = self.collect(&sandbox).await;
        sandbox.close().await;
        (said, collected)
    }

    pub async fn collect(&self, sandbox: &PodmanSandbox) -> Result<Option<Collected>, String> {
        let call = Call::CollectGit {
            base: self.checkout.base_commit.clone(),
            message: "uncommitted work".to_owned(),
            max_bytes: 8 << 20,
        };
        let reply = sandbox.call(call, &CancellationToken::new()).await;
        let bundle = match reply.map_err(|error| error.to_string())? {
            Reply::Git(bundle) => bundle,
            other => panic!("a collection was answered by {other:?}"),
        };
        let Some(bytes) = bundle.bytes else { return Ok(None) };
        let request =
            CollectRequest { bundle: bytes, head: bundle.head, limits: CollectLimits::default() };
        let collected = worktree::collect(&self.checkout, request).await;
        collected.map(Some).map_err(|error| error.to_string())
    }

    /// The host is what it was, before and after an operator looks around.
    pub fn assert_untouched(&self) {
        self.assert_same("after the run");
        self.look_around();
        assert!(!self.is_owned(), "something of the agent's ran on the host");
        self.assert_same("after the operator looked");
    }

    fn assert_same(&self, when: &str) {
        let after = picture(&self.repo);
        for (path, what) in &self.before {
            let path_after = after.get(path);
            // Looking refreshes the index's times.
            let is_index = path.ends_with("index") && path_after.is_some();
            if is_index || is_fleets_own(path) {
                continue;
            }
            assert_eq!(path_after, Some(what), "{when}: {} changed", path.display());
        }
        let new: Vec<_> = after.keys().filter(|path| !self.before.contains_key(*path)).collect();
        let allowed = |path: &Path| is_fleets_own(path) || path_in_git(path).starts_with("objects");
        let strange: Vec<_> = new.into_iter().filter(|path| !allowed(path)).collect();
        assert!(strange.is_empty(), "{when}: new on the host: {strange:?}");
    }

    /// Whether something of the attacker's ran on the host.
    pub fn is_owned(&self) -> bool {
        self.canary.exists()
    }

    /// What an operator does in the morning.
    pub fn look_around(&self) {
        let bare = !self.repo.join(".git").exists();
        let common = [
            &["log", "--all", "--stat", "--oneline"][..],
            &["fsck", "--no-dangling"],
            &["branch", "--all"],
            &["worktree", "list"],
            &["for-each-ref"],
        ];
        for args in common {
            ok(&self.repo, args);
        }
        if !bare {
            ok(&self.repo, &["status"]);
            ok(&self.repo, &["diff", "--stat", "HEAD"]);
            ok(&self.repo, &["stash", "list"]);
        }
        if let Some(branch) = self.checkout.branch.as_deref()
            && git_output(&self.repo, &["rev-parse", "--verify", "--quiet", branch])
                .status
                .success()
        {
            ok(&self.repo, &["diff", "--stat", &self.checkout.base_commit, branch]);
            let look = self.cell.path("look");
            let from = self.repo.to_str().expect("text");
            let to = look.to_str().expect("text");
            ok(&self.repo, &["clone", "--quiet", "--branch", branch, from, to]);
            ok(&look, &["status"]);
        }
    }

    pub fn branch(&self) -> &str {
        self.checkout.branch.as_deref().expect("a branch")
    }

    /// The content of a file on the run's branch.
    pub fn on_branch(&self, path: &str) -> String {
        git(&self.repo, &["show", &format!("{}:{path}", self.branch())])
    }
}

fn path_in_git(path: &Path) -> &Path {
    path.strip_prefix(".git").unwrap_or(path)
}

/// The run's branch, the refs that keep its attempts, and their logs.
fn is_fleets_own(path: &Path) -> bool {
    let path = path_in_git(path);
    let path = path.strip_prefix("logs").unwrap_or(path);
    path.starts_with("refs/fleet") || path.starts_with("refs/heads/fleet")
}

fn ok(dir: &Path, args: &[&str]) {
    let output = git_output(dir, args);
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "git {args:?}: {words}");
}

pub async fn shell(sandbox: &PodmanSandbox, script: &str) -> String {
    let call = Call::Bash {
        command: script.to_owned(),
        cwd: None,
        timeout: std::time::Duration::from_secs(60),
    };
    match sandbox.call(call, &CancellationToken::new()).await.expect("it is answered") {
        Reply::Command(output) => String::from_utf8_lossy(&output.output).into_owned(),
        other => panic!("a command was answered by {other:?}"),
    }
}

/// A workspace of the run `run_id`.
pub async fn checkout(cell: &Cell, repo: &Path, run_id: &str) -> Checkout {
    let request = CreateRequest {
        source: RepoSource::Path(repo.to_owned()),
        task: "some-task".into(),
        run_id: run_id.into(),
        attempt: 1,
        branch_prefix: "fleet/task-".into(),
        base: None,
        mode: CheckoutMode::Branch,
        run_dir: cell.path(&format!("attempt-{run_id}")),
        now: jiff::Timestamp::UNIX_EPOCH,
    };
    worktree::create(request).await.expect("workspace is made")
}

fn make(kind: Kind, dir: &Path) -> PathBuf {
    let files = [("README.md", "hello\n"), ("src/main.txt", "one\n")];
    let plain = dir.join("repo");
    match kind {
        Kind::Normal => repository(&plain, &files),
        Kind::Sha256 => {
            std::fs::create_dir(&plain).expect("directory");
            git(&plain, &["init", "--quiet", "--object-format=sha256", "--initial-branch=main"]);
            commit_files(&plain, &files, "start");
        }
        Kind::Submodules => {
            let library = dir.join("library");
            repository(&library, &[("lib.txt", "lib\n")]);
            repository(&plain, &files);
            let from = library.to_str().expect("text");
            let add =
                ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", from, "lib"];
            git(&plain, &add);
            git(&plain, &["commit", "--quiet", "-m", "a submodule"]);
        }
        Kind::Bare | Kind::Shallow => {
            let origin = dir.join("origin");
            repository(&origin, &files);
            commit_files(&origin, &[("later.txt", "later\n")], "later");
            let url = format!("file://{}", origin.display());
            let flag = if kind == Kind::Bare { "--bare" } else { "--depth=1" };
            git(dir, &["clone", "--quiet", flag, &url, "repo"]);
        }
    }
    plain
}

/// Every file of the repository but the run's checkout: its mode and its content's hash.
fn picture(repo: &Path) -> BTreeMap<PathBuf, String> {
    let mut all = BTreeMap::new();
    walk(repo, repo, &mut all);
    all
}

fn walk(root: &Path, dir: &Path, all: &mut BTreeMap<PathBuf, String>) {
    for entry in std::fs::read_dir(dir).expect("list") {
        let path = entry.expect("entry").path();
        if path.file_name().is_some_and(|name| name == ".fleet-worktrees") {
            continue;
        }
        let meta = path.symlink_metadata().expect("its kind");
        let name = path.strip_prefix(root).expect("below the root").to_owned();
        let mode = meta.permissions().mode();
        if meta.is_dir() {
            walk(root, &path, all);
        } else if meta.is_symlink() {
            let target = std::fs::read_link(&path).expect("its target");
            all.insert(name, format!("-> {}", target.display()));
        } else {
            let digest = Sha256::digest(std::fs::read(&path).expect("its content"));
            let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            all.insert(name, format!("{mode:o} {hex}"));
        }
    }
}
