//! The status page: read-only pages, health, metrics and JSON over loopback HTTP. Refuses to change
//! anything, to answer another host's name, and to be reached from other machines.

mod api;
mod assets;
mod bundle_view;
mod context;
mod cron_words;
mod download;
mod guard;
mod health;
mod listen;
mod live;
mod mark;
mod metrics;
mod page;
mod pages;
mod render;
mod words;

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn;
use axum::routing::get;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

pub use bundle_view::{BundleView, TaskView};
pub use context::{Instance, StatusContext};
pub use health::Health;
pub use listen::{BindError, ServeError, bind, serve};

/// What the handlers share.
pub(crate) struct Served {
    context: StatusContext,
    /// Ends live streams, so that a stop does not wait for open pages.
    shutdown: CancellationToken,
    live: Arc<Semaphore>,
}

/// The routes of the status page, guarded.
pub fn router(context: StatusContext) -> Router {
    routes(context, CancellationToken::new())
}

fn routes(context: StatusContext, shutdown: CancellationToken) -> Router {
    let live = Arc::new(Semaphore::new(live::MOST_STREAMS));
    let served = Arc::new(Served { context, shutdown, live });
    Router::new()
        .route("/", get(pages::overview))
        .route("/runs", get(pages::runs))
        .route("/runs/{id}", get(pages::run))
        .route("/runs/{id}/artifacts/{number}", get(download::artifact))
        .route("/schedule", get(pages::schedule))
        .route("/dead-letters", get(pages::dead_letters))
        .route("/problems", get(pages::problems))
        .route("/seal", get(pages::seal))
        .route("/live", get(live::stream))
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .route("/metrics", get(metrics::metrics))
        .route("/api/overview", get(api::overview))
        .route("/api/runs", get(api::runs))
        .route("/api/runs/{id}", get(api::run))
        .route("/api/dead-letters", get(api::dead_letters))
        .route("/api/problems", get(api::problems))
        .route("/assets/{name}", get(assets::asset))
        .fallback(pages::missing)
        .with_state(served)
        .layer(from_fn(guard::guard))
}
