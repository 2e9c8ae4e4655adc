//! Examples, schemas and the documentation agree with what is read.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fleet::bundle::{Revision, SchemaKind, load};
use serde_json::Value;

use super::{lines, write};
use crate::env::{git, source_root};

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("readable")
}

fn yaml_files(root: &Path, kind: SchemaKind) -> Vec<PathBuf> {
    let directory = match kind {
        SchemaKind::Manifest => return vec![root.join("manifest.yaml")],
        SchemaKind::Persona => "personas",
        SchemaKind::Task => "tasks",
        SchemaKind::Script => "scripted",
    };
    // A bundle need not have each of the directories.
    let Ok(entries) = std::fs::read_dir(root.join(directory)) else { return Vec::new() };
    entries.map(|entry| entry.expect("an entry").path()).collect()
}

fn schema(kind: SchemaKind) -> Value {
    serde_json::from_str(&kind.text()).expect("JSON")
}

#[test]
fn committed_schemas_are_those_of_the_types() {
    for kind in SchemaKind::ALL {
        let committed = read(&source_root().join("bundle-schema").join(kind.file_name()));
        assert_eq!(committed, kind.text(), "renew it: fleet bundle schema --out bundle-schema");
        assert!(jsonschema::meta::is_valid(&schema(kind)), "{kind:?}");
    }
}

/// The names of the directories in `examples/`.
fn examples() -> Vec<String> {
    let all = std::fs::read_dir(source_root().join("examples")).expect("the examples");
    let dirs = all.flatten().filter(|entry| entry.path().is_dir());
    let names: Vec<String> = dirs.map(|dir| dir.file_name().display().to_string()).collect();
    assert!(names.len() > 5, "{names:?}");
    names
}

#[test]
fn examples_are_valid_by_their_schemas() {
    for example in examples() {
        let root = source_root().join("examples").join(&example);
        for kind in SchemaKind::ALL {
            let validator = jsonschema::validator_for(&schema(kind)).expect("a schema");
            for file in yaml_files(&root, kind) {
                let value: Value = serde_yaml::from_str(&read(&file)).expect("YAML");
                let errors: Vec<String> =
                    validator.iter_errors(&value).map(|error| error.to_string()).collect();
                assert_eq!(errors, Vec::<String>::new(), "{}", file.display());
            }
        }
    }
}

#[test]
fn schemas_refuse_unknown_keys_nulls_and_wrong_types() {
    let validator = jsonschema::validator_for(&schema(SchemaKind::Task)).expect("a schema");
    for text in
        ["prompt: x\nprmpt: y", "prompt: x\nschedule:", "prompt: x\nenabled: yes", "tags: []"]
    {
        let value: Value = serde_yaml::from_str(text).expect("YAML");
        assert!(!validator.is_valid(&value), "{text}");
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a directory");
    for entry in std::fs::read_dir(from).expect("readable") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).expect("copied");
        }
    }
}

#[test]
fn examples_are_valid_bundles() {
    let dir = tempfile::tempdir().expect("a directory");
    git(dir.path(), &["init", "--quiet", "shop"]);
    for example in examples() {
        let bundle = dir.path().join(&example);
        copy(&source_root().join("examples").join(&example), &bundle);
        let loaded = load(&bundle, &Revision::Worktree).expect("read");
        assert_eq!(lines(&loaded.problems), [""; 0], "{example}");
        assert!(loaded.bundle.is_some());
    }
}

/// Every property name of a schema, at any depth.
fn keys(schema: &Value, found: &mut BTreeSet<String>) {
    match schema {
        Value::Object(map) => {
            if let Some(Value::Object(properties)) = map.get("properties") {
                found.extend(properties.keys().cloned());
            }
            map.values().for_each(|value| keys(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| keys(value, found)),
        _ => {}
    }
}

#[test]
fn the_example_and_the_documentation_have_every_key() {
    let documentation = read(&source_root().join("docs/bundle.md"));
    let root = source_root().join("examples/every-key");
    for kind in SchemaKind::ALL {
        let example: String = yaml_files(&root, kind).iter().map(|file| read(file)).collect();
        let mut names = BTreeSet::new();
        keys(&schema(kind), &mut names);
        for name in names {
            assert!(example.contains(&format!("{name}:")), "{kind:?} {name}: example");
            assert!(documentation.contains(&format!("`{name}`")), "{kind:?} {name}: documentation");
        }
    }
}

#[test]
fn yaml_of_the_documentation_is_one_valid_bundle() {
    let documentation = read(&source_root().join("docs/bundle.md"));
    let dir = tempfile::tempdir().expect("a directory");
    git(dir.path(), &["init", "--quiet", "shop"]);
    let bundle = dir.path().join("bundle");
    let mut paths = BTreeSet::new();
    for block in documentation.split("```yaml\n").skip(1) {
        let text = block.split("```").next().expect("a block");
        let path = text.lines().next().and_then(|line| line.strip_prefix("# ")).expect("a path");
        assert!(paths.insert(path.to_owned()), "{path} occurs twice");
        write(&bundle, &[(path, text.as_bytes())]);
    }
    write(&bundle, &[("system_prompts/unattended.md", b"You work unattended.\n")]);
    let loaded = load(&bundle, &Revision::Worktree).expect("read");
    assert_eq!(lines(&loaded.problems), [""; 0]);
    assert!(paths.len() >= 5);
}
