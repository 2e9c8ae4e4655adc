//! A program that writes an image's tar, straight into Podman.

use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::Command;

use super::super::command::Group;
use super::super::image::KIND_LABEL;
use super::super::podman::Podman;
use super::{BuildError, PATIENCE};
use crate::config::Config;

/// Lines of standard error that an error shows.
const SHOWN: usize = 8;

/// Whatever writes the tar to its standard output.
pub(super) struct Maker {
    pub command: Command,
    /// What errors call it.
    pub program: &'static str,
}

/// Runs the maker and imports what it writes.
pub(super) async fn into_image(
    podman: &Podman,
    config: &Config,
    maker: Maker,
    say: &(dyn Fn(&str) + Send + Sync),
) -> Result<(), BuildError> {
    let Maker { mut command, program } = maker;
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let failed = |error: std::io::Error| BuildError::Program { program, reason: error.to_string() };
    let mut maker = command.spawn().map_err(failed)?;
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

/// Passes progress lines on; the last telling ones, for an error.
async fn tell(stderr: impl AsyncRead + Unpin, say: &(dyn Fn(&str) + Send + Sync)) -> String {
    let mut lines = BufReader::new(stderr).lines();
    let mut last: Vec<String> = Vec::new();
    while let Ok(Some(line)) = lines.next_line().await {
        let line = line.trim();
        if line.starts_with("I: ") && !line.contains("progress") {
            say(&line[3..]);
        }
        if ["E: ", "W: ", "Error", "error:"].iter().any(|start| line.starts_with(start)) {
            last.push(line.to_owned());
            last.truncate(SHOWN);
        }
    }
    last.join("; ")
}
