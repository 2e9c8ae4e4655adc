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
