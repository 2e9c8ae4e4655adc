//! One run's container: started, called, ended. Whatever goes wrong, the container is killed and
//! nothing of it is used again.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::call::{Call, CallError, Reply, Sandbox, StartError};
use super::connection::Connection;
use super::disk;
use super::door::Door;
use super::launch;
use super::memory::Kills;
use super::podman::Podman;
use super::report::SealReport;
use super::spec::SandboxSpec;
use crate::egress::Proxy;

/// How long a cancelled call may take to answer.
const CANCEL_GRACE: Duration = Duration::from_secs(3);

/// A sealed container with a helper that answers. Dropping it closes the connection, and the
/// container ends by itself.
pub struct PodmanSandbox {
    inner: Arc<Inner>,
    /// Ends the disk poll.
    poll: CancellationToken,
}

struct Inner {
    podman: Podman,
    name: String,
    connection: Connection,
    /// The door's directory and the way out, until the container is gone.
    left: Mutex<Option<(Door, Option<Proxy>)>>,
}

impl PodmanSandbox {
    /// Starts the container of a run and waits for its helper. On failure nothing is left.
    pub async fn start(
        podman: &Podman,
        seal: &SealReport,
        spec: SandboxSpec,
    ) -> Result<Self, StartError> {
        let launched = launch::launch(podman, seal, &spec).await?;
        let pid = launched.stream.peer_cred().ok().and_then(|helper| helper.pid());
        let kills = Kills::of(pid, spec.limits.memory_mb);
        let explain = Box::new(move || kills.verdict());
        let inner = Arc::new(Inner {
            podman: podman.clone(),
            name: launched.name,
            connection: Connection::new(launched.stream, explain),
            left: Mutex::new(Some((launched.door, launched.proxy))),
        });
        let poll = CancellationToken::new();
        tokio::spawn(watch_disk(inner.clone(), spec, poll.clone()));
        Ok(PodmanSandbox { inner, poll })
    }

    /// The container's name.
    pub fn container(&self) -> &str {
        &self.inner.name
    }

    async fn answer(&self, call: Call, cancel: &CancellationToken) -> Result<Reply, CallError> {
        if cancel.is_cancelled() {
            return Err(CallError::Cancelled);
        }
        let inner = &self.inner;
        let mut sent = tokio::select! {
            sent = inner.connection.send(call) => sent?,
            () = cancel.cancelled() => return Err(CallError::Cancelled),
        };
        let deadline = sent.deadline;
        tokio::select! {
            answer = sent.answer() => return self.settled(answer).await,
            () = cancel.cancelled() => {}
            () = tokio::time::sleep(deadline) => {
                let reason = format!("a call was not answered within {} s", deadline.as_secs());
                inner.retire(&reason).await;
                return Err(inner.connection.gone());
            }
        }
        sent.cancel();
        match tokio::time::timeout(CANCEL_GRACE, sent.answer()).await {
            Ok(Err(CallError::Gone(reason))) => self.settled(Err(CallError::Gone(reason))).await,
            // What it started is dead or has ended.
            Ok(_) => Err(CallError::Cancelled),
            Err(_) => {
                inner.retire("a cancelled call did not end").await;
                Err(CallError::Cancelled)
            }
        }
    }

    /// A connection that ended takes its container with it before the caller is told.
    async fn settled(&self, answer: Result<Reply, CallError>) -> Result<Reply, CallError> {
        if let Err(CallError::Gone(reason)) = &answer {
            self.inner.retire(reason).await;
        }
        answer
    }
}

impl Sandbox for PodmanSandbox {
    fn call<'a>(
        &'a self,
        call: Call,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Reply, CallError>> {
        self.answer(call, cancel).boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async {
            self.poll.cancel();
            self.inner.retire("it was closed").await;
        }
        .boxed()
    }
}

impl Drop for PodmanSandbox {
    fn drop(&mut self) {
        self.poll.cancel();
        self.inner.connection.end("it was closed");
    }
}

impl Inner {
    /// Ends the connection, then the container, and waits until it is gone. Does it once.
    async fn retire(&self, reason: &str) {
        self.connection.end(reason);
        let mut left = self.left.lock().await;
        if left.is_none() {
            return;
        }
        match self.podman.remove_container(&self.name).await {
            Ok(()) => *left = None,
            // Its door stays for the sweep, which tries again.
            Err(error) => warn!(container = %self.name, %error, "cannot remove a container"),
        }
    }
}

/// Ends the sandbox when its files outgrow the limit.
async fn watch_disk(inner: Arc<Inner>, spec: SandboxSpec, poll: CancellationToken) {
    let mut roots = vec![spec.workspace];
    roots.extend(spec.git.map(|git| git.upper));
    let ended = inner.connection.ended().clone();
    let outgrown = tokio::select! {
        outgrown = disk::outgrown(roots, spec.limits.disk_mb) => outgrown,
        () = poll.cancelled() => return,
        () = ended.cancelled() => return,
    };
    warn!(run.id = %spec.run_id, container = %inner.name, "{outgrown}");
    inner.retire(&outgrown).await;
}
