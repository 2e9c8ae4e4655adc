//! Takes an attempt's work out of its sandbox: commits as a git bundle, published files as copies.
//! The container may be gone by then: a fresh one on the same overlay salvages the commits.

use std::path::Path;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::Context;
use crate::agent::EventSink;
use crate::run::{Artifact, EventKind};
use crate::sandbox::{
    Call, CallError, EditError, FileContent, GitBundle, Reply, Sandbox, SandboxSpec, StartError,
};
use crate::tools::MAX_ARTIFACT_BYTES;
use crate::worktree::{self, Checkout, CollectLimits, CollectRequest, Collected};

/// How many times the run's disk limit the container has in which its work is salvaged.
const SALVAGE_ROOM: u64 = 4;

/// What an attempt left.
#[derive(Debug, Default)]
pub struct Work {
    pub collected: Option<Collected>,
    /// Published files that were copied, with size and hash.
    pub artifacts: Vec<Artifact>,
    /// Why something could not be collected.
    pub lost: Option<Lost>,
}

/// Work that did not arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    /// What the agent made is refused: another try of the collection changes nothing.
    Refused(String),
    /// The sandbox, git or the host failed.
    Failed(String),
}

impl Lost {
    /// What happened, for a person.
    pub fn message(&self) -> &str {
        match self {
            Lost::Refused(message) | Lost::Failed(message) => message,
        }
    }
}

/// Collects from a living sandbox, or from a fresh one on the same overlay.
pub struct Collector<'a> {
    pub context: &'a Arc<Context>,
    pub checkout: &'a Checkout,
    pub spec: SandboxSpec,
    pub run: &'a str,
    pub attempt: u32,
    pub events: EventSink,
}

