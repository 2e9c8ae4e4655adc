//! Keeps a claim alive while its run goes on.

use std::time::Duration;

use tracing::warn;

use crate::clock::Clock;
use crate::run::{Cancel, CancelReason, FencingToken, RunId};
use crate::store::{Store, StoreError};

/// How long a claim holds without renewal.
pub const LEASE: Duration = Duration::from_secs(60);
/// How often it is renewed.
const RENEWAL: Duration = Duration::from_secs(20);

/// Renews until dropped; cancels the run when the claim is gone or cannot be renewed in time.
pub async fn keep(store: Store, clock: Clock, run: RunId, token: FencingToken, cancel: Cancel) {
    let mut held_until = clock.now() + LEASE;
    loop {
        clock.sleep(RENEWAL).await;
        let until = clock.now() + LEASE;
        match store.renew_lease(run.clone(), token, until).await {
            Ok(()) => held_until = until,
            Err(StoreError::LeaseLost(_)) => {
                warn!(run.id = %run, "lost the lease: the run ends here");
                return cancel.cancel(CancelReason::LeaseLost);
            }
            Err(failure) if clock.now() >= held_until => {
                warn!(run.id = %run, error = %failure, "cannot renew the lease: the run ends here");
                return cancel.cancel(CancelReason::LeaseLost);
            }
            Err(failure) => warn!(run.id = %run, error = %failure, "cannot renew the lease yet"),
        }
    }
}
