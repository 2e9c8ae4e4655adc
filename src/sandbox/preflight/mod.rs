//! Whether this host can hold the seal. Believes no flag: `podman info` is judged, then a probe
//! container reads back what holds. The result is kept for this boot.

mod cache;
pub(super) mod complaint;
mod facts;
mod probe;
mod read_back;
mod verdict;

use serde_json::Value;

pub use probe::is_limit;

use super::error::{PodmanError, PreflightError};
use super::host::user_name;
use super::image::Image;
use super::podman::Podman;
use super::report::SealReport;
use super::runtime::{self, Runtime};
use super::seccomp::Clone3;
use crate::config::{Config, LimitsMode};

/// Checks that this host holds the seal, or says what is missing and the way out.
pub async fn preflight(podman: &Podman, config: &Config) -> Result<SealReport, PreflightError> {
    runtime::check(podman)?;
    match podman.image(&config.image).await {
        Ok(Some(image)) => {
            let key = cache::key(podman, config, &image);
            if let Some(report) = cache::report(config, &key)? {
                return Ok(report);
            }
            let report = examine(podman, config, &image).await?;
            report.keep(&config.state.sandbox_files(), &key)?;
            Ok(report)
        }
        // The host's own faults are told first: they hinder the build of an image too.
        Ok(None) => {
            judge_host(podman, config).await?;
            Err(PreflightError::ImageMissing { image: config.image.clone() })
        }
        Err(error) => {
            judge_host(podman, config).await?;
            Err(complaint::understood(podman, error))
        }
    }
}

/// Probes anew, whatever is cached, and reports limits that do not hold instead of refusing them.
/// The seal itself must hold.
pub async fn probe(podman: &Podman, config: &Config) -> Result<SealReport, PreflightError> {
    runtime::check(podman)?;
    let config = Config { limits: LimitsMode::BestEffort, ..config.clone() };
    let image = podman.image(&config.image).await;
    match image.map_err(|error| complaint::understood(podman, error))? {
        Some(image) => examine(podman, &config, &image).await,
        None => {
            judge_host(podman, &config).await?;
            Err(PreflightError::ImageMissing { image: config.image })
        }
    }
}

/// Checks the host alone, as far as `podman info` tells.
pub(super) async fn judge_host(
    podman: &Podman,
    config: &Config,
) -> Result<facts::Facts, PreflightError> {
    let info = info(podman).await?;
    let user = user_name(podman.host().uid);
    let root = podman.root().display().to_string();
    let setting = facts::Setting {
        mode: config.limits,
        runtime: podman.oci(),
        cgroups: podman.host().cgroups,
        user_manager: podman.host().systemd_bus.is_some(),
        user: &user,
        root: &root,
    };
    facts::judge(&info, &setting)
}

async fn info(podman: &Podman) -> Result<Value, PreflightError> {
    let patience = podman.host().around.patience;
    let stdout = podman
        .output(["info", "--format", "json"], patience)
        .await
        .map_err(|error| complaint::understood(podman, error))?;
    serde_json::from_slice(&stdout).map_err(|error| {
        let error = PodmanError::Output { verb: "info".to_owned(), reason: error.to_string() };
        complaint::understood(podman, error)
    })
}

async fn examine(
    podman: &Podman,
    config: &Config,
    image: &Image,
) -> Result<SealReport, PreflightError> {
    let flags = runtime::flags(podman).await?;
    let facts = judge_host(podman, config).await?;
    let mut clone3 = Clone3::Refused;
    let (mut filter, mut lines) =
        read_back::read_back(podman, config, image, &flags, &facts, clone3).await?;
    if podman.oci() == Runtime::Runsc && probe::lacks_threads(&lines) {
        clone3 = Clone3::Passed;
        (filter, lines) =
            read_back::read_back(podman, config, image, &flags, &facts, clone3).await?;
    }
    probe::has_door(podman, &lines)?;
    let limits = verdict::judge_lines(&lines, config.limits, podman.limits_cause())?;
    Ok(SealReport {
        limits: limits.to_owned(),
        runtime: podman.runtime().to_owned(),
        runtime_flags: flags,
        speakers: facts.speakers,
        image_id: image.id.clone(),
        image_kind: image.kind,
        podman_version: facts.podman_version,
        boot: cache::boot(),
        profile: facts.profile,
        seccomp: filter.path,
        seccomp_sha256: filter.sha256,
        clone3,
        lines,
    })
}
