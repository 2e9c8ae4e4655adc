//! The image from the distribution's packages: mmdebstrap without root, its tar straight into Podman.

use std::path::Path;

use super::super::command;
use super::super::podman::Podman;
use super::pipe::{self, Maker};
use super::{BuildError, Python};
use crate::config::Config;

const PACKAGES: &str = "python3,git,ca-certificates";

/// Builds and imports the image.
pub(super) async fn build(
    podman: &Podman,
    config: &Config,
    mmdebstrap: &Path,
    release: &str,
    python: Python,
    say: &(dyn Fn(&str) + Send + Sync),
) -> Result<(), BuildError> {
    let suite = codename(release).ok_or_else(|| BuildError::Program {
        program: "mmdebstrap",
        reason: "/etc/os-release has no VERSION_CODENAME: use --base or --skeleton".to_owned(),
    })?;
    let include = match python {
        Python::Plain => PACKAGES.to_owned(),
        Python::IPython => format!("{PACKAGES},python3-ipython"),
    };
    say(&format!("making a {suite} image with {include} (a minute or two)"));
    let mut maker = command::command(mmdebstrap, &podman.environment());
    maker.args(["--mode=unshare", "--variant=minbase", "--format=tar"]);
    maker.arg(format!("--include={include}")).args([&suite, "-"]);
    maker.current_dir(std::env::temp_dir());
    pipe::into_image(podman, config, Maker { command: maker, program: "mmdebstrap" }, say).await
}

/// `VERSION_CODENAME` of an os-release text (os-release(5)).
fn codename(release: &str) -> Option<String> {
    let line = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="))?;
    let name = line.trim_matches(['"', '\'']).to_owned();
    let plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    plain.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codename_is_read_with_and_without_quotes() {
        let seen = [
            "ID=x\nVERSION_CODENAME=trixie\n",
            "VERSION_CODENAME=\"noble\"",
            "ID=fedora",
            "VERSION_CODENAME=--x",
        ]
        .map(codename);
        assert_eq!(seen, [Some("trixie".into()), Some("noble".into()), None, None]);
    }
}
