//! The image from the distribution's packages: mmdebstrap without root, its tar straight into Podman.

use std::path::Path;
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

use super::super::command::{self, Group};
use super::super::image::KIND_LABEL;
use super::super::podman::Podman;
use super::{BuildError, PATIENCE, Python};
use crate::config::Config;

const PACKAGES: &str = "python3,git,ca-certificates";

/// Builds and imports the image.
pub(super) async fn build(
    podman: &Podman,
    config: &Config,
    mmdebstrap: &Path,
    python: Python,
    say: &(dyn Fn(&str) + Send + Sync),
) -> Result<(), BuildError> {
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let suite = codename(&release).ok_or_else(|| BuildError::Program {
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
    maker.stdout(Stdio::piped()).stderr(Stdio::piped()).current_dir(std::env::temp_dir());
    let program = "mmdebstrap";
    let failed = |error: std::io::Error| BuildError::Program { program, reason: error.to_string() };
    let mut maker = maker.spawn().map_err(failed)?;
    let maker_group = Group::of(&maker);
    let tar: Stdio =
        maker.stdout.take().expect("standard output is piped").try_into().map_err(failed)?;
    let mut importer = podman.command(None);
    let label = format!("LABEL {KIND_LABEL}=packages");
    importer.args(["import", "--quiet", "--change", &label, "-", &config.image]);
    importer.stdin(tar).stdout(Stdio::null()).stderr(Stdio::piped());
    let importer = importer.spawn().map_err(failed)?;
    let importer_group = Group::of(&importer);
    let told = tell(maker.stderr.take().expect("standard error is piped"), say);
    let all = async { tokio::join!(told, maker.wait(), importer.wait_with_output()) };
    let (last, made, imported) =
        tokio::time::timeout(PATIENCE, all).await.map_err(|_| BuildError::Program {
            program,
            reason: format!("it took longer than {} s", PATIENCE.as_secs()),
        })?;
    maker_group.defuse();
    importer_group.defuse();
    let made = made.map_err(failed)?;
    if !made.success() {
        let status = made.code().unwrap_or(-1);
        // What a broken stream left in the storage is not an image of this build.
        podman.forget_image(&config.image).await?;
        return Err(BuildError::Failed { program, status, stderr: last });
    }
    super::feed::check("podman", &imported.map_err(failed)?)
}

/// Passes progress lines on; the last ones, for an error.
async fn tell(stderr: impl AsyncRead + Unpin, say: &(dyn Fn(&str) + Send + Sync)) -> String {
    let mut lines = BufReader::new(stderr).lines();
    let mut last: Vec<String> = Vec::new();
    while let Ok(Some(line)) = lines.next_line().await {
        let line = line.trim();
        if line.starts_with("I: ") && !line.contains("progress") {
            say(&line[3..]);
        }
        if line.starts_with("E: ") || line.starts_with("W: ") {
            last.push(line.to_owned());
            last.truncate(8);
        }
    }
    last.join("; ")
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
