//! A base branch that moves while an occurrence waits for its claim.

use super::crash::trigger;
use crate::env::world::{World, eventually};
use crate::env::{commit_files, git, repository};

#[test]
fn base_that_moves_between_the_due_instant_and_the_claim_is_the_run_s_base() {
    let scratch = tempfile::tempdir().expect("scratch directory");
    let repo = scratch.path().join("repo");
    repository(&repo, &[("a.txt", "old\n")]);
    git(&repo, &["checkout", "--quiet", "-b", "release"]);
    let task = format!(
        "prompt: Look.\nworkspace: {{repo: {}}}\nworktree_config: {{base_branch: release}}\n\
         completion: {{shell: grep -q new a.txt}}\n",
        repo.display()
    );
    let script = "turns:\n  - text: Done.\n";
    let world = World::new(&[("tasks/look.yaml", &task), ("scripted/look.yaml", script)]);
    trigger(&world, "look");
    commit_files(&repo, &[("a.txt", "new\n")], "Move");
    let moved = git(&repo, &["rev-parse", "release"]);
    let daemon = world.serve();
    let run = eventually("the run has ended", || {
        world.runs().into_iter().find(|run| run["state"] == "success")
    });
    let whole = world.run(&run["run_id"]);
    assert_eq!(whole["attempt_list"][0]["base_commit"], moved.trim());
    assert_eq!(daemon.stop(), Some(0));
}
