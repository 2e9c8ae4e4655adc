//! Damaged files: never a panic, always a place inside the file.

use fleet::bundle::{Revision, load};
use proptest::prelude::*;

use super::{MANIFEST, write};
use crate::env::source_root;

/// The files that are damaged, by their path in the bundle.
const FILES: [&str; 4] =
    ["manifest.yaml", "tasks/stock-count.yaml", "personas/clerk.yaml", "scripted/rehearsal.yaml"];

/// What people and editors leave behind.
fn junk() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "\t", "\n", ":", ": ", "- ", "{", "}", "[", "]", "&a ", "*a", "!x ", "<<: ", "\"", "'",
            "|", ">", "#", "?", "{{", "}}", "{%", "%}", "é", "💥", "0", "null", "yes", "\r\n",
            "---\n", "\u{FEFF}", "\u{0}",
        ])
        .prop_map(ToOwned::to_owned),
        "[ -~]{0,4}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn a_damaged_bundle_is_described(
        file in prop::sample::select(FILES.to_vec()),
        at in 0.0..1.0_f64,
        cut in 0..12_usize,
        junk in junk(),
    ) {
        let source = source_root().join("examples/every-key").join(file);
        let text: Vec<char> = std::fs::read_to_string(source).expect("readable").chars().collect();
        let start = (at * text.len() as f64) as usize;
        let end = (start + cut).min(text.len());
        let damaged: String =
            text[..start].iter().copied().chain(junk.chars()).chain(text[end..].iter().copied()).collect();

        let dir = tempfile::tempdir().expect("a directory");
        write(dir.path(), &[("manifest.yaml", MANIFEST.as_bytes()), (file, damaged.as_bytes())]);
        let loaded = load(dir.path(), &Revision::Worktree).expect("read");
        let lines = damaged.lines().count().max(1) as u32;
        for problem in loaded.problems.iter().filter(|problem| problem.file == file) {
            prop_assert!(problem.line >= 1 && problem.line <= lines + 1, "{problem:?}");
            prop_assert!(problem.column >= 1, "{problem:?}");
            let (start, end) =
                ((problem.line, problem.column), (problem.end_line, problem.end_column));
            prop_assert!(start <= end, "{problem:?}");
        }
    }
}
