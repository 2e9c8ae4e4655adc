//! A second daemon that waits for its turn: until the first one ends, dies, or hangs.
//!
//! The lock file says whether the first one lives; a process that is stopped or stuck still holds it,
//! so its lease is watched too. It counts as ended when it has not been renewed for its whole length
//! by this process's own, monotonic measure: neither a suspended machine nor a changed clock ends it.

use std::time::{Duration, Instant};

use tracing::{info, warn};

use super::holder;
use super::serve_lock::{DaemonInfo, ServeLock, ServeLockError};
use super::tenure::{lease, lease_of};
use crate::clock::Clock;
use crate::config::StateDir;
use crate::secrets::Redactor;
use crate::store::{DaemonLease, Store, StoreError, TakeLease};

/// How often the lock is tried.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// How the place became free.
#[derive(Debug)]
pub enum Seat {
    /// The daemon before has ended.
    Left(ServeLock),
    /// It hangs: it still has its sockets, and everything that it writes is refused.
    TakenOver(ServeLock),
}

/// Why there is nothing to wait for.
#[derive(Debug, thiserror::Error)]
pub enum StandbyError {
    #[error(transparent)]
    Lock(#[from] ServeLockError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Waits until `daemon` may be the one daemon of that state directory.
pub async fn wait(
    state: &StateDir,
    daemon: &DaemonInfo,
    clock: &Clock,
) -> Result<Seat, StandbyError> {
    let mut watch = LeaseWatch::default();
    let mut told = None;
    loop {
        match ServeLock::acquire(state, daemon) {
            Ok(lock) => {
                info!("no other daemon is left: this one begins");
                return Ok(Seat::Left(lock));
            }
            Err(ServeLockError::Held { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        let holder = ServeLock::holder(state);
        if holder != told
            && let Some(holder) = &holder
        {
            info!(holder = %holder, "standing by until that daemon ends");
        }
        if let Some(hung) = watch.hangs(state, holder.as_ref())?
            && let Some(lock) = take_over(state, daemon, clock, hung).await?
        {
            return Ok(Seat::TakenOver(lock));
        }
        told = holder;
        clock.sleep(LOOK_EVERY).await;
    }
}

/// Takes the place of a daemon that hangs, unless somebody was faster. Its runs lose their holder, so
/// that they are resolved like those of a dead process.
async fn take_over(
    state: &StateDir,
    daemon: &DaemonInfo,
    clock: &Clock,
    hung: DaemonLease,
) -> Result<Option<ServeLock>, StandbyError> {
    let store = Store::open(&state.database(), Redactor::default())?;
    let own = lease_of(daemon, String::new(), clock);
    match store.take_daemon_lease(TakeLease::From(hung.clone()), own).await {
        Ok(()) => {}
        Err(StoreError::DaemonReplaced(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    warn!(
        holder.pid = hung.pid,
        holder.host = hung.host,
        "that daemon has not renewed its lease for {} s: it hangs, and this one takes over",
        lease().as_secs()
    );
    holder::declare_dead(state, &hung.instance);
    Ok(Some(ServeLock::replace(state, daemon)?))
}

/// When the lease was last seen to change.
#[derive(Default)]
struct LeaseWatch {
    seen: Option<(DaemonLease, Instant)>,
    looked: Option<Instant>,
}

impl LeaseWatch {
    /// The lease of a daemon that has not renewed it for too long.
    fn hangs(
        &mut self,
        state: &StateDir,
        holder: Option<&DaemonInfo>,
    ) -> Result<Option<DaemonLease>, StoreError> {
        let now = Instant::now();
        if self.looked.is_some_and(|looked| now.duration_since(looked) < lease() / 6) {
            return Ok(None);
        }
        self.looked = Some(now);
        // A daemon that has the lock and not yet the lease is just starting.
        let lease_now = Store::daemon_at(&state.database())?
            .filter(|lease| holder.is_some_and(|holder| holder.pid == lease.pid));
        let Some(lease_now) = lease_now else {
            self.seen = None;
            return Ok(None);
        };
        match &self.seen {
            Some((seen, since)) if *seen == lease_now => {
                Ok((now.duration_since(*since) >= lease()).then_some(lease_now))
            }
            _ => {
                self.seen = Some((lease_now, now));
                Ok(None)
            }
        }
    }
}
