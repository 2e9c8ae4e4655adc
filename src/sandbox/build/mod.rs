//! Makes the sandbox image in fleet's own Podman storage: from the distribution's packages without
//! root, from another image, or as a skeleton over the host's `/usr`.

mod fedora;
mod feed;
mod packages;
mod pipe;
mod skeleton;

use std::path::Path;
use std::time::Duration;

use super::error::{PodmanError, PreflightError};
use super::image::{Image, KIND_LABEL, SKELETON};
use super::podman::Podman;
use super::preflight::judge_host;
use crate::config::Config;

const PATIENCE: Duration = Duration::from_secs(3600);
const IMPORT_PATIENCE: Duration = Duration::from_secs(600);

/// Where the image's programs come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recipe {
    /// The distribution's packages by mmdebstrap or Fedora's dnf, else the skeleton.
    Best { python: Python },
    /// The host's own `/usr`: for development and tests only.
    Skeleton,
    /// Another image, by reference, which Podman may fetch.
    Base(String),
}

/// Which Python an image of packages has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Python {
    Plain,
    /// With IPython, whose `run_python` output is richer.
    IPython,
}

/// Why there is no image.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    #[error(transparent)]
    Preflight(#[from] PreflightError),
    #[error(transparent)]
    Podman(#[from] PodmanError),
    #[error("no skeleton: {0}")]
    Skeleton(String),
    #[error("cannot run {program}: {reason}")]
    Program { program: &'static str, reason: String },
    #[error("{program} failed (status {status}): {stderr}")]
    Failed { program: &'static str, status: i32, stderr: String },
}

/// Builds the image that the configuration names. `say` gets a line per step.
pub async fn build(
    podman: &Podman,
    config: &Config,
    recipe: Recipe,
    say: &(dyn Fn(&str) + Send + Sync),
) -> Result<Image, BuildError> {
    judge_host_for_build(podman, config).await?;
    match recipe {
        Recipe::Base(reference) => from_base(podman, config, &reference, say).await?,
        Recipe::Skeleton => from_host(podman, config, say).await?,
        Recipe::Best { python } => best(podman, config, python, say).await?,
    }
    podman.forget_images();
    podman
        .image(&config.image)
        .await?
        .ok_or_else(|| PreflightError::ImageMissing { image: config.image.clone() }.into())
}

/// The distribution's packages, by what is installed here, else the skeleton.
async fn best(
    podman: &Podman,
    config: &Config,
    python: Python,
    say: &(dyn Fn(&str) + Send + Sync),
) -> Result<(), BuildError> {
    let around = &podman.host().around;
    let release = around.text("/etc/os-release");
    if fedora::is_fedora(&release) && around.find_program("dnf").is_some() {
        return fedora::build(podman, config, &release, python, say).await;
    }
    match around.find_program("mmdebstrap") {
        Some(program) => packages::build(podman, config, &program, &release, python, say).await,
        None => {
            say(
                "neither mmdebstrap nor Fedora's dnf is installed: falling back to a skeleton image",
            );
            from_host(podman, config, say).await
        }
    }
}

/// The image that the configuration names, when it is there.
pub async fn existing(podman: &Podman, config: &Config) -> Result<Option<Image>, BuildError> {
    Ok(podman.image(&config.image).await?)
}

/// An image may be built where limits do not hold: that is refused when something is run.
async fn judge_host_for_build(podman: &Podman, config: &Config) -> Result<(), PreflightError> {
    let config = Config { limits: crate::config::LimitsMode::BestEffort, ..config.clone() };
    judge_host(podman, &config).await.map(drop)
}

async fn from_host(
    podman: &Podman,
    config: &Config,
    say: &(dyn Fn(&str) + Send + Sync),
) -> Result<(), BuildError> {
    say("making a skeleton image over this host's /usr: for development and tests only");
    let tar = skeleton::tar(Path::new("/")).map_err(BuildError::Skeleton)?;
    let label = format!("LABEL {KIND_LABEL}={SKELETON}");
    let args = ["import", "--quiet", "--change", &label, "-", &config.image];
    feed::feed(podman, &args, &tar, IMPORT_PATIENCE).await
}

async fn from_base(
    podman: &Podman,
    config: &Config,
    reference: &str,
    say: &(dyn Fn(&str) + Send + Sync),
) -> Result<(), BuildError> {
    say(&format!("building from {reference}"));
    // No label: the base tells by its own whether it is a skeleton.
    let containerfile = format!("FROM {reference}\n");
    let args = ["build", "--quiet", "--network=none", "--tag", &config.image, "--file", "-"];
    feed::feed(podman, &args, containerfile.as_bytes(), PATIENCE).await
}