impl Collector<'_> {
    /// Collects everything. Each call into the sandbox and each git program has a deadline of its own.
    pub async fn collect(
        &self,
        sandbox: Option<Arc<dyn Sandbox>>,
        published: Vec<Artifact>,
    ) -> Work {
        let work = self.take(sandbox, published).await;
        self.report(&work).await;
        work
    }

    /// Collects the commits of a dead attempt, in a container of its own that ends with this.
    pub async fn salvage(&self) -> Work {
        self.collect(None, Vec::new()).await
    }

    async fn take(&self, sandbox: Option<Arc<dyn Sandbox>>, published: Vec<Artifact>) -> Work {
        let mut work = Work::default();
        if self.checkout.branch.is_none() && published.is_empty() {
            return work;
        }
        if let Some(sandbox) = sandbox
            && is_alive(sandbox.as_ref()).await
        {
            self.take_from(sandbox.as_ref(), published, &mut work).await;
            return work;
        }
        match self.salvager().await {
            Ok(sandbox) => {
                self.take_from(sandbox.as_ref(), published, &mut work).await;
                sandbox.close().await;
            }
            Err(message) => work.lost = Some(Lost::Failed(message)),
        }
        work
    }

    async fn take_from(&self, sandbox: &dyn Sandbox, published: Vec<Artifact>, work: &mut Work) {
        work.artifacts = self.artifacts(sandbox, published).await;
        match self.commits(sandbox).await {
            Ok(collected) => work.collected = collected,
            Err(lost) => work.lost = Some(lost),
        }
    }

    /// A fresh container over the same worktree and overlay. The first one is gone: the caller swept
    /// it or its helper ended.
    async fn salvager(&self) -> Result<Arc<dyn Sandbox>, String> {
        self.context.podman.remove_run(self.run).await.map_err(|error| error.to_string())?;
        let failed = |error: StartError| format!("no container to salvage the work: {error}");
        let seal =
            self.context.seal_to_start(self.spec.runtime.as_deref()).await.map_err(failed)?;
        // Packing needs room of its own, also where the run outgrew its limit.
        let mut spec = self.spec.clone();
        spec.limits.disk_mb = spec.limits.disk_mb.saturating_mul(SALVAGE_ROOM);
        let started = self.context.sandboxes.start_salvage(&seal, spec).await;
        let sandbox = started.map_err(|error| failed(error.into()))?;
        Ok(sandbox)
    }

    async fn commits(&self, sandbox: &dyn Sandbox) -> Result<Option<Collected>, Lost> {
        if self.checkout.branch.is_none() {
            return Ok(None);
        }
        let limits = CollectLimits::default();
        let call = Call::CollectGit {
            base: self.checkout.base_commit.clone(),
            message: format!("Uncommitted work of run {}, attempt {}", self.run, self.attempt),
            max_bytes: limits.max_bytes,
        };
        let bundle = match call_once(sandbox, call).await {
            Ok(Reply::Git(bundle)) => bundle,
            Ok(other) => {
                let message = format!("the sandbox answered {other:?} to a collection");
                return Err(Lost::Failed(message));
            }
            // git inside broke off, perhaps for want of time or room: a fresh worktree may do better.
            Err(error @ CallError::Refused { kind: EditError::Io, .. }) => {
                return Err(Lost::Failed(error.to_string()));
            }
            Err(error @ CallError::Refused { .. }) => return Err(Lost::Refused(error.to_string())),
            Err(error) => return Err(Lost::Failed(error.to_string())),
        };
        let GitBundle { bytes: Some(bytes), head, salvaged } = bundle else {
            return Ok(None);
        };
        let request = CollectRequest { bundle: bytes, head, limits };
        let collected = worktree::collect(self.checkout, request).await.map_err(|error| {
            let message = super::with_causes(&error);
            if error.is_refusal() { Lost::Refused(message) } else { Lost::Failed(message) }
        })?;
        if salvaged {
            let _ = self
                .events
                .record(EventKind::Warned {
                    message: "the agent left uncommitted changes: kept as a commit of their own"
                        .to_owned(),
                })
                .await;
        }
        Ok(Some(collected))
    }

    async fn artifacts(&self, sandbox: &dyn Sandbox, published: Vec<Artifact>) -> Vec<Artifact> {
        let dir =
            self.context.config.state.artifacts().join(self.run).join(self.attempt.to_string());
        let mut kept: Vec<Artifact> = Vec::with_capacity(published.len());
        for artifact in published {
            let number = kept.len() + 1;
            match copy(sandbox, &artifact, &dir, number).await {
                Ok(artifact) => kept.push(artifact),
                Err(message) => {
                    let message = format!("artifact {} was not kept: {message}", artifact.path);
                    let _ = self.events.record(EventKind::Warned { message }).await;
                }
            }
        }
        kept
    }

    async fn report(&self, work: &Work) {
        if let Some(collected) = &work.collected {
            let event = EventKind::WorkCollected {
                branch: self.checkout.branch.clone(),
                commit: Some(collected.commit.clone()),
                commits: u32::try_from(collected.commits).unwrap_or(u32::MAX),
                diff_stat: Some(collected.diff_stat.clone()).filter(|stat| !stat.is_empty()),
            };
            let _ = self.events.record(event).await;
        }
        if let Some(message) = work.lost.as_ref().map(Lost::message) {
            warn!(run.id = self.run, attempt = self.attempt, error = %message, "could not collect the work");
            let message = format!(
                "the work was not collected: {message}; it is kept in {}",
                self.checkout.path.display()
            );
            let _ = self.events.record(EventKind::Warned { message }).await;
        }
    }
}

async fn call_once(sandbox: &dyn Sandbox, call: Call) -> Result<Reply, CallError> {
    sandbox.call(call, &CancellationToken::new()).await
}

/// Whether the sandbox still answers.
async fn is_alive(sandbox: &dyn Sandbox) -> bool {
    call_once(sandbox, Call::Resources).await.is_ok()
}

/// Copies one published file into the state directory as `dir/number`.
async fn copy(
    sandbox: &dyn Sandbox,
    artifact: &Artifact,
    dir: &Path,
    number: usize,
) -> Result<Artifact, String> {
    let call = Call::Fetch { path: artifact.path.clone(), max_bytes: MAX_ARTIFACT_BYTES };
    let FileContent { bytes, .. } = match call_once(sandbox, call).await {
        Ok(Reply::Content(content)) => content,
        Ok(other) => return Err(format!("the sandbox answered {other:?}")),
        Err(error) => return Err(error.to_string()),
    };
    // The hash is of what is stored, not of what the sandbox says.
    let sha256 = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    let size = bytes.len() as u64;
    let target = dir.join(number.to_string());
    let written = async {
        tokio::fs::create_dir_all(dir).await?;
        let unnamed = target.with_extension("part");
        tokio::fs::write(&unnamed, &bytes).await?;
        tokio::fs::rename(&unnamed, &target).await
    };
    written.await.map_err(|error| format!("cannot write {}: {error}", target.display()))?;
    Ok(Artifact { size, sha256: Some(sha256), ..artifact.clone() })
}
