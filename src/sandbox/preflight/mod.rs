//! Whether this host can hold the seal. Believes no flag: `podman info` is judged, then a probe
//! container reads back what holds. The result is kept for this boot.

mod cache;
mod complaint;
mod facts;
mod probe;

use serde_json::Value;

pub use probe::is_limit;

use super::error::{LimitsCause, PodmanError, PreflightError};
use super::host::user_name;
use super::image::Image;
use super::podman::Podman;
use super::report::{BEST_EFFORT, ENFORCED, SealReport};
use super::seal::Holding;
use super::seccomp;
use crate::config::{Config, LimitsMode};
use crate::run::SealLine;

/// Checks that this host holds the seal, or says what is missing and the way out.
pub async fn preflight(podman: &Podman, config: &Config) -> Result<SealReport, PreflightError> {
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

impl Podman {
    /// Why limits do not hold here, if they do not.
    pub fn limits_cause(&self) -> LimitsCause {
        facts::limits_cause(self.host().cgroups, self.host().systemd_bus.is_some())
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
    let facts = judge_host(podman, config).await?;
    let filter = seccomp::install(&facts.profile, &config.state.sandbox_files())?;
    let holding = if facts.missing_limits.is_empty() { Holding::Cgroups } else { Holding::Rlimits };
    let lines = match probe::run(podman, image, &filter.path, holding).await {
        Err(PreflightError::NoSwapLimit) if config.limits == LimitsMode::BestEffort => {
            probe::run(podman, image, &filter.path, Holding::Rlimits).await?
        }
        read => read?,
    };
    let limits = judge_lines(&lines, config.limits, podman.limits_cause())?;
    Ok(SealReport {
        limits: limits.to_owned(),
        runtime: podman.runtime().to_owned(),
        image_id: image.id.clone(),
        image_kind: image.kind,
        podman_version: facts.podman_version,
        boot: cache::boot(),
        profile: facts.profile,
        seccomp: filter.path,
        seccomp_sha256: filter.sha256,
        lines,
    })
}

/// Whether the lines suffice, and what that is called.
fn judge_lines(
    lines: &[SealLine],
    mode: LimitsMode,
    cause: LimitsCause,
) -> Result<&'static str, PreflightError> {
    let tell = |line: &&SealLine| {
        format!("{} is {:?} instead of {:?}", line.property, line.seen, line.wanted)
    };
    let (limits, seal): (Vec<_>, Vec<_>) =
        lines.iter().filter(|line| !line.holds).partition(|line| probe::is_limit(line));
    if !seal.is_empty() {
        let broken = seal.iter().map(tell).collect::<Vec<_>>().join(", ");
        return Err(PreflightError::Seal { broken });
    }
    match (limits.is_empty(), mode) {
        (true, _) => Ok(ENFORCED),
        (false, LimitsMode::BestEffort) => Ok(BEST_EFFORT),
        (false, LimitsMode::Enforced) => {
            let limits = limits.iter().map(tell).collect::<Vec<_>>().join(", ");
            Err(PreflightError::Limits { limits: format!("every limit ({limits})"), cause })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(property: &str, holds: bool) -> SealLine {
        SealLine { property: property.into(), wanted: "a".into(), seen: "b".into(), holds }
    }

    fn judged(lines: &[SealLine], mode: LimitsMode) -> String {
        judge_lines(lines, mode, LimitsCause::NoUserManager)
            .map_or_else(|error| error.to_string(), str::to_owned)
    }

    #[test]
    fn limits_have_a_best_effort_and_the_seal_has_none() {
        let good = [line("pids.max", true), line("cap_eff", true)];
        let loose = [line("pids.max", false), line("cap_eff", true)];
        let broken = [line("pids.max", false), line("cap_eff", false)];
        assert_eq!(judged(&good, LimitsMode::Enforced), "enforced");
        assert_eq!(judged(&loose, LimitsMode::BestEffort), "best_effort");
        let refused = judged(&loose, LimitsMode::Enforced);
        assert!(refused.contains("pids.max") && refused.contains("best_effort"), "{refused}");
        assert_eq!(
            judged(&broken, LimitsMode::BestEffort),
            "the seal does not hold: cap_eff is \"b\" instead of \"a\"; fleet runs nothing on this \
             host until it does"
        );
    }
}
