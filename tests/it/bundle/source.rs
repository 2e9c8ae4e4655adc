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

#[test]
fn a_directory_below_a_repository_is_told_its_root() {
    let dir = tempfile::tempdir().expect("a directory");
    repository(dir.path(), &FILES);
    let error = load(&dir.path().join("tasks"), &Revision::Head).expect_err("is refused");
    let root = dir.path().canonicalize().expect("a path");
    assert!(matches!(&error, LoadError::BelowTheRoot { root: seen, .. } if *seen == root));
    assert!(error.hint().is_some_and(|hint| hint.starts_with("name that root")));
}

#[test]
fn damaged_objects_are_told_as_such() {
    let dir = tempfile::tempdir().expect("a directory");
    repository(dir.path(), &FILES);
    let damage = |object: &str| {
        let id = git(dir.path(), &["rev-parse", object]);
        let path = dir.path().join(".git/objects").join(&id[..2]).join(&id[2..]);
        std::fs::remove_file(&path).expect("a loose object");
        load(dir.path(), &Revision::Head).expect_err("is refused")
    };
    for object in ["HEAD:tasks/t.yaml", "HEAD"] {
        let error = damage(object);
        assert!(matches!(error, LoadError::Git { .. }), "{object}: {error}");
        assert!(error.to_string().ends_with("git's data is missing or damaged"), "{error}");
        assert!(error.hint().is_some_and(|hint| hint.starts_with("git fsck")));
    }
}

#[cfg(unix)]
#[test]
fn a_file_that_cannot_be_read_is_one_problem_among_the_others() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().expect("a directory");
    write(
        dir.path(),
        &[
            ("manifest.yaml", MANIFEST.as_bytes()),
            ("tasks/a.yaml", b"prompt: x\n"),
            ("tasks/b.yaml", b"prmpt: x\n"),
            ("scripted/b.yaml", SCRIPT.as_bytes()),
            ("system_prompts/x.md", b"x"),
        ],
    );
    let forbid = |path: &str, mode: u32| {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(dir.path().join(path), permissions).expect("set");
    };
    forbid("tasks/a.yaml", 0o000);
    forbid("system_prompts", 0o000);
    let loaded = load(dir.path(), &Revision::Worktree).expect("the rest is read");
    forbid("system_prompts", 0o700);
    assert_eq!(
        lines(&loaded.problems),
        [
            "system_prompts:1:1 unreadable: this cannot be read: Permission denied (os error 13)",
            "tasks/a.yaml:1:1 unreadable: this cannot be read: Permission denied (os error 13)",
            "tasks/b.yaml:1:1 unknown-key: unknown key \"prmpt\"",
        ]
    );
    forbid("", 0o000);
    let error = load(dir.path(), &Revision::Worktree).expect_err("is refused");
    let of_head = load(dir.path(), &Revision::Head).expect_err("is refused");
    forbid("", 0o700);
    for error in [error, of_head] {
        assert!(matches!(error, LoadError::Io { .. }), "{error}");
        assert_eq!(error.hint(), Some("let the user that runs fleet read it"));
    }
}

#[test]
fn hints_speak_of_commits_only_where_a_commit_is_read() {
    let dir = tempfile::tempdir().expect("a directory");
    let secret = format!("# sk-{}\n", "a1B2".repeat(10));
    repository(dir.path(), &[("personas/p.yaml", &format!("{secret}instructions: x\n"))]);
    let hints = |revision: &Revision| -> Vec<String> {
        let problems = load(dir.path(), revision).expect("read").problems;
        problems.into_iter().filter_map(|problem| problem.hint).collect()
    };
    assert_eq!(
        hints(&Revision::Head),
        [
            "fleet init makes a bundle to start from; uncommitted files are not read",
            "keep it in an environment variable, name the variable here, and revoke the key: it is in \
             the history",
        ]
    );
    assert_eq!(
        hints(&Revision::Worktree),
        [
            "fleet init makes a bundle to start from",
            "keep it in an environment variable, and name the variable here",
        ]
    );
}
