//! What the seal is worth under the OCI runtime that a bundle names, where it is not the host's own.
//! Probed when it is first needed; a runtime that cannot be used ends the run, and nothing stands in.

use std::collections::BTreeMap;

use tokio::sync::Mutex;

use super::Context;
use crate::config::Config;
use crate::sandbox::{Podman, PreflightError, SealReport, StartError, preflight};

/// Reports by the name of the runtime.
pub type Seals = Mutex<BTreeMap<String, SealReport>>;

impl Context {
    /// The seal under this runtime; the host's own for `None`.
    pub async fn seal_under(&self, runtime: Option<&str>) -> Result<SealReport, PreflightError> {
        let Some(runtime) = runtime.filter(|name| *name != self.seal.runtime) else {
            return Ok(self.seal.clone());
        };
        let mut seals = self.seals.lock().await;
        if let Some(seal) = seals.get(runtime) {
            return Ok(seal.clone());
        }
        let config = Config { runtime: Some(runtime.to_owned()), ..self.config.clone() };
        let seal = preflight(&Podman::connect(&config)?, &config).await?;
        seals.insert(runtime.to_owned(), seal.clone());
        Ok(seal)
    }

    /// The same for a container that is about to start.
    pub(super) async fn seal_to_start(
        &self,
        runtime: Option<&str>,
    ) -> Result<SealReport, StartError> {
        let seal = self.seal_under(runtime).await;
        seal.map_err(|error| StartError { message: error.to_string(), transient: false })
    }
}
