//! The source and the matrix know the same points, and a release knows none.

use std::collections::BTreeSet;

use super::notices::FAULTS;
use super::points::{OWN_COURSE, ROWS};
use crate::env::source_root;

/// The names in `fault::point("…")` under `src`.
fn points_of_the_source() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![source_root().join("src")];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(&dir).expect("source directory") {
            let path = entry.expect("entry").path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).expect("source is text");
                let names = text.split("fault::point(\"").skip(1);
                found.extend(names.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
            }
        }
    }
    found
}

#[test]
fn every_point_has_a_row_and_every_row_a_point() {
    let rows: BTreeSet<String> = ROWS
        .iter()
        .chain(OWN_COURSE)
        .chain(FAULTS)
        .map(|fault| fault.split(':').next().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(points_of_the_source(), rows);
}
