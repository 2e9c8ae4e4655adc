//! A run's worktree and container: asked for before the first model request, ready when the first
//! tool needs them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use futures_util::FutureExt;

use super::Context;
use crate::agent::EventSink;
use crate::bundle::{Bundle, Task};
use crate::fault;
use crate::run::{EventKind, Outcome, OutcomeClass};
use crate::sandbox::{
    ContainerLimits, GitMounts, PendingSandbox, Sandbox, SandboxSpec, StartError,
};
use crate::store::ClaimedRun;
use crate::worktree::{
    self, Checkout, CheckoutMode, CreateRequest, GitView, RepoSource, WorktreeError,
};

/// Where a task's files come from.
pub fn source(context: &Context, task: &Task) -> RepoSource {
    match &task.repo {
        Some(path) => RepoSource::Path(path.clone()),
        None => RepoSource::Private {
            task: task.name.as_str().to_owned(),
            dir: context.config.state.repositories(),
        },
    }
}

/// The attempt's directory on the host: overlay, masks.
pub fn attempt_dir(context: &Context, claimed: &ClaimedRun) -> PathBuf {
    context.config.state.runs().join(claimed.run_id.as_str()).join(claimed.attempt.to_string())
}

/// Makes the attempt's worktree.
pub async fn create(
    context: &Context,
    task: &Task,
    claimed: &ClaimedRun,
) -> Result<Checkout, Outcome> {
    let request = CreateRequest {
        source: source(context, task),
        task: task.name.as_str().to_owned(),
        run_id: claimed.run_id.as_str().to_owned(),
        attempt: claimed.attempt,
        branch_prefix: task.worktree.branch_prefix.clone(),
        base: None,
        mode: if task.worktree.enabled { CheckoutMode::Branch } else { CheckoutMode::Plain },
        run_dir: attempt_dir(context, claimed),
        now: context.clock.now(),
    };
    for base in bases(task, claimed) {
        let request = CreateRequest { base: Some(base), ..request.clone() };
        match worktree::create(request).await {
            // Its branch was deleted, after a merge perhaps: the commit is kept, or else HEAD serves.
            Err(WorktreeError::NoSuchBase { .. }) if task.worktree.base_branch.is_none() => {}
            done => return done.map_err(|error| outcome_of(&error)),
        }
    }
    worktree::create(request).await.map_err(|error| outcome_of(&error))
}

/// Where the run may start from, the best first; HEAD where none exists. A private repository goes on
/// from where the task's last successful run left it.
fn bases(task: &Task, claimed: &ClaimedRun) -> Vec<String> {
    match (&task.worktree.base_branch, &task.repo) {
        (Some(branch), _) => vec![branch.clone()],
        (None, Some(_)) => Vec::new(),
        (None, None) => {
            let left = [claimed.previous_branch.clone(), claimed.previous_commit.clone()];
            left.into_iter().flatten().collect()
        }
    }
}

/// A missing or unusable repository needs a person; a full disk or a failed write may pass.
fn outcome_of(error: &WorktreeError) -> Outcome {
    let class =
        if error.is_configuration() { OutcomeClass::Config } else { OutcomeClass::Transient };
    Outcome::failed(class, format!("no worktree: {}", crate::runner::with_causes(error)))
}

/// What the run's container is made of.
/// A task that the bundle no longer has gets the default limits: its work is only collected.
pub fn spec(
    context: &Context,
    bundle: &Bundle,
    task: Option<&Task>,
    claimed: &ClaimedRun,
    checkout: &Checkout,
) -> SandboxSpec {
    let limits = task.map(|task| task.limits.sandbox).unwrap_or_default();
    SandboxSpec {
        run_id: claimed.run_id.as_str().to_owned(),
        task: claimed.task.as_str().to_owned(),
        instance: context.holder.holder().instance.clone(),
        boot: context.holder.holder().boot.as_str().to_owned(),
        image: bundle.sandbox.image.clone().unwrap_or_else(|| context.seal.image_id.clone()),
        runtime: bundle.sandbox.runtime.clone().or_else(|| Some(context.seal.runtime.clone())),
        workspace: checkout.path.clone(),
        git: checkout.git.as_ref().map(git_mounts),
        limits: ContainerLimits {
            memory_mb: limits.memory_mb,
            cpus: limits.cpus,
            pids: limits.pids,
            disk_mb: limits.disk_mb,
            nofile: limits.nofile,
        },
        egress: None,
    }
}

fn git_mounts(view: &GitView) -> GitMounts {
    GitMounts {
        git_dir: view.git_dir.clone(),
        upper: view.upper.clone(),
        work: view.work.clone(),
        masks: view.masks.clone(),
    }
}

/// Starts the container at once, in a task of its own, and hands out the wait for it.
pub fn start(context: &Arc<Context>, spec: SandboxSpec, events: EventSink) -> PendingSandbox {
    let context = context.clone();
    let begun = tokio::spawn(async move {
        let began = Instant::now();
        let seal = context.seal_to_start(spec.runtime.as_deref()).await?;
        let sandbox = context.sandboxes.start(&seal, spec).await?;
        fault::point("after_container_start");
        let ready = EventKind::SandboxReady {
            container: sandbox.container().to_owned(),
            image_id: seal.image_id,
            runtime: seal.runtime,
            limits: seal.limits,
            duration_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        };
        // A closed log ends the run by itself.
        let _ = events.record(ready).await;
        Ok(sandbox as Arc<dyn Sandbox>)
    });
    async move {
        begun.await.unwrap_or_else(|_| {
            Err(StartError { message: "the start was interrupted".to_owned(), transient: true })
        })
    }
    .boxed()
    .shared()
}
