#![allow(dead_code)] // Each group of tests uses a part of it.
//! The test environment: the built binary, scratch directories, git repositories, a shared image.

pub mod again;
pub mod fake_host;
pub mod leftovers;
pub mod mail_server;
pub mod model_server;
pub mod outside;
pub mod pretend;
pub mod receiver;
pub mod sandbox;
pub mod sandbox_double;
pub mod simulation;
pub mod world;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The `fleet` binary under test.
pub fn fleet_binary() -> PathBuf {
    std::env::var_os("NEXTEST_BIN_EXE_fleet")
        .or_else(|| std::env::var_os("CARGO_BIN_EXE_fleet"))
        .map(PathBuf::from)
        .expect("run under cargo-nextest, which tells where the binary is")
}

/// The root of the source tree, for fixtures and examples.
pub fn source_root() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).expect("cargo tells the source root")
}

/// A git command in `dir` with a fixed identity and no user configuration; panics when it fails.
pub fn git(dir: &Path, args: &[&str]) -> String {
    let output = git_output(dir, args);
    assert!(
        output.status.success(),
        "git {args:?} failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("git speaks UTF-8").trim_end().to_owned()
}

/// Like [`git`], but hands back a failure.
pub fn git_output(dir: &Path, args: &[&str]) -> Output {
    Command::new("git")
        .args(args)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_NAME", "Test")
        .env("GIT_AUTHOR_EMAIL", "test@example.invalid")
        .env("GIT_COMMITTER_NAME", "Test")
        .env("GIT_COMMITTER_EMAIL", "test@example.invalid")
        .output()
        .expect("git starts")
}

/// A new repository at `dir` with one commit that holds `files`.
pub fn repository(dir: &Path, files: &[(&str, &str)]) {
    std::fs::create_dir_all(dir).expect("directory is made");
    git(dir, &["init", "--quiet", "--initial-branch=main"]);
    commit_files(dir, files, "start");
}

/// Writes `files` and commits them.
pub fn commit_files(dir: &Path, files: &[(&str, &str)], message: &str) {
    for (path, text) in files {
        let path = dir.join(path);
        std::fs::create_dir_all(path.parent().expect("file has a parent")).expect("parents");
        std::fs::write(path, text).expect("file is written");
    }
    git(dir, &["add", "--all"]);
    git(dir, &["commit", "--quiet", "--allow-empty", "-m", message]);
}
