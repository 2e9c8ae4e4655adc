//! One YAML file while it is checked: its value, the places of its parts, and what was found wrong.

use std::cell::{OnceCell, RefCell};

use serde::Deserialize;
use serde_json::Value;
use serde_saphyr::granit_parser::ScalarStyle;

use super::decode::Reader;
use super::index::{Index, Spot};
use super::parse::{Leniency, parse};
use super::path::{Path, Step};
use super::report;
use crate::bundle::{Position, Problem, Severity};

/// A stretch of a file; the end is exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: Position,
    pub(crate) end: Position,
}

impl Span {
    fn is_one_line(&self) -> bool {
        self.start.line == self.end.line
    }
}

/// Where a scalar stands and how it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScalarPlace {
    /// On one line, from this place on; quoted or plain.
    Inline(Position),
    /// Over several lines from this place on, the same but for spaces and line ends.
    Flowing(Position),
    /// With escapes over several lines: only its beginning is known.
    Unknown,
}

/// A problem's severity, code, message and hint: all but the place.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) severity: Severity,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Finding {
    /// An error without a way out.
    pub(crate) fn error(code: &'static str, message: impl Into<String>) -> Self {
        Finding { severity: Severity::Error, code, message: message.into(), hint: None }
    }

    /// A warning without a way out.
    pub(crate) fn warning(code: &'static str, message: impl Into<String>) -> Self {
        Finding { severity: Severity::Warning, ..Finding::error(code, message) }
    }

    /// Adds the way out.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the way out, where there is one.
    pub(crate) fn maybe_hint(mut self, hint: Option<String>) -> Self {
        self.hint = hint;
        self
    }

    /// The problem at a place.
    pub(crate) fn at(self, file: &str, span: Span) -> Problem {
        Problem {
            file: file.to_owned(),
            line: span.start.line,
            column: span.start.column,
            end_line: span.end.line,
            end_column: span.end.column,
            code: self.code,
            severity: self.severity,
            message: self.message,
            hint: self.hint,
        }
    }
}

/// A file under examination.
#[derive(Debug)]
pub(crate) struct Document<'a> {
    file: &'a str,
    text: &'a str,
    value: Value,
    index: OnceCell<Option<Index>>,
    /// What was reported and cut out, or is missing because of a reported misspelling.
    broken: Vec<Path>,
    /// List entries that were cut out, by their original number.
    holes: Vec<(Path, usize)>,
    problems: RefCell<Vec<Problem>>,
}

/// More than this in one file is noise.
const MAX_PROBLEMS: usize = 200;

impl<'a> Document<'a> {
    /// Reads a file; what cannot be read is among the problems, and the root is then broken.
    pub(crate) fn parse(file: &'a str, text: &'a str) -> Self {
        let mut document = Document {
            file,
            text,
            value: Value::Null,
            index: OnceCell::new(),
            broken: Vec::new(),
            holes: Vec::new(),
            problems: RefCell::default(),
        };
        match parse(text, Leniency::Strict) {
            Ok(value) => {
                document.value = value;
                document.refuse_tags();
            }
            // Nothing else is worth saying about it, and finding places costs as much again.
            Err(error) if report::is_too_large(&error) => {
                let (finding, span) = report::refusal(&error, text);
                document.give_up(finding, span);
            }
            Err(error) => document.recover(error),
        }
        document
    }

    /// The strict reading obeys YAML's own tags, such as `!!str`.
    fn refuse_tags(&mut self) {
        if !self.text.contains('!') {
            return;
        }
        for (finding, span) in self.index().map(report::tags).unwrap_or_default() {
            self.add(finding, span);
        }
    }

    /// Reports why the strict reading failed, all of it, and reads what is left.
    fn recover(&mut self, error: serde_saphyr::Error) {
        let index = match Index::build(self.text) {
            Ok(index) => index,
            Err(scan) => {
                let (finding, span) = report::unreadable(&scan, self.text);
                return self.give_up(finding, span);
            }
        };
        for (finding, span) in report::refused(&index) {
            self.add(finding, span);
        }
        self.index.set(Some(index)).expect("the index is not built yet");
        let left = if self.problems.borrow().is_empty() {
            Err(error)
        } else {
            parse(self.text, Leniency::ReportedAlready)
        };
        match left {
            Ok(mut value) => {
                drop_merge_keys(&mut value);
                self.value = value;
            }
            Err(error) => {
                let (finding, span) = report::refusal(&error, self.text);
                self.give_up(finding, span);
            }
        }
    }

    fn give_up(&mut self, finding: Finding, span: Span) {
        self.add(finding, span);
        self.broken.push(Path::root());
    }

    /// The typed form. Every unknown key and wrong value is reported and left out; `None` when nothing
    /// is left.
    pub(crate) fn decode<T: for<'de> Deserialize<'de>>(&mut self) -> Option<T> {
        if self.is_broken(&Path::root()) {
            return None;
        }
        for _ in 0..MAX_PROBLEMS {
            let mismatch = match T::deserialize(Reader(&self.value)) {
                Ok(decoded) => return Some(decoded),
                Err(mismatch) => mismatch,
            };
            let path = mismatch.path();
            let original = self.original(&path);
            let decoded = report::mismatch(mismatch, &original);
            let span =
                if decoded.at_key { self.key_span(&original) } else { self.value_span(&original) };
            self.add(decoded.finding, span);
            self.broken.extend(decoded.meant);
            self.cut(&path, original);
            if path == Path::root() {
                return None;
            }
        }
        None
    }

