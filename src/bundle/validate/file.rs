//! The files by kind, as text; what is wrong with a file as a whole.

use std::collections::{BTreeMap, BTreeSet};

use super::names::check_name;
use super::secrets;
use crate::bundle::Problem;
use crate::bundle::source::{Content, Files};
use crate::bundle::yaml::{Document, Finding, TOP, read_text};

/// The bundle's texts and the problems so far.
#[derive(Debug)]
pub(super) struct Sources<'f> {
    texts: BTreeMap<&'f str, &'f str>,
    /// Every file that is there, readable or not.
    present: BTreeSet<&'f str>,
    problems: Vec<Problem>,
}

impl<'f> Sources<'f> {
    pub(super) fn new(files: &'f Files) -> Self {
        let mut sources =
            Sources { texts: BTreeMap::new(), present: BTreeSet::new(), problems: Vec::new() };
        for (file, content) in &files.files {
            sources.present.insert(file);
            match content {
                Content::Bytes(bytes) => match read_text(file, bytes) {
                    Ok(text) => sources.add_text(file, text),
                    Err(problem) => sources.problems.push(problem),
                },
                Content::NotAFile(kind) => {
                    let finding = Finding::error(
                        "not-a-file",
                        format!("this is {kind}, which is not followed"),
                    )
                    .hint("commit the file itself");
                    sources.problems.push(finding.at(file, TOP));
                }
                Content::TooLarge(size) => {
                    let finding = Finding::error(
                        "too-large",
                        format!("the file has {size} bytes; a bundle's files have at most 1 MiB"),
                    );
                    sources.problems.push(finding.at(file, TOP));
                }
            }
        }
        sources
    }

    fn add_text(&mut self, file: &'f str, text: &'f str) {
        secrets::scan(file, text, &mut self.problems);
        self.texts.insert(file, text);
    }

    /// The text of a file, if it is there and readable.
    pub(super) fn text(&self, file: &str) -> Option<&'f str> {
        self.texts.get(file).copied()
    }

    /// Whether a file is there, readable or not.
    pub(super) fn is_present(&self, file: &str) -> bool {
        self.present.contains(file)
    }

    /// The files below a directory, without it.
    pub(super) fn below(&self, directory: &str) -> Vec<&'f str> {
        self.present.iter().filter_map(|file| file.strip_prefix(directory)).collect()
    }

    /// The names of a directory's YAML files, with their text where it is readable. Reports files that
    /// would never be read, and names that are not valid.
    pub(super) fn named(&mut self, directory: &str) -> Vec<(String, &'f str, Option<&'f str>)> {
        let mut named = Vec::new();
        let prefix = format!("{directory}/");
        for file in self.present.clone() {
            let Some(rest) = file.strip_prefix(&prefix) else { continue };
            match rest.strip_suffix(".yaml").filter(|name| !name.contains('/')) {
                Some(name) => {
                    if let Err(finding) = check_name(name, "a file name here") {
                        self.problems.push(finding.at(file, TOP));
                    } else {
                        named.push((name.to_owned(), file, self.text(file)));
                    }
                }
                None => self.report_stray(directory, file, rest),
            }
        }
        named
    }

    fn report_stray(&mut self, directory: &str, file: &str, rest: &str) {
        let base = rest.rsplit('/').next().unwrap_or(rest);
        if base.starts_with('.') || base.eq_ignore_ascii_case("readme.md") {
            return;
        }
        let finding = Finding::error("stray-file", format!("{file} is not read"));
        let finding = match rest.strip_suffix(".yml") {
            Some(stem) => finding.hint(format!("rename it to {directory}/{stem}.yaml")),
            None => finding.hint(format!("{directory}/ holds <name>.yaml files only")),
        };
        self.problems.push(finding.at(file, TOP));
    }

    /// Reports at the top of a file, which may be absent.
    pub(super) fn report(&mut self, file: &str, finding: Finding) {
        self.problems.push(finding.at(file, TOP));
    }

    /// Takes over what a document found.
    pub(super) fn finish(&mut self, document: Document<'_>) {
        self.problems.extend(document.into_problems());
    }

    pub(super) fn into_problems(self) -> Vec<Problem> {
        self.problems
    }
}
