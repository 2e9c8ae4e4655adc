//! Writes to everything that git on the host would believe.

use super::lab::{Kind, Lab};

/// The writes of an agent that wants to run on the host, and then honest work. Every line may fail.
fn everything(lab: &Lab) -> String {
    let canary = lab.canary();
    format!(
        r#"G=$(git rev-parse --git-common-dir); A=$(git rev-parse --git-dir); W=$PWD
evil() {{ printf '#!/bin/sh\ntouch {canary}\n' > "$1"; chmod +x "$1"; }}
mkdir -p hooks; evil hooks/post-checkout; evil hooks/pre-commit
rm -rf "$G/hooks"; mkdir -p "$G/hooks"
for h in post-commit pre-commit post-checkout reference-transaction post-merge fsmonitor-watchman; do evil "$G/hooks/$h"; done
git config core.fsmonitor 'touch {canary}'
git config core.hooksPath "$W/hooks"
git config alias.status '!touch {canary}'
printf '[core]\n\tfsmonitor = touch {canary}\n' >> "$G/config"
mv "$G/config" "$G/config.old"; printf '[core]\n\tfsmonitor = touch {canary}\n' > "$G/config"
printf '[core]\n\tfsmonitor = touch {canary}\n' > "$A/config.worktree"
printf '[core]\n\tfsmonitor = touch {canary}\n' > "$G/config.worktree"
T=$(git commit-tree -m evil 'HEAD^{{tree}}')
echo $T > "$G/refs/heads/main"
echo "$T refs/heads/main" > "$G/packed-refs"
echo 'ref: refs/heads/evil' > "$G/HEAD"
echo /tmp/objects > "$G/objects/info/alternates"
echo /tmp > "$A/commondir"; echo /tmp/x/.git > "$A/gitdir"; git worktree list >/dev/null
B=$(git rev-parse HEAD:README.md); O="$G/objects/$(echo $B | cut -c1-2)/$(echo $B | cut -c3-)"
chmod u+w "$O"; echo forged > "$O"; rm -f "$O"
rm -f "$G/objects/pack/"*.pack
echo garbage > "$G/index"; : > "$G/index.lock"; : > "$G/HEAD.lock"; : > "$G/packed-refs.lock"
echo evil > "$G/info/exclude"; echo '* filter=evil diff=evil' > "$G/info/attributes"
for b in $(ls "$G/refs/heads"); do : > "$G/refs/heads/$b"; done
git update-ref refs/heads/sibling HEAD; git update-ref -d refs/heads/main
git symbolic-ref refs/heads/link refs/heads/main
printf 'gitdir: %s/nested/.git\n' "$W" > .git; rm -f .git; mv .git .git.old
ln -s /etc "$G/evil"; echo x > ../../README.md; echo x > ../x; rm -rf ../../src
exit 0"#
    )
}

async fn nothing_reaches_the_host(kind: Kind) {
    let lab = Lab::new(kind).await;
    // Inside, what is not sealed off stands as it was written.
    let script = everything(&lab).replace("exit 0", "cat \"$G/info/exclude\"; exit 0");
    let (said, _) = lab.attack(&script).await;
    assert!(said.ends_with("\nevil\n"), "{kind:?}: {said}");
    lab.assert_untouched();
}

#[tokio::test]
async fn one_write_that_reached_the_host_would_run_there_when_the_operator_looks() {
    let lab = Lab::new(Kind::Normal).await;
    let run = format!("touch {}", lab.canary());
    crate::env::git(&lab.repo, &["config", "core.fsmonitor", &run]);
    lab.look_around();
    assert!(lab.is_owned(), "the operator's commands believe the repository");
}

#[tokio::test]
async fn writes_to_the_git_directory_of_a_repository_stay_inside() {
    nothing_reaches_the_host(Kind::Normal).await;
}

#[tokio::test]
async fn writes_to_a_bare_repository_stay_inside() {
    nothing_reaches_the_host(Kind::Bare).await;
}

#[tokio::test]
async fn writes_to_a_shallow_clone_stay_inside() {
    nothing_reaches_the_host(Kind::Shallow).await;
}

#[tokio::test]
async fn writes_to_a_repository_with_submodules_stay_inside() {
    nothing_reaches_the_host(Kind::Submodules).await;
}

