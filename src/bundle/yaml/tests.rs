//! The reader against a second YAML implementation, and the index against what it indexes.

use std::path::{Path as FsPath, PathBuf};

use serde_json::Value;

use super::index::Index;
use super::parse::{Leniency, parse};

fn yaml_files(dir: &FsPath, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).expect("readable") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            yaml_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            found.push(path);
        }
    }
}

#[test]
fn every_accepted_file_decodes_alike_in_a_second_implementation() {
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let mut files = Vec::new();
    for directory in ["examples", "templates/init", "tests/fixtures/bundles"] {
        yaml_files(&root.join(directory), &mut files);
    }
    let mut compared = 0;
    for file in files {
        let text = std::fs::read_to_string(&file).expect("readable");
        let Ok(ours) = parse(&text, Leniency::Strict) else { continue };
        let theirs: Value = serde_yaml::from_str(&text).expect("accepted by both");
        assert_eq!(ours, theirs, "{}", file.display());
        compared += 1;
    }
    assert!(compared > 20, "{compared} files");
}

#[test]
fn tricky_scalars_decode_alike() {
    let text = "[no, on, y, 0755, 1_000, 1:30, 0o17, 0x1F, 1e3, .5, -0, ~, null, '', 2026-12-01, \
                true, True, \"\\u00e9\", +1, 0.10, 007.5]";
    let ours = parse(text, Leniency::Strict).expect("accepted");
    let theirs: Value = serde_yaml::from_str(text).expect("accepted");
    assert_eq!(ours, theirs);
}

#[test]
fn every_value_has_a_place() {
    let text = "a: 1\nb:\n  - c: {d: [x, y]}\n  - |\n    text\n? [k]\n: v\n";
    let index = Index::build(text).expect("YAML");
    let mut paths: Vec<String> = index.paths().into_iter().collect();
    paths.sort();
    assert_eq!(
        paths,
        ["", "a", "b", "b[0]", "b[0].c", "b[0].c.d", "b[0].c.d[0]", "b[0].c.d[1]", "b[1]"]
    );
}

#[test]
fn alias_bombs_and_deep_nesting_are_refused() {
    let mut bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for level in 1..9 {
        let list = vec![format!("*a{}", level - 1); 10].join(",");
        bomb.push_str(&format!("a{level}: &a{level} [{list}]\n"));
    }
    assert!(parse(&bomb, Leniency::Strict).is_err());
    assert!(parse(&"[".repeat(100_000), Leniency::Strict).is_err());
}
