//! Placeholder until the real one lands.
use super::*;
use crate::config::Config;
#[derive(Clone, Debug)]
pub struct Podman;
#[derive(Debug, thiserror::Error)]
#[error("x")]
pub struct PreflightError;
#[derive(Debug, thiserror::Error)]
#[error("x")]
pub struct PodmanError;
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct SealReport {
    pub limits: String,
    pub runtime: String,
    pub image_id: String,
}
impl SealReport {
    pub fn limits_enforced(&self) -> bool {
        false
    }
}
impl Podman {
    pub fn connect(_: &Config) -> Result<Self, PreflightError> {
        Err(PreflightError)
    }
    pub async fn remove_run(&self, _: &str) -> Result<(), PodmanError> {
        Ok(())
    }
}
pub async fn preflight(_: &Podman, _: &Config) -> Result<SealReport, PreflightError> {
    Err(PreflightError)
}
pub async fn sweep(_: &Podman, _: &(dyn Fn(&str) -> bool + Sync)) -> Result<usize, PodmanError> {
    Ok(0)
}
pub struct PodmanSandbox;
impl PodmanSandbox {
    pub async fn start(_: &Podman, _: &SealReport, _: SandboxSpec) -> Result<Self, StartError> {
        Err(StartError { message: String::new(), transient: true })
    }
    pub fn container(&self) -> &str {
        ""
    }
}
impl Sandbox for PodmanSandbox {
    fn call<'a>(
        &'a self,
        _: Call,
        _: &'a tokio_util::sync::CancellationToken,
    ) -> futures_util::future::BoxFuture<'a, Result<Reply, CallError>> {
        Box::pin(async { Err(CallError::Cancelled) })
    }
    fn close(&self) -> futures_util::future::BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}
