//! The files by kind, as text; what is wrong with a file as a whole.

use std::collections::{BTreeMap, BTreeSet};

use super::names::check_name;
use super::secrets;
use crate::bundle::Problem;
use crate::bundle::source::{Content, Files, Origin};
use crate::bundle::yaml::{Document, Finding, TOP, read_text};

/// The bundle's texts and the problems so far.
#[derive(Debug)]
pub(super) struct Sources<'f> {
    texts: BTreeMap<&'f str, &'f str>,
    /// Every file that is there, readable or not.
    present: BTreeSet<&'f str>,
    problems: Vec<Problem>,
    origin: Origin,
}

impl<'f> Sources<'f> {
    pub(super) fn new(files: &'f Files) -> Self {
        let mut sources = Sources {
            texts: BTreeMap::new(),
            present: BTreeSet::new(),
            problems: Vec::new(),
            origin: files.origin(),
        };
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
                    .hint(match sources.origin {
                        Origin::Commit => "commit the file itself",
                        Origin::Disk => "put the file itself here",
                    });
                    sources.problems.push(finding.at(file, TOP));
                }
                Content::Unreadable(why) => {
                    let finding =
                        Finding::error("unreadable", format!("this cannot be read: {why}"))
                            .hint("let the user that runs fleet read it");
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
        secrets::scan(file, text, self.origin, &mut self.problems);
        self.texts.insert(file, text);
    }

    /// Where the files are from.
    pub(super) fn origin(&self) -> Origin {
        self.origin
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
        let suggestion = valid_stem(rest).map_or_else(
            || format!("{directory}/ holds <name>.yaml files only"),
            |stem| format!("rename it to {directory}/{stem}.yaml"),
        );
        let finding = Finding::error("stray-file", format!("{file} is not read")).hint(suggestion);
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

/// The valid name that is nearest to a file's that ends in some other writing of `.yaml`.
fn valid_stem(file: &str) -> Option<String> {
    let (stem, ending) = file.rsplit_once('.')?;
    if !["yml", "yaml"].contains(&ending.to_ascii_lowercase().as_str()) || stem.contains('/') {
        return None;
    }
    let name: String = stem
        .to_ascii_lowercase()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' })
        .collect();
    let name = name.trim_matches(['-', '_']).to_owned();
    check_name(&name, "a file name here").is_ok().then_some(name)
}
