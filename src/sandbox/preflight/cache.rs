//! Reports that still hold: of this boot, this image, these settings and this filter.

use sha2::{Digest, Sha256};

use crate::config::Config;
use crate::sandbox::error::PreflightError;
use crate::sandbox::image::Image;
use crate::sandbox::podman::{Podman, hex};
use crate::sandbox::report::SealReport;
use crate::sandbox::seccomp;

/// A report of this boot, when the filter that it was read with is still the one to use.
pub(super) fn report(config: &Config, key: &str) -> Result<Option<SealReport>, PreflightError> {
    let dir = config.state.sandbox_files();
    let Some(report) = SealReport::cached(&dir, key) else { return Ok(None) };
    let filter = seccomp::install(&report.profile, &dir, report.clone3)?;
    Ok((filter.sha256 == report.seccomp_sha256 && filter.path == report.seccomp).then_some(report))
}

/// Everything that a report depends on.
pub(super) fn key(podman: &Podman, config: &Config, image: &Image) -> String {
    let program = std::fs::metadata(podman.program()).ok();
    let program = program.map(|file| (file.len(), file.modified().ok()));
    let all = format!(
        "{} {} {} {:?} {:?} {:?} {}",
        boot(),
        image.id,
        podman.runtime(),
        config.limits,
        podman.root(),
        program,
        env!("CARGO_PKG_VERSION"),
    );
    hex(&Sha256::digest(all.as_bytes())[..8])
}

/// The kernel's id of this boot.
pub(super) fn boot() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}
