//! What dead processes left: containers, doors, worktrees, overlays. Whatever a run still needs stays,
//! and strangers' things are never looked at.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::check::{Check, Repair};
use crate::cli::{Failure, Global};
use crate::runner::{is_alive, remove_workspace, with_causes};
use crate::sandbox::{self, Podman};
use crate::worktree::{self, WorktreeState};

/// What nobody needs any more.
#[derive(Debug, Default)]
struct Stale {
    containers: usize,
    doors: usize,
    worktrees: Vec<PathBuf>,
    overlays: Vec<PathBuf>,
    /// Runs of dead processes, which the next `fleet serve` resolves.
    waiting: usize,
}

impl Stale {
    fn told(&self) -> Option<String> {
        let counted = [
            (self.containers, "container"),
            (self.doors, "door"),
            (self.worktrees.len(), "worktree"),
            (self.overlays.len(), "overlay"),
        ];
        let parts: Vec<String> = counted
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}{}", if count == 1 { "" } else { "s" }))
            .collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

/// Whether anything is left.
pub(super) async fn check(global: &Global) -> Check {
    let name = "stale state";
    let stale = match look(global).await {
        Ok(stale) => stale,
        Err(message) => return Check::wrong(name, message),
    };
    match stale.told() {
        Some(told) => {
            let message = format!("{told} of dead processes: `fleet doctor --fix` removes them");
            Check::wrong(name, message).repaired_by(Repair::ClearStale)
        }
        None if stale.waiting > 0 => {
            let count = stale.waiting;
            Check::ok(name, format!("none; runs of dead processes wait for `fleet serve`: {count}"))
        }
        None => Check::ok(name, "none"),
    }
}

/// Removes it. Says what could not go.
pub(super) async fn clear(global: &Global) -> Result<String, String> {
    let podman = Podman::connect(&global.config).map_err(|error| with_causes(&error))?;
    let stale = look(global).await?;
    let state = &global.config.state;
    let alive = |instance: &str| is_alive(state, instance);
    sandbox::sweep(&podman, &alive).await.map_err(|error| with_causes(&error))?;
    for path in &stale.worktrees {
        remove_workspace(&podman, path).await.map_err(|error| with_causes(&error))?;
    }
    for path in &stale.overlays {
        podman.remove_tree(path).await.map_err(|error| with_causes(&error))?;
    }
    Ok(stale.told().map_or("nothing was left".to_owned(), |told| format!("removed {told}")))
}

async fn look(global: &Global) -> Result<Stale, String> {
    let state = &global.config.state;
    let mut stale = Stale::default();
    if let Ok(podman) = Podman::connect(&global.config) {
        let alive = |instance: &str| is_alive(state, instance);
        let orphans = sandbox::orphans(&podman, &alive).await;
        let orphans = orphans.map_err(|error| with_causes(&error))?;
        (stale.containers, stale.doors) = (orphans.containers.len(), orphans.doors.len());
    }
    let told = |failure: Failure| failure.message;
    let (found, lives) = crate::cli::worktree::survey(global).await.map_err(told)?;
    // Their work is salvaged first, by whoever resolves them.
    let open = open_runs(global).await?;
    stale.waiting = open.iter().filter(|(_, alive)| !alive).count();
    let open: BTreeSet<String> = open.into_iter().map(|(run, _)| run).collect();
    let entries = worktree::list(found, jiff::Timestamp::now(), &|run| lives.of(run));
    let used: BTreeSet<String> = entries.iter().map(|entry| entry.run_id.clone()).collect();
    let orphaned = entries.into_iter().filter(|entry| entry.state == WorktreeState::Orphan);
    let orphaned = orphaned.filter(|entry| !open.contains(&entry.run_id));
    stale.worktrees = orphaned.map(|entry| entry.path).collect();
    for entry in std::fs::read_dir(state.runs()).into_iter().flatten().flatten() {
        let run = entry.file_name().to_string_lossy().into_owned();
        if !used.contains(&run) && !open.contains(&run) && !known(global, &run).await? {
            stale.overlays.push(entry.path());
        }
    }
    Ok(stale)
}

/// Whether the store has the run: its clean-up is promised then.
async fn known(global: &Global, run: &str) -> Result<bool, String> {
    let told = |failure: Failure| failure.message;
    let Some(store) = global.existing_store().map_err(told)? else { return Ok(false) };
    Ok(store.run(crate::run::RunId::new(run)).await.is_ok())
}

/// Runs that somebody holds, and whether that process lives.
async fn open_runs(global: &Global) -> Result<Vec<(String, bool)>, String> {
    let told = |failure: Failure| failure.message;
    let Some(store) = global.existing_store().map_err(told)? else { return Ok(Vec::new()) };
    let open = store.open_runs().await.map_err(|error| with_causes(&error))?;
    let alive = |instance: &str| is_alive(&global.config.state, instance);
    Ok(open.iter().map(|run| (run.run_id.to_string(), alive(&run.holder.instance))).collect())
}
