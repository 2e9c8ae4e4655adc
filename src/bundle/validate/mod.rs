//! Raw files to a valid bundle, or to every problem of every file, enabled and referenced or not. One
//! mistake is one problem: what follows from a reported mistake is not reported again.

mod completion;
mod file;
mod limits;
mod manifest;
mod models;
mod names;
mod network;
mod notify;
mod output_schema;
mod permissions;
mod persona;
mod policies;
mod range;
mod retry;
mod sandbox;
mod schedule;
mod script;
mod secrets;
mod sla;
mod task;
mod template;
mod workspace;

use std::path::Path as FsPath;

use super::source::Files;
use super::{Bundle, Problem, Severity};
use crate::run::CommitId;

use file::Sources;
pub(super) use secrets::mask_secrets;

/// Validates the files. `root` is the bundle's directory, from which `workspace.repo` is relative.
/// The bundle is there also when only the host lacks something.
pub(super) fn check(files: &Files, root: &FsPath) -> (Option<Bundle>, Vec<Problem>) {
    let mut sources = Sources::new(files);
    let manifest = manifest::check(&mut sources);
    let personas = persona::check(&mut sources, &manifest);
    let scripts = script::check(&mut sources);
    let tasks = task::check(&mut sources, &manifest, &personas, &scripts, root);

    let mut problems = sources.into_problems();
    for problem in &mut problems {
        // Messages repeat what they speak of.
        problem.message = mask_secrets(&problem.message).into_owned();
        problem.hint = problem.hint.take().map(|hint| mask_secrets(&hint).into_owned());
    }
    problems.sort();
    problems.dedup();
    let is_wrong = |problem: &Problem| problem.severity == Severity::Error && !problem.is_of_host();
    if problems.iter().any(is_wrong) {
        return (None, problems);
    }
    let bundle = Bundle {
        commit: files.commit.clone().unwrap_or_else(|| CommitId::new("worktree")),
        name: manifest.name,
        providers: manifest.models.into_providers(),
        pricing: manifest.pricing,
        sandbox: manifest.sandbox,
        channels: manifest.channels.valid,
        personas: personas.valid,
        tasks,
    };
    (Some(bundle), problems)
}
