//! What a probe container says under the filter and the limits that a run gets.

use super::super::error::PreflightError;
use super::super::image::Image;
use super::super::podman::Podman;
use super::super::seal::Holding;
use super::super::seccomp::{self, Clone3};
use super::{facts, probe};
use crate::config::{Config, LimitsMode};
use crate::run::SealLine;

/// Installs the filter and runs a probe under it.
pub(super) async fn read_back(
    podman: &Podman,
    config: &Config,
    image: &Image,
    flags: &[String],
    facts: &facts::Facts,
    clone3: Clone3,
) -> Result<(seccomp::Installed, Vec<SealLine>), PreflightError> {
    let filter = seccomp::install(&facts.profile, &config.state.sandbox_files(), clone3)?;
    let probe = probe::Probe { podman, image, seccomp: &filter.path, flags };
    let holding = if facts.missing_limits.is_empty() { Holding::Cgroups } else { Holding::Rlimits };
    let lines = match probe::run(&probe, holding).await {
        Err(PreflightError::NoSwapLimit) if config.limits == LimitsMode::BestEffort => {
            probe::run(&probe, Holding::Rlimits).await?
        }
        // What did not hold is stood in for, and that is read back too.
        Ok(lines)
            if holding == Holding::Cgroups
                && config.limits == LimitsMode::BestEffort
                && lines.iter().any(|line| probe::is_limit(line) && !line.holds) =>
        {
            probe::run(&probe, Holding::Rlimits).await?
        }
        read => read?,
    };
    Ok((filter, lines))
}
