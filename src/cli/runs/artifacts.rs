//! `fleet runs artifacts`. The names are the agent's words: a file never leaves the directory that the
//! person named, and never replaces one.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use super::super::{Exit, Failure, Global};
use super::One;
use super::render::plain_line;
use crate::run::RunId;
use crate::store::ArtifactRow;

pub(super) fn run(one: One, save: Option<PathBuf>, global: &Global) -> Result<Exit, Failure> {
    let store = global.store()?;
    let (run, artifacts) = global.block_on(async {
        let run = store.find_run(one.id).await?;
        let detail = store.run_detail(run.clone()).await?;
        Ok::<_, Failure>((run, detail.artifacts))
    })??;
    if let Some(dir) = save {
        let from = global.config.state.artifacts();
        for path in copy_all(&from, &run, &artifacts, &dir)? {
            if !one.json {
                super::super::print(&format!("saved {}", path.display()))?;
            }
        }
    }
    if one.json {
        super::super::print_json(&artifacts)?
    } else {
        super::super::print(&text(&artifacts))?
    }
    Ok(Exit::Ok)
}

fn text(artifacts: &[ArtifactRow]) -> String {
    if artifacts.is_empty() {
        return "no artifacts".to_owned();
    }
    let mut table = super::super::table(&["NUMBER", "NAME", "PATH", "BYTES", "DESCRIPTION"]);
    for file in artifacts {
        table.add_row([
            file.number.to_string(),
            plain_line(&file.name),
            plain_line(&file.path),
            file.size.to_string(),
            plain_line(file.description.as_deref().unwrap_or_default()),
        ]);
    }
    table.to_string()
}

fn copy_all(
    from: &Path,
    run: &RunId,
    artifacts: &[ArtifactRow],
    dir: &Path,
) -> Result<Vec<PathBuf>, Failure> {
    let io = |path: &Path, error: io::Error| {
        Failure::new(Exit::Io, format!("cannot save {}: {error}", path.display()))
    };
    let mut taken = HashSet::new();
    let targets: Vec<PathBuf> =
        artifacts.iter().map(|file| dir.join(file_name(file, &mut taken))).collect();
    if let Some(there) = targets.iter().find(|path| path.symlink_metadata().is_ok()) {
        return Err(Failure::new(Exit::Conflict, format!("{} is there already", there.display()))
            .hint("nothing was saved: give another directory"));
    }
    std::fs::create_dir_all(dir).map_err(|error| io(dir, error))?;
    for (file, target) in artifacts.iter().zip(&targets) {
        let (attempt, number) = (file.attempt.to_string(), file.number.to_string());
        let source = from.join(run.as_str()).join(attempt).join(number);
        let mut input = File::open(&source).map_err(|error| io(&source, error))?;
        let made = OpenOptions::new().write(true).create_new(true).open(target);
        made.and_then(|mut output| io::copy(&mut input, &mut output))
            .map_err(|error| io(target, error))?;
    }
    Ok(targets)
}

/// The last part of the name, made safe, and unlike the ones before it.
fn file_name(file: &ArtifactRow, taken: &mut HashSet<String>) -> String {
    let last = file.name.rsplit('/').next().unwrap_or_default();
    let mut name: String = last.chars().map(|c| if c.is_control() { '_' } else { c }).collect();
    if matches!(name.as_str(), "" | "." | "..") || name.len() > 200 {
        name = format!("artifact-{}", file.number);
    }
    while taken.contains(&name) {
        name = format!("{}-{name}", file.number);
    }
    taken.insert(name.clone());
    name
}
