//! What the sandbox sees of a repository's git directory: an overlay over it, a generated `config`,
//! and empty files and directories over everything else that is not plain history. No remote, token,
//! hook or filter of the host is visible inside, and nothing written inside reaches the host.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::WorktreeError;
use super::directory::{make_private, remove_if_there};
use super::layout::{Layout, PARENT};
use super::source::{Repository, check_path};

/// Mounts that show the repository inside: the shape of the sandbox's git mounts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitView {
    /// The git directory, overlaid at its own path.
    pub git_dir: PathBuf,
    /// Upper directory of the overlay, on the host; outlives the container.
    pub upper: PathBuf,
    /// Work directory of the overlay, beside `upper`.
    pub work: PathBuf,
    /// (host file or directory, path inside), read-only over the overlay, in this order.
    pub masks: Vec<(PathBuf, PathBuf)>,
}

/// What git needs to read history. All else at the top of a git directory is hidden.
const SHOWN: [&str; 11] = [
    "HEAD",
    "ORIG_HEAD",
    "description",
    "index",
    "info",
    "logs",
    "objects",
    "packed-refs",
    "refs",
    "shallow",
    "worktrees",
];

/// Directories under `run_dir` that this module makes.
pub(super) const PARTS: [&str; 3] = ["upper", "work", "shield"];

/// The file under `run_dir` that names the repository, so that a run's directory is enough to find
/// its workspace.
pub(super) const REPOSITORY_FILE: &str = "repository";

/// Removes what [`build`] made under `run_dir`, and `run_dir` itself when nothing else is in it.
pub(super) fn discard(run_dir: &Path) -> Result<(), WorktreeError> {
    for part in PARTS.into_iter().chain([REPOSITORY_FILE]) {
        remove_if_there(&run_dir.join(part))?;
    }
    // Not empty or not there: others may keep files of the attempt in it.
    let _ = std::fs::remove_dir(run_dir);
    Ok(())
}

/// Makes the overlay's directories and the masks of one attempt under `run_dir`.
pub(super) fn build(
    repository: &Repository,
    layout: &Layout,
    run_dir: &Path,
) -> Result<GitView, WorktreeError> {
    check_path(run_dir)?;
    for part in PARTS {
        remove_if_there(&run_dir.join(part))?;
        make_private(&run_dir.join(part))?;
    }
    let shield = run_dir.join("shield");
    let mut masks = Masks::new(repository, &shield)?;
    masks.put("config", &generated_config(repository))?;
    masks.hide_the_rest()?;
    if repository.is_bare() {
        masks.hide_siblings(&layout.name)?;
    }
    let mut masks = masks.list;
    masks.push((shield.join("empty"), layout.admin.join("config.worktree")));
    masks.push((layout.path.join(".git"), layout.path.join(".git")));
    Ok(GitView {
        git_dir: repository.git_dir.clone(),
        upper: run_dir.join("upper"),
        work: run_dir.join("work"),
        masks,
    })
}

struct Masks<'a> {
    repository: &'a Repository,
    shield: &'a Path,
    list: Vec<(PathBuf, PathBuf)>,
}

impl<'a> Masks<'a> {
    fn new(repository: &'a Repository, shield: &'a Path) -> Result<Self, WorktreeError> {
        make_private(&shield.join("empty.d"))?;
        let masks = Masks { repository, shield, list: Vec::new() };
        masks.write("empty", "")?;
        Ok(masks)
    }

    fn write(&self, name: &str, text: &str) -> Result<PathBuf, WorktreeError> {
        let path = self.shield.join(name);
        std::fs::write(&path, text).map_err(|error| WorktreeError::io("write", &path, error))?;
        Ok(path)
    }

    fn put(&mut self, name: &str, text: &str) -> Result<(), WorktreeError> {
        let path = self.write(name, text)?;
        self.list.push((path, self.repository.git_dir.join(name)));
        Ok(())
    }

    /// Hides `hooks`, `config.worktree` and every other entry that is not history: whatever tool put
    /// it there may have put a secret in it.
    fn hide_the_rest(&mut self) -> Result<(), WorktreeError> {
        let git_dir = &self.repository.git_dir;
        let failed = |error| WorktreeError::io("list", git_dir, error);
        let mut hidden = vec![
            (self.shield.join("empty.d"), git_dir.join("hooks")),
            (self.shield.join("empty"), git_dir.join("config.worktree")),
        ];
        let mut entries = Vec::new();
        for entry in std::fs::read_dir(git_dir).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            entries.push((entry.file_name(), entry.file_type().map_err(failed)?));
        }
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        for (name, kind) in entries {
            let path = git_dir.join(&name);
            let known = ["config", "hooks", "config.worktree", PARENT];
            let text = name.to_str().ok_or_else(|| WorktreeError::Unmaskable(path.clone()))?;
            // Lock files come and go while other programs work.
            if known.contains(&text) || SHOWN.contains(&text) || text.ends_with(".lock") {
                continue;
            }
            check_path(&path).map_err(|_| WorktreeError::Unmaskable(path.clone()))?;
            let cover = if kind.is_dir() { "empty.d" } else { "empty" };
            if kind.is_symlink() {
                return Err(WorktreeError::Unmaskable(path));
            }
            hidden.push((self.shield.join(cover), path));
        }
        self.list.extend(hidden);
        Ok(())
    }

    /// In a bare repository the checkouts lie under the overlay: shows an empty parent with the one
    /// mount point.
    fn hide_siblings(&mut self, name: &str) -> Result<(), WorktreeError> {
        let alone = self.shield.join("alone");
        make_private(&alone)?;
        make_private(&alone.join(name))?;
        self.list.push((alone, self.repository.git_dir.join(PARENT)));
        Ok(())
    }
}

/// The only configuration that git sees inside.
fn generated_config(repository: &Repository) -> String {
    let bare = repository.is_bare();
    let (version, extensions) =
        if repository.sha256 { (1, "[extensions]\n\tobjectFormat = sha256\n") } else { (0, "") };
    format!(
        "# Made by fleet for the sandbox.\n\
         [core]\n\
         \trepositoryformatversion = {version}\n\
         \tfilemode = true\n\
         \tbare = {bare}\n\
         \tlogallrefupdates = true\n\
         {extensions}\
         [user]\n\
         \tname = fleet agent\n\
         \temail = agent@fleet.invalid\n\
         [commit]\n\
         \tgpgsign = false\n\
         [gc]\n\
         \tauto = 0\n\
         [maintenance]\n\
         \tauto = false\n\
         [advice]\n\
         \tdetachedHead = false\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generated_config_names_the_agent_and_the_repository_s_format() {
        let root = PathBuf::from("/r.git");
        let repository = Repository { git_dir: root.clone(), root, sha256: true };
        assert_eq!(
            generated_config(&repository),
            "# Made by fleet for the sandbox.\n[core]\n\trepositoryformatversion = 1\n\
             \tfilemode = true\n\tbare = true\n\tlogallrefupdates = true\n[extensions]\n\
             \tobjectFormat = sha256\n[user]\n\tname = fleet agent\n\
             \temail = agent@fleet.invalid\n[commit]\n\tgpgsign = false\n[gc]\n\tauto = 0\n\
             [maintenance]\n\tauto = false\n[advice]\n\tdetachedHead = false\n"
        );
    }
}
