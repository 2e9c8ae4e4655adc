//! `fleet sandbox build` and `fleet sandbox probe`.

use super::{Exit, Failure, Global};
use crate::config::LimitsMode;
use crate::run::SealLine;
use crate::sandbox::{self, Image, ImageKind, Podman, PreflightError, Python, Recipe, SealReport};

/// Builds the sandbox image and probes the seal.
#[derive(Debug, clap::Args)]
pub struct SandboxArgs {
    #[command(subcommand)]
    verb: SandboxVerb,
}

#[derive(Debug, clap::Subcommand)]
enum SandboxVerb {
    /// Makes the image in which runs are carried out
    Build(BuildArgs),
    /// Starts one sealed container and tells what holds on this host
    Probe(ProbeArgs),
}

#[derive(Debug, clap::Args)]
struct BuildArgs {
    /// Do nothing when the image is there
    #[arg(long)]
    if_missing: bool,
    /// Build from this image instead of the distribution's packages
    #[arg(long, value_name = "REFERENCE", conflicts_with_all = ["skeleton", "ipython"])]
    base: Option<String>,
    /// Borrow this host's /usr: for development and tests only
    #[arg(long, conflicts_with = "ipython")]
    skeleton: bool,
    /// Put IPython into the image
    #[arg(long)]
    ipython: bool,
}

#[derive(Debug, clap::Args)]
struct ProbeArgs {
    /// JSON instead of lines
    #[arg(long)]
    json: bool,
    /// Tell of limits alone, and fail unless control groups enforce all of them
    #[arg(long)]
    limits: bool,
}

/// Carries out the verb.
pub fn run(args: SandboxArgs, global: &Global) -> Result<Exit, Failure> {
    match args.verb {
        SandboxVerb::Build(args) => global.block_on(build(args, global))?,
        SandboxVerb::Probe(args) => global.block_on(probe(args, global))?,
    }
}

async fn build(args: BuildArgs, global: &Global) -> Result<Exit, Failure> {
    let config = &global.config;
    let podman = Podman::connect(config).map_err(|error| unhealthy(&error))?;
    let failed = |error: sandbox::BuildError| Failure::from_error(Exit::Unhealthy, &error);
    if args.if_missing
        && let Some(image) = sandbox::existing(&podman, config).await.map_err(failed)?
    {
        super::print(&format!("{} (was there already)", told(&config.image, &image)))?;
        return Ok(Exit::Ok);
    }
    let python = if args.ipython { Python::IPython } else { Python::Plain };
    let recipe = match (args.base, args.skeleton) {
        (Some(reference), _) => Recipe::Base(reference),
        (None, true) => Recipe::Skeleton,
        (None, false) => Recipe::Best { python },
    };
    let say = |line: &str| eprintln!("{line}");
    let image = sandbox::build(&podman, config, recipe, &say).await.map_err(failed)?;
    super::print(&told(&config.image, &image))?;
    Ok(Exit::Ok)
}

/// Name, kind, size and id of an image.
fn told(name: &str, image: &Image) -> String {
    let megabytes = image.size.div_ceil(1_000_000);
    let kind = match image.kind {
        ImageKind::Complete => "complete",
        ImageKind::Skeleton => "skeleton over the host's /usr, for development and tests only",
    };
    format!("image {name}: {kind}, {megabytes} MB, id {}", image.id)
}

async fn probe(args: ProbeArgs, global: &Global) -> Result<Exit, Failure> {
    let config = &global.config;
    let podman = Podman::connect(config).map_err(|error| unhealthy(&error))?;
    let report = sandbox::probe(&podman, config).await.map_err(|error| unhealthy(&error))?;
    let lines: Vec<&SealLine> =
        report.lines.iter().filter(|line| !args.limits || sandbox::is_limit(line)).collect();
    match (args.json, args.limits) {
        (true, false) => super::print_json(&report)?,
        (true, true) => super::print_json(&lines)?,
        (false, _) => super::print(&page(&report, &lines))?,
    }
    if report.limits_enforced() || (config.limits == LimitsMode::BestEffort && !args.limits) {
        return Ok(Exit::Ok);
    }
    let loose = report.lines.iter().filter(|line| !line.holds).map(|line| line.property.as_str());
    let limits = loose.collect::<Vec<_>>().join(", ");
    Err(unhealthy(&PreflightError::Limits { limits, cause: podman.limits_cause() }))
}

fn page(report: &SealReport, lines: &[&SealLine]) -> String {
    let mut text = format!(
        "podman {}, runtime {}, image {}, limits {}\n",
        report.podman_version, report.runtime, report.image_id, report.limits
    );
    for line in lines {
        let verdict = match (line.holds, sandbox::is_limit(line)) {
            (true, _) => "holds",
            (false, true) => "not enforced: rlimits stand in",
            (false, false) => "BROKEN",
        };
        text.push_str(&format!("  {:<16} {:<22} {verdict}\n", line.property, line.seen));
    }
    text.trim_end().to_owned()
}

fn unhealthy(error: &PreflightError) -> Failure {
    Failure::from_error(Exit::Unhealthy, error)
}
