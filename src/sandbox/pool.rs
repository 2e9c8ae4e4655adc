//! All sandboxes of one process: which may still start, which run, and the end of all of them. Once it
//! is closing it refuses every start at once; it is closed when nothing that it started is left.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::warn;

use super::call::{Sandbox, StartError};
use super::container::PodmanSandbox;
use super::podman::Podman;
use super::report::SealReport;
use super::spec::SandboxSpec;

/// How long what was started may take to be removed when the process ends. What is left then is
/// found by the next sweep, for its owner is dead.
const CLOSE_PATIENCE: Duration = Duration::from_secs(60);

/// The sandboxes of one process. Cheap to clone.
#[derive(Clone)]
pub struct Pool {
    inner: Arc<Inner>,
}

struct Inner {
    podman: Podman,
    /// No run gets a new sandbox.
    refusing: CancellationToken,
    /// Nothing at all is started any more.
    closed: CancellationToken,
    /// Starts in progress, and the ends of sandboxes that nobody waits for.
    busy: TaskTracker,
    running: Mutex<Vec<Weak<PodmanSandbox>>>,
}

/// Why the pool gave no sandbox.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PoolError {
    /// The process is ending: no sandbox is started any more.
    #[error("sandbox did not start: this process is ending and starts none any more")]
    Closed,
    #[error(transparent)]
    Start(#[from] StartError),
}

impl From<PoolError> for StartError {
    /// Another process may start it later.
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Start(error) => error,
            PoolError::Closed => StartError {
                message: "this process is ending and starts none any more".to_owned(),
                transient: true,
            },
        }
    }
}

impl Pool {
    /// An open pool.
    pub fn new(podman: Podman) -> Self {
        let inner = Inner {
            podman,
            refusing: CancellationToken::new(),
            closed: CancellationToken::new(),
            busy: TaskTracker::new(),
            running: Mutex::default(),
        };
        Pool { inner: Arc::new(inner) }
    }

    /// Starts a run's sandbox. A start that is overtaken by the closing is taken back before this
    /// returns.
    pub async fn start(
        &self,
        seal: &SealReport,
        spec: SandboxSpec,
    ) -> Result<Arc<PodmanSandbox>, PoolError> {
        self.start_until(&self.inner.refusing, seal, spec).await
    }

    /// Starts a sandbox in which finished work is collected: while runs are interrupted too, until
    /// the pool is closed.
    pub async fn start_salvage(
        &self,
        seal: &SealReport,
        spec: SandboxSpec,
    ) -> Result<Arc<PodmanSandbox>, PoolError> {
        self.start_until(&self.inner.closed, seal, spec).await
    }

    async fn start_until(
        &self,
        over: &CancellationToken,
        seal: &SealReport,
        spec: SandboxSpec,
    ) -> Result<Arc<PodmanSandbox>, PoolError> {
        // Counted before the look: a closing that it does not see waits for it.
        let _busy = self.inner.busy.token();
        let start = PodmanSandbox::start(&self.inner.podman, seal, spec);
        let started = tokio::select! {
            biased;
            () = over.cancelled() => None,
            started = start => Some(started?),
        };
        match started {
            Some(sandbox) if !over.is_cancelled() => Ok(self.keep(sandbox)),
            Some(late) => {
                late.close().await;
                Err(PoolError::Closed)
            }
            None => {
                // What was begun is being removed: see `Started` in `launch`.
                self.inner.podman.settle().await;
                Err(PoolError::Closed)
            }
        }
    }

    fn keep(&self, sandbox: PodmanSandbox) -> Arc<PodmanSandbox> {
        let sandbox = Arc::new(sandbox);
        let mut running = self.running();
        running.retain(|other| other.strong_count() > 0);
        running.push(Arc::downgrade(&sandbox));
        sandbox
    }

    fn running(&self) -> std::sync::MutexGuard<'_, Vec<Weak<PodmanSandbox>>> {
        self.inner.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends a sandbox beside whatever follows; [`close`](Self::close) waits for it.
    pub fn close_later(&self, sandbox: Arc<dyn Sandbox>) {
        self.inner.busy.spawn(async move { sandbox.close().await });
    }

    /// From now on runs get no sandbox, and starts in progress are taken back.
    pub fn refuse(&self) {
        self.inner.refusing.cancel();
    }

    /// Refuses everything, takes back the starts in progress, ends what runs, and waits until nothing
    /// is left. A sandbox's own way out ends after its container; what several sandboxes share may be
    /// stopped once this has returned, so that none is ever met by a way out that is shut.
    pub async fn close(&self) {
        self.refuse();
        self.inner.closed.cancel();
        self.inner.busy.close();
        if tokio::time::timeout(CLOSE_PATIENCE, self.end_all()).await.is_err() {
            warn!("sandboxes did not end in time: the next start sweeps them");
        }
    }

    async fn end_all(&self) {
        // A start that was not overtaken is among the running ones after this.
        self.inner.busy.wait().await;
        let running: Vec<_> = self.running().drain(..).collect();
        let ends = running.iter().filter_map(Weak::upgrade);
        futures_util::future::join_all(ends.map(|one| async move { one.close().await })).await;
        self.inner.podman.settle().await;
    }
}
