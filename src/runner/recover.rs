//! Resolves what a dead process left: its containers end, its work is salvaged, its runs become
//! interrupted attempts, and the retry policy decides what follows.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use tracing::{error, info, warn};

use super::collect::{Collector, Work};
use super::finish::{Ending, finish};
use super::session_log::SessionLog;
use super::{Context, cleanup, damage, holder, lease, sweep, workspace};
use crate::agent::EventSink;
use crate::bundle::Bundle;
use crate::fault;
use crate::run::{Cancel, Outcome, OutcomeClass, RunId, RunState, Trigger};
use crate::sandbox;
use crate::store::{ClaimedRun, OpenRun, StoreError};
use crate::worktree::Checkout;

/// Resolves every run whose holder is dead. Runs of living processes are left alone, and one run that
/// cannot be resolved holds up no other. Returns whether other processes have runs under way, which
/// may die without a word.
pub async fn recover(context: &Arc<Context>, bundle: &Arc<Bundle>) -> Result<bool, StoreError> {
    let open = context.store.open_runs().await?;
    let own = &context.holder.holder().instance;
    let others = open.iter().any(|open| open.holder.instance != *own);
    let dead: Vec<OpenRun> = open.into_iter().filter(|open| !is_alive(context, open)).collect();
    if dead.is_empty() {
        return Ok(others);
    }
    sweep_containers(context).await;
    for open in dead {
        let run = open.run_id.clone();
        match resolve(context, bundle, open).await {
            Ok(()) => {}
            // Another process resolved it first.
            Err(StoreError::LeaseLost(_)) => {
                info!(run.id = %run, "the orphan was resolved by another process");
            }
            Err(failure) => {
                damage::note(context, &failure);
                error!(run.id = %run, error = %failure, "cannot resolve the run of a dead process: tried again");
            }
        }
    }
    Ok(others)
}

/// Resolves the runs that this process holds and does not carry out any more: their terminal
/// transaction failed.
pub async fn recover_own(
    context: &Arc<Context>,
    bundle: &Arc<Bundle>,
    active: &HashSet<RunId>,
) -> Result<(), StoreError> {
    for open in context.store.open_runs().await? {
        let own = open.holder.instance == context.holder.holder().instance;
        if own && !active.contains(&open.run_id) {
            resolve(context, bundle, open).await?;
        }
    }
    Ok(())
}

/// Ends the containers of dead processes.
pub async fn sweep_containers(context: &Context) {
    let alive = |instance: &str| holder::is_alive(&context.config.state, instance);
    match sandbox::sweep(&context.podman, &alive).await {
        Ok(0) => {}
        Ok(removed) => info!(removed, "removed containers of dead processes"),
        Err(error) => warn!(error = %error, "cannot sweep containers: tried again in an hour"),
    }
}

fn is_alive(context: &Context, open: &OpenRun) -> bool {
    let own = context.holder.holder();
    // Its own lock need not be tried.
    let is_own = open.holder.instance == own.instance;
    is_own
        || open.holder.boot == own.boot
            && holder::is_alive(&context.config.state, &open.holder.instance)
}

async fn resolve(
    context: &Arc<Context>,
    bundle: &Arc<Bundle>,
    open: OpenRun,
) -> Result<(), StoreError> {
    let until = context.clock.now() + lease::LEASE;
    let holder = context.holder.holder().clone();
    let token = context.store.take_over(open.run_id.clone(), open.token, holder, until).await?;
    fault::point("after_take_over");
    let spent = context.store.spent(open.run_id.clone(), open.attempt).await?;
    let claimed = ClaimedRun {
        run_id: open.run_id.clone(),
        task: open.task.clone(),
        // Not read by what follows.
        due: context.clock.now(),
        trigger: Trigger::Schedule,
        token,
        attempt: open.attempt,
        counters: open.counters,
        spent,
        bundle_commit: open.bundle_commit.clone(),
        effects: Vec::new(),
        previous_answer: None,
        previous_outcome: None,
        previous_branch: None,
        previous_commit: None,
    };
    let (checkout, work) = match open.worktree.as_deref() {
        Some(path) => salvage(context, bundle, &claimed, path).await,
        None => (unrecorded_workspace(context, bundle, &open.run_id).await, Work::default()),
    };
    let reason = format!("the process that carried it out ended (pid {})", open.holder.pid);
    let outcome = match open.cancel_requested {
        Some(wish) => Outcome::failed(OutcomeClass::Cancelled, wish),
        None => Outcome::failed(OutcomeClass::Interrupted, reason),
    };
    let ending = Ending { outcome, usage: spent, answer: None, output: None, work, skipped: None };
    let task = bundle.tasks.get(&open.task).map(AsRef::as_ref);
    let state = finish(context, task, &claimed, checkout.as_ref(), ending).await?;
    if state == RunState::Scheduled {
        cleanup::of_run(context, &open.run_id).await?;
    }
    Ok(())
}

/// A workspace in which nothing ran yet: its process died before it had recorded it. It is only
/// removed.
async fn unrecorded_workspace(
    context: &Arc<Context>,
    bundle: &Arc<Bundle>,
    run: &RunId,
) -> Option<Checkout> {
    let path = sweep::workspace_of(context, bundle, run).await?;
    let reopened = Checkout::reopen(path).await;
    reopened
        .inspect_err(|error| warn!(run.id = %run, error = %error, "cannot reopen the worktree of a dead attempt"))
        .ok()
}

/// Commits what the dead attempt left in its overlay.
async fn salvage(
    context: &Arc<Context>,
    bundle: &Arc<Bundle>,
    claimed: &ClaimedRun,
    path: &str,
) -> (Option<Checkout>, Work) {
    let checkout = match Checkout::reopen(PathBuf::from(path)).await {
        Ok(checkout) => checkout,
        Err(error) => {
            warn!(run.id = %claimed.run_id, error = %error, "the worktree of the dead attempt is gone");
            return (None, Work::default());
        }
    };
    let (events, requests) = EventSink::channel(16);
    let log = SessionLog {
        store: context.store.clone(),
        clock: context.clock.clone(),
        run: claimed.run_id.clone(),
        token: claimed.token,
        attempt: claimed.attempt,
        cancel: Cancel::default(),
    };
    let log = tokio::spawn(log.persist(requests));
    let task = bundle.tasks.get(&claimed.task).map(AsRef::as_ref);
    let collector = Collector {
        context,
        checkout: &checkout,
        spec: workspace::spec(context, bundle, task, claimed, &checkout),
        run: claimed.run_id.as_str(),
        attempt: claimed.attempt,
        events,
    };
    let work = collector.salvage().await;
    drop(collector);
    if log.await.is_err() {
        warn!(run.id = %claimed.run_id, "the log of the salvage was interrupted");
    }
    (Some(checkout), work)
}
