//! `fleet runs artifacts`: lists what a run published, or copies it out of the state directory.
//! Refuses to overwrite anything: either every file is copied or none is.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use super::show::artifact_line;
use crate::cli::{Exit, Failure, print, print_json};
use crate::config::StateDir;
use crate::store::{ArtifactRow, RunDetail};

#[derive(Debug, clap::Args)]
pub(super) struct ArtifactsArgs {
    /// The run's id, or the beginning of it
    pub id: String,
    /// JSON instead of lines
    #[arg(long)]
    json: bool,
    /// Copy the files into this directory, which is made if need be
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,
}

pub(super) fn run(
    args: &ArtifactsArgs,
    detail: &RunDetail,
    state: &StateDir,
) -> Result<Exit, Failure> {
    let saved = match &args.save {
        Some(dir) => save(detail, state, dir)?,
        None => Vec::new(),
    };
    if args.json {
        print_json(&detail.artifacts)?;
        return Ok(Exit::Ok);
    }
    if detail.artifacts.is_empty() {
        print(&format!("run {} published nothing", detail.run.run_id))?;
    }
    if args.save.is_none() {
        detail.artifacts.iter().try_for_each(|artifact| print(&artifact_line(artifact)))?;
    }
    saved.iter().try_for_each(|path| print(&format!("saved {}", path.display())))?;
    Ok(Exit::Ok)
}

/// Copies every artifact into `dir`; what was copied is taken back when one cannot be.
fn save(detail: &RunDetail, state: &StateDir, dir: &Path) -> Result<Vec<PathBuf>, Failure> {
    let targets = targets(&detail.artifacts, dir)?;
    std::fs::create_dir_all(dir).map_err(|error| {
        Failure::new(Exit::Io, format!("cannot make {}: {error}", dir.display()))
    })?;
    let kept = state.artifacts().join(detail.run.run_id.as_str());
    let mut saved = Vec::with_capacity(targets.len());
    for (artifact, target) in detail.artifacts.iter().zip(targets) {
        let source = kept.join(artifact.attempt.to_string()).join(artifact.number.to_string());
        if let Err(failure) = copy(&source, &target) {
            // Only files that this call made are removed.
            saved.iter().for_each(|made| drop(std::fs::remove_file(made)));
            return Err(failure);
        }
        saved.push(target);
    }
    Ok(saved)
}

/// Where each artifact goes; a name that is taken refuses them all.
fn targets(artifacts: &[ArtifactRow], dir: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut names = BTreeSet::new();
    let mut targets = Vec::with_capacity(artifacts.len());
    for artifact in artifacts {
        let name = file_name(artifact);
        let target = dir.join(&name);
        if target.symlink_metadata().is_ok() {
            return Err(taken(&target));
        }
        if !names.insert(name.clone()) {
            let message = format!("two artifacts of the run are named {name}");
            let hint = "copy them by number from the state directory's artifacts";
            return Err(Failure::new(Exit::Conflict, message).hint(hint));
        }
        targets.push(target);
    }
    Ok(targets)
}

fn taken(target: &Path) -> Failure {
    Failure::new(Exit::Conflict, format!("{} exists already; nothing was saved", target.display()))
        .hint("save into another directory")
}

/// The last part of the artifact's name: the model chose it, so it may be anything.
fn file_name(artifact: &ArtifactRow) -> String {
    let last = artifact.name.rsplit(['/', '\\']).next().unwrap_or_default();
    let name: String = last.chars().filter(|c| !c.is_control()).collect();
    match name.trim() {
        "" | "." | ".." => format!("artifact-{}", artifact.number),
        name => name.to_owned(),
    }
}

fn copy(source: &Path, target: &Path) -> Result<(), Failure> {
    let failed = |path: &Path, error: io::Error| {
        let message = format!("cannot copy {}: {error}", path.display());
        Failure::new(Exit::Io, message)
    };
    let mut from = File::open(source).map_err(|error| failed(source, error))?;
    let made = OpenOptions::new().write(true).create_new(true).open(target);
    let mut to = made.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => taken(target),
        _ => failed(target, error),
    })?;
    let copied = io::copy(&mut from, &mut to);
    copied.map(drop).map_err(|error| {
        let _ = std::fs::remove_file(target);
        failed(source, error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn artifact(number: u32, name: &str) -> ArtifactRow {
        ArtifactRow {
            number,
            attempt: 1,
            name: name.to_owned(),
            path: name.to_owned(),
            description: None,
            size: 1,
            sha256: None,
        }
    }

    #[test]
    fn a_name_cannot_leave_the_directory() {
        let name = |text| file_name(&artifact(3, text));
        assert_eq!(name("reports/week.md"), "week.md");
        assert_eq!(name("../../etc/passwd"), "passwd");
        assert_eq!(name("..\\x\u{1b}y"), "xy");
        assert_eq!([name(".."), name("a/"), name("")], ["artifact-3"; 3]);
    }

    #[test]
    fn a_taken_name_refuses_all() {
        let dir = tempfile::tempdir().expect("scratch directory");
        let twice = targets(&[artifact(1, "a/x"), artifact(2, "b/x")], dir.path());
        assert_eq!(twice.expect_err("a clash").exit, Exit::Conflict);
        std::fs::write(dir.path().join("x"), "mine").expect("a file");
        let taken = targets(&[artifact(1, "x")], dir.path());
        assert_eq!(taken.expect_err("taken").exit, Exit::Conflict);
    }
}
