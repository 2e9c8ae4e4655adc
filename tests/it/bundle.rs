//! Behaviour of `bundle`: what is read, what is found wrong, and when a new commit is noticed.

mod bounds;
mod cli;
mod examples;
mod init;
mod mutation;
mod network;
mod notify;
mod permissions;
mod policies;
mod prompt;
mod providers;
mod schedule;
mod source;
mod validate;
mod watch;
mod yaml;

use std::path::Path;

use fleet::bundle::{Loaded, Problem, Revision, Severity, load};

/// A manifest with one scripted provider.
const MANIFEST: &str = "version: 1\nname: test\nproviders: [{name: scripted, type: scripted}]\n\
                        defaults: {model: scripted/session}\n";

/// The code of the warning about a task without a completion check.
const NO_COMPLETION: &str = "no-completion";

/// A session of one turn.
const SCRIPT: &str = "turns: [{text: done}]\n";

/// Writes files below `dir`.
fn write(dir: &Path, files: &[(&str, &[u8])]) {
    for (path, bytes) in files {
        let path = dir.join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("parents");
        std::fs::write(path, bytes).expect("the file is written");
    }
}

/// Validates one task beside a plain manifest and its session.
fn check_task(task: &str) -> Vec<String> {
    check(&[("tasks/t.yaml", task), ("scripted/t.yaml", SCRIPT)])
}

/// Validates files beside a plain manifest, unless they hold one.
fn check(files: &[(&str, &str)]) -> Vec<String> {
    let bytes: Vec<(&str, &[u8])> =
        files.iter().map(|(path, text)| (*path, text.as_bytes())).collect();
    lines(&load_files(&bytes).problems)
}

fn load_files(files: &[(&str, &[u8])]) -> Loaded {
    let dir = tempfile::tempdir().expect("a directory");
    write(dir.path(), &[("manifest.yaml", MANIFEST.as_bytes())]);
    write(dir.path(), files);
    load(dir.path(), &Revision::Worktree).expect("the files are read")
}

/// `file:line:column code message`, with `?` before the code of a warning. Most tasks of these tests
/// have no completion check; the warning about it has a test of its own.
fn lines(problems: &[Problem]) -> Vec<String> {
    let line = |problem: &Problem| {
        let Problem { file, line, column, code, message, severity, .. } = problem;
        let mark = if *severity == Severity::Warning { "?" } else { "" };
        format!("{file}:{line}:{column} {mark}{code}: {message}")
    };
    problems.iter().filter(|problem| problem.code != NO_COMPLETION).map(line).collect()
}

/// The hints, where there are any.
fn hints(files: &[(&str, &str)]) -> Vec<Option<String>> {
    let bytes: Vec<(&str, &[u8])> =
        files.iter().map(|(path, text)| (*path, text.as_bytes())).collect();
    let problems = load_files(&bytes).problems.into_iter();
    problems.filter(|problem| problem.code != NO_COMPLETION).map(|problem| problem.hint).collect()
}
