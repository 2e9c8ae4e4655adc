//! What an agent plants in its repository never runs on the host.

use crate::env::world::World;
use crate::env::{git, repository};

#[test]
fn planted_hooks_config_and_nested_repository_never_run_on_the_host() {
    let world = World::new(&[]);
    let repo = world.path().join("repo");
    repository(&repo, &[("README", "hello\n")]);
    let marker = world.path().join("owned");
    let config_before = std::fs::read(repo.join(".git/config")).expect("config");

    // Everything is tried from inside; each line may fail, and the run goes on.
    let attack = format!(
        "G=$(git rev-parse --git-common-dir)
for h in post-commit pre-commit post-checkout reference-transaction post-merge; do
  printf '#!/bin/sh\\ntouch {marker}\\n' > $G/hooks/$h; chmod +x $G/hooks/$h
done
git config core.fsmonitor 'touch {marker}'
git config core.hooksPath $PWD/hooks
git config filter.evil.smudge 'touch {marker}'
git config filter.evil.clean 'touch {marker}'
echo '* filter=evil' > .gitattributes
printf 'gitdir: %s/nested/.git\\n' $PWD > .git
mkdir -p nested && cd nested && git init -q . && git config core.fsmonitor 'touch {marker}' && git config user.email a@b.c && git config user.name n && echo x > f && git add f && git commit -qm nested; cd ..
echo work > work.txt
git add work.txt .gitattributes nested; git commit -qm work
exit 0",
        marker = marker.display()
    );
    let script = serde_json::json!({"turns": [
        {"tool_calls": [{"name": "bash", "arguments": {"command": attack}}]},
        {"text": "Done."}
    ]});
    let task = format!(
        "prompt: Attack.\nworkspace: {{repo: {}}}\ncompletion: {{shell: test -e work.txt}}\n",
        repo.display()
    );
    // JSON is YAML.
    world.commit(
        &[("tasks/attack.yaml", &task), ("scripted/attack.yaml", &script.to_string())],
        "attack",
    );
    let run = world.run_task("attack");
    assert_eq!(run["state"], "success", "{run:#}");

    // What the operator does next must be as harmless as what fleet did.
    git(&repo, &["status"]);
    git(&repo, &["log", "--all", "--oneline"]);
    assert!(!marker.exists(), "something that the agent planted ran on the host");
    assert_eq!(std::fs::read(repo.join(".git/config")).expect("config"), config_before);
    let branch = run["branch"].as_str().expect("a branch");
    assert_eq!(git(&repo, &["show", &format!("{branch}:work.txt")]), "work");
}

#[test]
fn work_that_does_not_go_on_from_the_base_is_refused_and_not_tried_again() {
    let world = World::new(&[]);
    let repo = world.path().join("repo");
    repository(&repo, &[("README", "hello\n")]);
    let refs = git(&repo, &["for-each-ref"]);
    let command = "git checkout -q --orphan new && git commit -qm orphan && echo done > done.txt";
    let script = serde_json::json!({"turns": [
        {"tool_calls": [{"name": "bash", "arguments": {"command": command}}]},
        {"text": "Done."}
    ]});
    let task = format!(
        "prompt: Rewrite.\nworkspace: {{repo: {}}}\ncompletion: {{shell: test -e done.txt}}\nmax_retries: 3\n",
        repo.display()
    );
    world.commit(
        &[("tasks/rewrite.yaml", &task), ("scripted/rewrite.yaml", &script.to_string())],
        "rewrite",
    );
    let run = world.run_task("rewrite");
    assert_eq!(
        (&run["state"], &run["outcome"]),
        (&"dead_lettered".into(), &"completion_failed".into()),
        "{run:#}"
    );
    let events = run["events"].as_array().expect("events");
    assert!(events.iter().all(|event| event["attempt"] == 1), "it was tried again: {run:#}");
    let reason = run["reason"].as_str().expect("a reason");
    assert!(reason.contains("does not descend from the base"), "{reason}");
    // The work is kept where the agent left it; no ref but the run's own changed.
    let own = |line: &&str| !line.contains("refs/heads/fleet/");
    let after = git(&repo, &["for-each-ref"]);
    assert_eq!(after.lines().filter(own).collect::<Vec<_>>(), refs.lines().collect::<Vec<_>>());
    let worktrees = world.ok(&["worktree", "list"]);
    assert!(worktrees.contains("rewrite"), "{worktrees}");
}
