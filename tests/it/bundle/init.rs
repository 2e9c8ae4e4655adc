//! `fleet init`.

use std::path::Path;
use std::process::Command;

use super::cli::{fleet, stderr, stdout};
use crate::env::{fleet_binary, git, source_root};

fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).expect("readable");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn a_new_bundle_is_committed_and_clean() {
    let dir = tempfile::tempdir().expect("a directory");
    let output = fleet(dir.path(), &["init", "demo"]);
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), ""));
    let demo = dir.path().join("demo");
    let output = fleet(dir.path(), &["bundle", "validate", "demo"]);
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    assert!(stdout(&output).starts_with("demo: tasks 3, personas 2: no problems (commit "));
    assert_eq!(git(&demo, &["status", "--short"]), "");
    assert_eq!(
        git(&demo, &["log", "--format=%an <%ae> %s"]),
        "fleet <fleet@localhost> Start the bundle"
    );
    assert!(!names(&demo).contains(&"gitignore".to_owned()));
    assert_eq!(names(dir.path()), ["demo"]);
}

#[test]
fn the_users_own_identity_is_kept() {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(
        dir.path().join(".gitconfig"),
        "[user]\nname = Operator\nemail = operator@example.org\n[commit]\ngpgSign = true\n",
    )
    .expect("written");
    assert_eq!(fleet(dir.path(), &["init", "demo"]).status.code(), Some(0));
    let demo = dir.path().join("demo");
    assert_eq!(git(&demo, &["log", "--format=%an <%ae>"]), "Operator <operator@example.org>");
}

#[test]
fn an_empty_directory_is_filled_and_a_full_one_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let here = dir.path().join("My Bundle");
    std::fs::create_dir(&here).expect("a directory");
    assert_eq!(fleet(&here, &["init"]).status.code(), Some(0));
    assert_eq!(fleet(&here, &["bundle", "validate"]).status.code(), Some(0));
    assert!(names(&here).contains(&"manifest.yaml".to_owned()));

    let before = names(&here);
    let output = fleet(dir.path(), &["init", "My Bundle"]);
    assert_eq!(output.status.code(), Some(3));
    let message = stderr(&output);
    assert!(
        message.contains("is not empty: it holds .git, .gitignore, .schema and 6 more"),
        "{message}"
    );
    assert_eq!((names(&here), names(dir.path())), (before, vec!["My Bundle".to_owned()]));
}

#[test]
fn a_failure_leaves_nothing_behind() {
    let dir = tempfile::tempdir().expect("a directory");
    let output = Command::new(fleet_binary())
        .args(["init", "demo"])
        .current_dir(dir.path())
        .env_clear()
        .env("PATH", "/nonexistent")
        .env("HOME", dir.path())
        .output()
        .expect("fleet starts");
    assert_eq!(output.status.code(), Some(5));
    assert!(stderr(&output).contains("cannot run git"));
    assert_eq!(names(dir.path()), Vec::<String>::new());
}

#[test]
fn the_minimal_example_is_the_scaffold() {
    let dir = tempfile::tempdir().expect("a directory");
    assert_eq!(fleet(dir.path(), &["init", "minimal"]).status.code(), Some(0));
    let made = dir.path().join("minimal");
    let example = source_root().join("examples/minimal");
    for generated in [".git", ".schema"] {
        std::fs::remove_dir_all(made.join(generated)).expect("generated");
    }
    let diff = Command::new("diff").arg("-r").args([&made, &example]).output().expect("diff runs");
    assert_eq!(String::from_utf8_lossy(&diff.stdout), "");
}

#[test]
fn the_printed_commands_can_be_pasted() {
    let dir = tempfile::tempdir().expect("a directory");
    let output = fleet(dir.path(), &["init", "My Bundle"]);
    assert_eq!(
        stdout(&output),
        "made the bundle my-bundle in 'My Bundle' and committed it\n\n\
         git knows no name of yours, so that commit is by fleet; before you commit yourself:\n  \
         git -C 'My Bundle' config user.name 'Your Name'\n  \
         git -C 'My Bundle' config user.email you@example.org\n\n\
         next:\n  fleet bundle validate 'My Bundle'\n  \
         fleet task run hello-report --bundle 'My Bundle'\n"
    );
    let output = fleet(dir.path(), &["init", "--", "-x"]);
    assert!(stdout(&output).contains("fleet bundle validate ./-x\n"), "{}", stdout(&output));
}

#[test]
fn a_place_below_a_file_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("file"), "").expect("written");
    for place in ["file/demo", "file/a/demo"] {
        let output = fleet(dir.path(), &["init", place]);
        let path = dir.path().join("file").display().to_string();
        assert_eq!(
            (output.status.code(), stderr(&output)),
            (
                Some(2),
                format!(
                    "error: {path} is not a directory\n  hint: name a place below a directory\n"
                )
                .as_str()
            )
        );
    }
    let output = fleet(dir.path(), &["init", "none/demo"]);
    assert!(stderr(&output).contains("none does not exist"), "{}", stderr(&output));
}

#[test]
fn a_place_inside_another_repository_is_warned_of() {
    let dir = tempfile::tempdir().expect("a directory");
    git(dir.path(), &["init", "--quiet", "outer"]);
    let outer = dir.path().join("outer");
    let output = fleet(&outer, &["init", "demo"]);
    assert_eq!(output.status.code(), Some(0));
    let root = outer.canonicalize().expect("a path");
    assert_eq!(
        stderr(&output),
        format!(
            "warning: the bundle lies inside the repository {}\n  hint: move it out, or name it in \
             that repository's .gitignore\n",
            root.display()
        )
    );
}
