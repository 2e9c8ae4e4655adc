//! Secrets beside the work are never readable inside.

use fleet::sandbox::Sandbox;

use crate::env::git;

use super::lab::{Kind, Lab, checkout, shell};

/// Planted wherever an operator's secrets lie.
const SECRET: &str = "planted-4f9c1e-secret";
/// Planted where the agent may read: what the search must find.
const OPEN: &str = "planted-7b20aa-in-the-open";

/// The search of everything that can be read inside. The image's own programs and the kernel's files
/// apart, that is every file, the mounts' names and every process's environment. The shell does not
/// hold the word itself.
fn search(word: &str) -> String {
    format!(
        "P=$(printf %s {} | rev); E=$(cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n')
find / -xdev -path /usr -prune -o -type f -print0 2>/dev/null | xargs -0 grep -l -a -F -e \"$P\" 2>/dev/null
for m in $(cut -d' ' -f5 /proc/self/mountinfo | grep -v -e '^/usr' -e '^/proc' -e '^/sys' -e '^/dev' -e '^/$'); do grep -r -l -a -F -e \"$P\" $m 2>/dev/null; done
case $E in *$P*) echo environment;; esac
git config --list --show-origin | grep -F -e \"$P\"; git remote -v; git log --all --oneline | grep -F -e \"$P\"
exit 0",
        word.chars().rev().collect::<String>()
    )
}

async fn nothing_is_found(kind: Kind) {
    let lab = Lab::prepared(kind, |repo| {
        let git_dir = if repo.join(".git").is_dir() { repo.join(".git") } else { repo.to_owned() };
        let url = format!("https://user:{SECRET}@example.invalid/x.git");
        git(repo, &["remote", "add", "private", &url]);
        git(repo, &["config", "http.extraHeader", &format!("Authorization: {SECRET}")]);
        let plant = |path: std::path::PathBuf| {
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("parents");
            std::fs::write(path, format!("TOKEN={SECRET}\n")).expect("a secret");
        };
        for name in
            ["hooks/pre-push", "credentials", "config.worktree", "FETCH_HEAD", "lfs/cache/token"]
        {
            plant(git_dir.join(name));
        }
        if git_dir != *repo {
            plant(repo.join(".env"));
            plant(repo.join("untracked/secret.txt"));
        }
    })
    .await;
    // Another run's work, and what is beside the repository.
    let sibling = checkout(&lab.cell, &lab.repo, "run-sibling").await;
    std::fs::write(sibling.path.join("notes.txt"), SECRET).expect("a sibling's file");
    std::fs::write(lab.cell.path("beside.txt"), SECRET).expect("a file beside");
    std::fs::write(lab.cell.config.state.root().join("fleet.toml"), SECRET).expect("a file");

    let sandbox = lab.sandbox().await;
    let plant = format!(
        "W={OPEN}; echo $W > open.txt; echo $W > /tmp/open.txt; git config --global user.open $W; \
         git commit -qm \"$W: in the open\" --allow-empty; exit 0"
    );
    shell(&sandbox, &plant).await;
    let beside = format!("OPEN={OPEN} sleep 20 >/dev/null & ");
    let found = shell(&sandbox, &(beside + &search(OPEN))).await;
    for place in ["open.txt", "/tmp/open.txt", "config", "environment", "in the open"] {
        assert!(found.lines().any(|line| line.contains(place)), "{kind:?}: no {place}: {found}");
    }
    let found = shell(&sandbox, &search(SECRET)).await;
    sandbox.close().await;
    assert_eq!(found, "", "{kind:?}");
}

#[tokio::test]
async fn secrets_of_the_main_tree_the_configuration_and_a_sibling_are_not_readable_inside() {
    nothing_is_found(Kind::Normal).await;
}

#[tokio::test]
async fn secrets_of_a_bare_repository_are_not_readable_inside() {
    nothing_is_found(Kind::Bare).await;
}
