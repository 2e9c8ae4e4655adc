//! What is read: one commit's objects, and nothing that is configured in the repository.

use fleet::bundle::{LoadError, Revision, head_commit, load, load_commit};

use super::{MANIFEST, SCRIPT, lines, write};
use crate::env::{commit_files, git, repository};

fn prompt_of(loaded: fleet::bundle::Loaded) -> String {
    assert_eq!(lines(&loaded.problems), [""; 0]);
    loaded.bundle.expect("a bundle").tasks.values().next().expect("a task").prompt.clone()
}

const FILES: [(&str, &str); 3] =
    [("manifest.yaml", MANIFEST), ("tasks/t.yaml", "prompt: first\n"), ("scripted/t.yaml", SCRIPT)];

#[test]
fn a_commit_is_read_and_not_the_files_on_disk() {
    let dir = tempfile::tempdir().expect("a directory");
    repository(dir.path(), &FILES);
    let first = head_commit(dir.path()).expect("a commit");
    commit_files(dir.path(), &[("tasks/t.yaml", "prompt: second\n")], "second");
    write(dir.path(), &[("tasks/t.yaml", b"prompt: third\n")]);

    let read = |revision: Revision| prompt_of(load(dir.path(), &revision).expect("read"));
    assert_eq!(read(Revision::Head), "second");
    assert_eq!(read(Revision::Worktree), "third");
    assert_eq!(read(Revision::Named("HEAD~1".into())), "first");
    assert_eq!(prompt_of(load_commit(dir.path(), &first).expect("read")), "first");
}

#[test]
fn what_is_no_bundle_repository_says_the_way_out() {
    let dir = tempfile::tempdir().expect("a directory");
    let refusal = |revision: &Revision| load(dir.path(), revision).expect_err("is refused");
    let error = refusal(&Revision::Head);
    assert!(matches!(error, LoadError::NotARepository { .. }));
    assert!(error.hint().is_some_and(|hint| hint.starts_with("make the bundle's directory")));

    git(dir.path(), &["init", "--quiet"]);
    let error = refusal(&Revision::Head);
    assert!(matches!(error, LoadError::NoCommits { .. }));
    assert_eq!(error.hint(), Some("commit your bundle first: git add -A && git commit"));

    commit_files(dir.path(), &FILES, "first");
    let error = refusal(&Revision::Named("nowhere".into()));
    assert!(matches!(error, LoadError::UnknownRevision { revision, .. } if revision == "nowhere"));
}

#[test]
fn nothing_configured_in_the_repository_runs_while_it_is_read() {
    let dir = tempfile::tempdir().expect("a directory");
    repository(dir.path(), &FILES);
    let marker = dir.path().join("ran");
    let script = format!("sh -c 'touch {}; cat'", marker.display());
    commit_files(dir.path(), &[(".gitattributes", "*.yaml filter=evil\n")], "attributes");
    for key in ["core.fsmonitor", "filter.evil.smudge", "filter.evil.clean", "core.sshCommand"] {
        git(dir.path(), &["config", key, &script]);
    }
    assert_eq!(prompt_of(load(dir.path(), &Revision::Head).expect("read")), "first");
    assert!(!marker.exists());
}

#[cfg(unix)]
#[test]
fn links_are_not_followed() {
    let dir = tempfile::tempdir().expect("a directory");
    repository(dir.path(), &FILES);
    std::os::unix::fs::symlink("/etc/passwd", dir.path().join("tasks/u.yaml")).expect("a link");
    commit_files(dir.path(), &[], "link");
    for revision in [Revision::Head, Revision::Worktree] {
        let loaded = load(dir.path(), &revision).expect("read");
        assert_eq!(
            lines(&loaded.problems),
            ["tasks/u.yaml:1:1 not-a-file: this is a symbolic link, which is not followed"]
        );
    }
}
