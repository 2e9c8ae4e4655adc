//! What an agent does to the history that leaves the sandbox: it reaches the branch, or is refused, and
//! no other ref ever changes.

use fleet::sandbox::Sandbox;

use crate::env::git;

use super::lab::{Kind, Lab, shell};

/// All refs but fleet's own and the run's branch.
fn other_refs(lab: &Lab) -> String {
    let all = git(&lab.repo, &["for-each-ref", "--format=%(refname) %(objectname)"]);
    let own = |line: &&str| line.contains("refs/fleet/") || line.contains("refs/heads/fleet/");
    all.lines().filter(|line| !own(line)).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn refs_tags_notes_and_replacements_of_the_agent_stay_inside() {
    let lab = Lab::new(Kind::Normal).await;
    let before = other_refs(&lab);
    let script = "echo work > work.txt; git add work.txt; git commit -qm work
git tag evil; git tag -a -m x annotated; git notes add -m note; git branch evil
git update-ref refs/remotes/origin/main HEAD; git update-ref refs/replace/$(git rev-parse HEAD~0:README.md) $(git rev-parse HEAD:work.txt)
git replace $(git rev-parse HEAD~1) HEAD; mkdir -p $(git rev-parse --git-common-dir)/info
git rev-parse HEAD > $(git rev-parse --git-common-dir)/info/grafts; git symbolic-ref refs/heads/x refs/heads/main
exit 0";
    let collected = lab.attack(script).await.1;
    if let Ok(Some(collected)) = &collected {
        assert_eq!(git(&lab.repo, &["rev-parse", lab.branch()]), collected.commit);
    }
    assert_eq!(other_refs(&lab), before, "{collected:?}");
    lab.assert_untouched();
}

#[tokio::test]
async fn work_is_found_wherever_the_agent_left_head() {
    let work = "echo work > work.txt; git add work.txt; git commit -qm work";
    for how in [
        // Amended and rebased above the base.
        "{work}; git commit -q --amend -m amended; GIT_SEQUENCE_EDITOR=true git rebase -q -i HEAD~1",
        // Detached, the branch deleted.
        "git checkout -q --detach; git branch -D fleet/task-some-task-run-attack; {work}",
        // On another branch.
        "git checkout -q -b elsewhere; {work}",
        // In the middle of a rebase that stopped.
        "{work}; echo a > c; git add c; git commit -qm a; git checkout -q -b o HEAD~1; echo b > c; git add c; git commit -qm b; git rebase fleet/task-some-task-run-attack",
        // A lock that nobody holds.
        "{work}; touch $(git rev-parse --git-dir)/index.lock; echo more > more.txt",
        // Files that git is told to overlook, and a sparse checkout.
        "git update-index --assume-unchanged README.md; git update-index --skip-worktree src/main.txt; git sparse-checkout set src; {work}",
        // Staged, changed, untracked, ignored, all at once.
        "echo ignored.txt > .gitignore; echo x > ignored.txt; echo y > README.md; git add README.md; echo z > README.md; {work}; echo u > untracked.txt",
    ] {
        let lab = Lab::new(Kind::Normal).await;
        let (said, collected) =
            lab.attack(&format!("{}\nexit 0", how.replace("{work}", work))).await;
        let collected = collected.unwrap_or_else(|error| panic!("{how}: {error}: {said}"));
        assert!(collected.is_some(), "{how}: nothing was collected: {said}");
        assert_eq!(lab.on_branch("work.txt"), "work", "{how}");
        lab.assert_untouched();
    }
}

#[tokio::test]
async fn history_that_does_not_go_on_from_the_base_is_refused() {
    for how in [
        "git checkout -q --orphan new; git commit -qm orphan",
        "git commit -q --amend -m rewritten; echo w > w.txt; git add w.txt; git commit -qm work",
        // HEAD on no branch at all: what is in the tree has no history then.
        "git symbolic-ref HEAD refs/heads/unborn; rm -f README.md",
    ] {
        let lab = Lab::new(Kind::Normal).await;
        let before = other_refs(&lab);
        let (said, collected) = lab.attack(&format!("{how}\nexit 0")).await;
        let refusal = collected.expect_err(&said);
        let wanted = format!("does not descend from the base {}", lab.checkout.base_commit);
        assert!(refusal.ends_with(&wanted), "{how}: {refusal}: {said}");
        assert_eq!(other_refs(&lab), before, "{how}: {said}");
        lab.assert_untouched();
    }
}

#[tokio::test]
async fn a_shallow_boundary_of_the_agent_does_not_cut_the_history_that_arrives() {
    let lab = Lab::new(Kind::Normal).await;
    let script = "echo w > w.txt; git add w.txt; git commit -qm work
git rev-parse HEAD > $(git rev-parse --git-common-dir)/shallow; git rev-list --count HEAD; exit 0";
    let (said, collected) = lab.attack(script).await;
    assert_eq!(said.trim(), "1", "inside, the history is cut");
    let collected = collected.expect("collected").expect("there is work");
    let base = &lab.checkout.base_commit;
    git(&lab.repo, &["merge-base", "--is-ancestor", base, &collected.commit]);
    assert_eq!(collected.commits, 1);
    lab.assert_untouched();
}

#[tokio::test]
async fn trees_with_paths_that_leave_the_checkout_are_refused() {
    const DOTGIT: &str = "hasDotgit";
    const FULL: &str = "fullPathname";
    for (name, reason) in [
        (".git", DOTGIT),
        (".GIT", DOTGIT),
        // What other file systems read as `.git`.
        (".git\u{200c}", DOTGIT),
        (".git ", DOTGIT),
        ("git~1", DOTGIT),
        ("GIT~1", DOTGIT),
        ("..", "hasDotdot"),
        (".", "hasDot"),
        ("a/b", FULL),
        ("/etc/passwd", FULL),
        ("", "empty filename in tree entry"),
    ] {
        let lab = Lab::new(Kind::Normal).await;
        let script = format!(
            r#"B=$(echo evil | git hash-object -w --stdin)
T=$(printf '100644 {name}\0%b' "$(echo $B | sed 's/../\\x&/g')" | git hash-object -w -t tree --literally --stdin)
C=$(git commit-tree -p HEAD -m evil $T); git update-ref HEAD $C; git cat-file -t HEAD; exit 0"#
        );
        let before = other_refs(&lab);
        let (said, collected) = lab.attack(&script).await;
        assert_eq!(said.trim(), "commit", "{name}: it is made inside");
        let refusal = collected.expect_err(name);
        assert!(refusal.contains(reason), "{name}: {refusal}");
        assert_eq!(other_refs(&lab), before, "{name}");
        lab.assert_untouched();
    }
}

#[tokio::test]
async fn a_commit_that_unpacks_to_far_more_than_it_weighs_costs_the_host_what_it_weighs() {
    let lab = Lab::new(Kind::Normal).await;
    // 400 MB of nothing weigh 400 kB; they are never a file inside, where the disk has a limit.
    let script = "B=$(head -c 400000000 /dev/zero | git hash-object -w --stdin)
T=$(printf '100644 blob %s\tbig\n' $B | git mktree); C=$(git commit-tree -p HEAD -m big $T)
git update-ref HEAD $C; git cat-file -s HEAD:big; exit 0";
    let (said, collected) = lab.attack(script).await;
    assert_eq!(said.trim(), "400000000");
    // The tree lacks what HEAD has: that is kept as a commit of its own.
    let collected = collected.expect("collected").expect("there is work");
    assert_eq!(
        git(&lab.repo, &["cat-file", "-s", &format!("{}~1:big", collected.commit)]),
        "400000000"
    );
    let kib: u64 = git(&lab.repo, &["count-objects", "-v"])
        .lines()
        .filter_map(|line| line.strip_prefix("size-pack: ").or(line.strip_prefix("size: ")))
        .map(|size| size.parse::<u64>().expect("a number"))
        .sum();
    assert!(kib < 4096, "{kib} KiB");
    lab.assert_untouched();
}

#[tokio::test]
async fn names_with_control_characters_and_odd_bytes_are_data() {
    let lab = Lab::new(Kind::Normal).await;
    let script = r#"printf x > $'line\nbreak'; printf x > $'esc\e[31m'; printf x > $'bad\xff'; printf x > ' lead'; printf x > 'a:b,c'
mkdir -p 'deep/-rf'; printf x > 'deep/-rf/--help'; ln -s /etc/passwd link; ln -s ../../../.. up
git add -A; git commit -qm names; exit 0"#;
    let collected = lab.attack(script).await.1.expect("collected").expect("there is work");
    assert_eq!(collected.commits, 1);
    assert!(!collected.diff_stat.contains('\u{1b}'), "{collected:?}");
    lab.assert_untouched();
}

#[tokio::test]
async fn more_than_the_cap_is_refused_and_told() {
    let lab = Lab::new(Kind::Normal).await;
    let script =
        "head -c 12000000 /dev/urandom > big.bin; git add big.bin; git commit -qm big; exit 0";
    let (said, collected) = lab.attack(script).await;
    let refusal = collected.expect_err(&said);
    assert!(refusal.contains("8388608") || refusal.contains("8 MiB"), "{refusal}");
    lab.assert_untouched();
}

#[tokio::test]
async fn a_bundle_that_the_agent_plants_is_not_the_bundle_that_leaves() {
    let lab = Lab::new(Kind::Normal).await;
    let sandbox = lab.sandbox().await;
    // A git of the agent's own, first on every path that it can write to.
    let script = "mkdir -p bin; printf '#!/bin/sh\necho forged\nexit 0\n' > bin/git; chmod +x bin/git; cp bin/git ./git; export PATH=$PWD/bin:$PATH
echo work > work.txt; /usr/bin/git add work.txt; /usr/bin/git commit -qm work; exit 0";
    shell(&sandbox, script).await;
    let collected = lab.collect(&sandbox).await.expect("collected").expect("there is work");
    sandbox.close().await;
    assert!(collected.commits >= 1, "{collected:?}");
    assert_eq!(lab.on_branch("work.txt"), "work");
    lab.assert_untouched();
}
