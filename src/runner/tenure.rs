//! A daemon's time in office: it holds the lock and the lease of its state directory, renews the
//! lease, and learns when another daemon has taken its place.

use std::time::Duration;

use jiff::Timestamp;
use tracing::{error, warn};

use super::Context;
use super::serve_lock::{DaemonInfo, ServeLock};
use crate::clock::Clock;
use crate::fault;
use crate::store::{DaemonLease, Store, StoreError, TakeLease};

/// How long a daemon may be silent before a standby takes over.
pub(super) fn lease() -> Duration {
    fault::shortened("FLEET_DAEMON_LEASE", Duration::from_secs(60))
}

/// The office of the one daemon.
pub struct Tenure {
    store: Store,
    clock: Clock,
    _lock: ServeLock,
}

impl Tenure {
    /// Takes the lease. Whoever has the lock file knows that no daemon before it is left, or that it
    /// is fenced.
    pub async fn begin(
        context: &Context,
        lock: ServeLock,
        daemon: &DaemonInfo,
    ) -> Result<Self, StoreError> {
        let (store, clock) = (context.store.clone(), context.clock.clone());
        let instance = context.holder.holder().instance.clone();
        store.take_daemon_lease(TakeLease::AtOnce, lease_of(daemon, instance, &clock)).await?;
        Ok(Tenure { store, clock, _lock: lock })
    }

    /// Renews the lease; returns once another daemon has it.
    pub async fn lost(&self) -> StoreError {
        loop {
            self.clock.sleep(lease() / 3).await;
            match self.store.renew_daemon_lease(until(&self.clock)).await {
                Ok(()) => {}
                Err(replaced @ StoreError::DaemonReplaced(_)) => {
                    error!(error = %replaced, "lost the state directory: this daemon ends and writes nothing more");
                    return replaced;
                }
                Err(failure) => warn!(error = %failure, "cannot renew the daemon's lease yet"),
            }
        }
    }

    /// Lets the next daemon in at once.
    pub async fn end(self) {
        if let Err(failure) = self.store.resign_daemon_lease().await {
            warn!(error = %failure, "cannot give up the daemon's lease: it ends by itself");
        }
    }
}

fn until(clock: &Clock) -> Timestamp {
    clock.now().saturating_add(lease()).unwrap_or(Timestamp::MAX)
}

/// The lease that this daemon asks for.
pub(super) fn lease_of(daemon: &DaemonInfo, instance: String, clock: &Clock) -> DaemonLease {
    let (pid, host) = (daemon.pid, daemon.host.clone());
    // The store gives the token.
    DaemonLease { token: 0, instance, pid, host, until: until(clock) }
}
