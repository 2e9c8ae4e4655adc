//! Live pages: a stream that says when something changed. The page then asks for itself again, so
//! the stream carries no content.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::{BundleView, Served};
use crate::clock::Clock;
use crate::store::Store;

/// Pages that may be live at once; more are told to come back.
pub(crate) const MOST_STREAMS: usize = 32;
/// How often the store is asked whether it changed, while a page is open.
const EVERY: Duration = Duration::from_secs(1);

/// What one stream watches.
struct Watching {
    store: Store,
    bundle: watch::Receiver<Arc<BundleView>>,
    clock: Clock,
    seen: Option<u64>,
    _slot: OwnedSemaphorePermit,
}

impl Watching {
    /// Waits until the store or the bundle changed. `None` once the store is closed.
    async fn changed(&mut self) -> Option<u64> {
        loop {
            let version = self.store.version().ok()?;
            let new_bundle = self.bundle.has_changed().unwrap_or(false);
            self.bundle.mark_unchanged();
            if self.seen.replace(version) != Some(version) || new_bundle {
                return Some(version);
            }
            let later = self.clock.now() + EVERY;
            tokio::select! {
                () = self.clock.sleep_until(later) => {}
                Ok(()) = self.bundle.changed() => return Some(version),
            }
        }
    }
}

/// `/live`: an event `changed` at once, and each time that something changes, at most one a second.
pub(crate) async fn stream(State(served): State<Arc<Served>>) -> Response {
    let Ok(slot) = Arc::clone(&served.live).try_acquire_owned() else {
        return (StatusCode::SERVICE_UNAVAILABLE, "too many live pages\n").into_response();
    };
    let context = &served.context;
    let watching = Watching {
        store: context.store.clone(),
        bundle: context.bundle.clone(),
        clock: context.clock.clone(),
        seen: None,
        _slot: slot,
    };
    let events = futures_util::stream::unfold(watching, |mut watching| async move {
        let version = watching.changed().await?;
        Some((event(version), watching))
    });
    let until = served.shutdown.clone().cancelled_owned();
    Sse::new(events.take_until(until)).keep_alive(KeepAlive::default()).into_response()
}

fn event(version: u64) -> Result<Event, Infallible> {
    Ok(Event::default().event("changed").retry(Duration::from_secs(2)).data(version.to_string()))
}