    fn cut(&mut self, path: &Path, original: Path) {
        let parent = path.parent().and_then(|parent| find(&mut self.value, &parent));
        match (parent, path.0.last()) {
            (Some(Value::Object(map)), Some(Step::Key(key))) => {
                map.shift_remove(key);
            }
            (Some(Value::Array(items)), Some(Step::Index(index))) => {
                items.remove(*index);
                if let (Some(list), Some(Step::Index(number))) =
                    (original.parent(), original.0.last())
                {
                    self.holes.push((list, *number));
                    self.holes.sort_by_key(|(_, number)| *number);
                }
            }
            _ => {}
        }
        self.broken.push(original);
    }

    /// A path as it is in the file: list entries that were cut out count again.
    fn original(&self, path: &Path) -> Path {
        let mut original = Path::root();
        for step in &path.0 {
            let step = match step {
                Step::Key(key) => Step::Key(key.clone()),
                Step::Index(index) => {
                    let mut number = *index;
                    for (_, hole) in self.holes.iter().filter(|(list, _)| *list == original) {
                        number += usize::from(*hole <= number);
                    }
                    Step::Index(number)
                }
            };
            original = original.join(step);
        }
        original
    }

    /// Whether the value at `path` was reported already.
    pub(crate) fn is_broken(&self, path: &Path) -> bool {
        self.broken.contains(&self.original(path))
    }

    /// Whether something below `path` was reported and cut out.
    pub(crate) fn is_cut(&self, path: &Path) -> bool {
        let original = self.original(path);
        self.broken.iter().any(|broken| broken.0.starts_with(&original.0))
    }

    /// Reports on a value.
    pub(crate) fn report(&self, path: &Path, finding: Finding) {
        self.add(finding, self.value_span(&self.original(path)));
    }

    /// Reports on a key.
    pub(crate) fn report_key(&self, path: &Path, finding: Finding) {
        self.add(finding, self.key_span(&self.original(path)));
    }

    /// A value's place; its key's where it goes over several lines.
    fn value_span(&self, original: &Path) -> Span {
        match self.spot(original) {
            Some(Spot { key: Some(key), value, .. }) if !value.is_one_line() => key,
            Some(Spot { value, .. }) => first_line(value),
            None => TOP,
        }
    }

    fn key_span(&self, original: &Path) -> Span {
        self.spot(original).map_or(TOP, |spot| spot.key.unwrap_or_else(|| first_line(spot.value)))
    }

    /// Reports at a place of this file.
    pub(crate) fn add(&self, finding: Finding, span: Span) {
        let mut problems = self.problems.borrow_mut();
        match problems.len() {
            MAX_PROBLEMS => {
                let message = format!("only {MAX_PROBLEMS} problems of this file are listed");
                let finding = Finding::error("too-many-problems", message);
                problems.push(finding.hint("mend these first").at(self.file, TOP));
            }
            found if found < MAX_PROBLEMS => problems.push(finding.at(self.file, span)),
            _ => {}
        }
    }

    /// Reports that a key is missing, unless it or the mapping is broken already.
    pub(crate) fn report_missing(&self, parent: &Path, key: &str, hint: &str) {
        let original = self.original(parent).key(key);
        if self.broken.contains(&original) {
            return;
        }
        let within = parent.text();
        let within = if within.is_empty() { String::new() } else { format!(" in {within}") };
        let finding =
            Finding::error("missing-key", format!("{key:?} is missing{within}")).hint(hint);
        self.report(parent, finding);
    }

    /// How a scalar is written; `None` when it has no place of its own.
    pub(crate) fn scalar_place(&self, path: &Path) -> Option<ScalarPlace> {
        let spot = self.index()?.spots.get(&self.original(path)).copied()?;
        Some(match spot.style? {
            ScalarStyle::Literal | ScalarStyle::Folded => {
                let header = spot.key.map_or(spot.value.start.line, |key| key.start.line);
                ScalarPlace::Flowing(Position { line: header + 1, column: 1 })
            }
            ScalarStyle::Plain if spot.value.is_one_line() => ScalarPlace::Inline(spot.value.start),
            ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted if spot.value.is_one_line() => {
                let start = spot.value.start;
                ScalarPlace::Inline(Position { column: start.column + 1, ..start })
            }
            ScalarStyle::Plain => ScalarPlace::Flowing(spot.value.start),
            _ => ScalarPlace::Unknown,
        })
    }

    /// The file's text.
    pub(crate) fn text(&self) -> &'a str {
        self.text
    }

    /// What was found wrong so far.
    pub(crate) fn into_problems(self) -> Vec<Problem> {
        self.problems.into_inner()
    }

    /// The place of a path as it is in the file, or of what is around it.
    fn spot(&self, original: &Path) -> Option<Spot> {
        self.index()?.nearest(original).copied()
    }

    fn index(&self) -> Option<&Index> {
        self.index.get_or_init(|| Index::build(self.text).ok()).as_ref()
    }
}

/// The first line of a file.
pub(crate) const TOP: Span =
    Span { start: Position { line: 1, column: 1 }, end: Position { line: 1, column: 1 } };

fn first_line(span: Span) -> Span {
    if span.is_one_line() { span } else { Span { start: span.start, end: span.start } }
}

fn find<'v>(value: &'v mut Value, path: &Path) -> Option<&'v mut Value> {
    path.0.iter().try_fold(value, |value, step| match step {
        Step::Key(key) => value.get_mut(key),
        Step::Index(index) => value.get_mut(*index),
    })
}

fn drop_merge_keys(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.shift_remove("<<");
            map.values_mut().for_each(drop_merge_keys);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_merge_keys),
        _ => {}
    }
}