#[tokio::test]
async fn writes_to_a_sha256_repository_stay_inside() {
    nothing_reaches_the_host(Kind::Sha256).await;
}

#[tokio::test]
async fn honest_work_arrives_from_every_kind_of_repository() {
    for kind in [Kind::Normal, Kind::Bare, Kind::Shallow, Kind::Submodules, Kind::Sha256] {
        let lab = Lab::new(kind).await;
        let script = "echo work > work.txt && git add work.txt && git commit -qm work && \
                      echo more > more.txt && git stash -qu && git stash pop -q >/dev/null && git gc -q && \
                      git branch side && git tag v1 && git status --porcelain";
        let (said, collected) = lab.attack(script).await;
        let collected = collected.expect("collected").expect("there is work");
        // The commit, and the uncommitted file as a commit of its own.
        assert_eq!((said.as_str(), collected.commits), ("?? more.txt\n", 2), "{kind:?}");
        assert_eq!(
            (lab.on_branch("work.txt"), lab.on_branch("more.txt")),
            ("work".into(), "more".into())
        );
        lab.assert_untouched();
    }
}

#[tokio::test]
async fn pruning_from_inside_leaves_a_sibling_run_whole() {
    let lab = Lab::new(Kind::Normal).await;
    let sibling = super::lab::checkout(&lab.cell, &lab.repo, "run-sibling").await;
    lab.attack("git worktree prune --expire=now; G=$(git rev-parse --git-common-dir); rm -rf $G/worktrees/*; exit 0")
        .await
        .1
        .map(drop)
        .unwrap_or_default();
    let sibling = sibling.path.to_str().expect("text").to_owned();
    let list = crate::env::git(&lab.repo, &["worktree", "list", "--porcelain"]);
    assert!(list.contains(&sibling), "{list}");
    assert_eq!(crate::env::git(std::path::Path::new(&sibling), &["status", "--porcelain"]), "");
}

#[tokio::test]
async fn drivers_and_filters_of_the_branch_never_run_on_the_host() {
    let lab = Lab::new(Kind::Normal).await;
    let canary = lab.canary();
    let script = format!(
        r#"printf '* filter=evil diff=evil merge=evil\n*.bin filter=lfs diff=lfs merge=lfs -text\n' > .gitattributes
for k in filter.evil.clean filter.evil.smudge filter.evil.process diff.evil.command diff.evil.textconv merge.evil.driver filter.lfs.smudge filter.lfs.process; do git config --global $k 'touch {canary}'; done
printf 'version https://git-lfs.example.invalid\noid sha256:0\nsize 1\n' > a.bin
printf '[lfs]\n\turl = "file:///tmp"\n' > .lfsconfig
printf '[submodule "x"]\n\tpath = x\n\turl = -u./evil\n\tupdate = !touch {canary}\n' > .gitmodules
rm -f ~/.gitconfig; git add -A; git commit -qm drivers; git log --oneline | head -1"#
    );
    let (said, collected) = lab.attack(&script).await;
    // A submodule's address that is an option is refused by git's own check, or it is only data.
    if let Err(refusal) = &collected {
        assert!(refusal.contains("gitmodules"), "{refusal}: {said}");
    }
    lab.assert_untouched();
}

#[tokio::test]
async fn a_nested_repository_in_the_index_never_runs_on_the_host() {
    let lab = Lab::new(Kind::Normal).await;
    let canary = lab.canary();
    let script = format!(
        r#"git init -q nested; cd nested; git config user.name n; git config user.email n@example.invalid
git config core.fsmonitor 'touch {canary}'; echo x > f; git add f; git commit -qm nested
for h in post-checkout post-commit pre-commit; do printf '#!/bin/sh\ntouch {canary}\n' > .git/hooks/$h; chmod +x .git/hooks/$h; done
cd ..; git add nested; git commit -qm gitlink; echo y > nested/f; echo work > work.txt; git add work.txt; git commit -qm work; exit 0"#
    );
    let collected = lab.attack(&script).await.1.expect("collected").expect("there is work");
    assert!(collected.commits >= 2, "{collected:?}");
    assert_eq!(lab.on_branch("work.txt"), "work");
    lab.assert_untouched();
}
