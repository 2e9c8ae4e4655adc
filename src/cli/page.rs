//! Gives the status page what it shows: the store, and a view of the bundle that follows the keeper.

use std::sync::Arc;

use tokio::sync::watch;

use crate::clock::{Clock, Heartbeat};
use crate::runner::{BundleState, Context};
use crate::status::{BundleView, Instance, StatusContext};

/// The page's context. A task of its own turns each new bundle into a view until the keeper is gone.
pub(super) fn context(
    context: &Context,
    mut bundles: watch::Receiver<BundleState>,
    heartbeat: Heartbeat,
) -> StatusContext {
    let clock = context.clock.clone();
    let view = watch::Sender::new(Arc::new(view(&bundles.borrow_and_update(), &clock)));
    let shown = view.subscribe();
    tokio::spawn(async move {
        while bundles.changed().await.is_ok() {
            let next = self::view(&bundles.borrow_and_update(), &clock);
            view.send_replace(Arc::new(next));
        }
    });
    StatusContext {
        store: context.store.clone(),
        bundle: shown,
        clock: context.clock.clone(),
        instance: Instance::new(
            context.clock.now(),
            context.seal.limits.clone(),
            serde_json::to_value(&context.seal).ok(),
        ),
        heartbeat,
        alarms: context.alarms.clone(),
        artifacts: context.config.state.artifacts(),
    }
}

fn view(state: &BundleState, clock: &Clock) -> BundleView {
    let view = BundleView::of(&state.bundle, state.problems.clone(), clock.now());
    if state.problems_commit == state.bundle.commit {
        view
    } else {
        view.refused(state.problems_commit.clone(), state.problems.clone())
    }
}
