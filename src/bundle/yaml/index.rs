//! One pass over the parser's events: where each key and value stands, and which keys repeat. Made
//! only for files that have something to report.

use std::collections::HashMap;

use serde_saphyr::granit_parser::{Event, Parser, ScalarStyle, ScanError, Span as RawSpan};

use super::document::Span;
use super::path::{Path, Step};
use crate::bundle::Position;

/// Where a key and its value stand.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    pub(super) key: Option<Span>,
    pub(super) value: Span,
    pub(super) style: Option<ScalarStyle>,
}

/// A key that was seen before in its mapping.
#[derive(Debug)]
pub(super) struct Duplicate {
    pub(super) key: String,
    pub(super) first: Span,
    pub(super) again: Span,
}

/// Every place of one file.
#[derive(Debug, Default)]
pub(super) struct Index {
    pub(super) spots: HashMap<Path, Spot>,
    pub(super) duplicates: Vec<Duplicate>,
    /// `<<` keys.
    pub(super) merge_keys: Vec<Span>,
    /// Explicit tags, as written.
    pub(super) tags: Vec<(String, Span)>,
}

enum Frame {
    /// The next node is a key, unless one waits for its value.
    Map {
        path: Path,
        seen: HashMap<String, Span>,
        key: Option<(String, Span)>,
    },
    List {
        path: Path,
        next: usize,
    },
    /// Below a key that is itself a collection: nothing can name what is in there.
    Unnamed,
}

impl Index {
    /// Indexes a file, or says where it stops being YAML.
    pub(super) fn build(text: &str) -> Result<Self, ScanError> {
        let mut index = Index::default();
        let mut stack: Vec<Frame> = Vec::new();
        let mut parser = Parser::new_from_str(text);
        while let Some(event) = parser.next_event() {
            let (event, raw) = event?;
            let span = span(&raw);
            if let Some(tag) = event.tag() {
                index.tags.push((tag.original(), span));
            }
            match event {
                Event::Scalar(value, style, ..) => {
                    index.node(&mut stack, span, Some((&value, style)));
                }
                Event::Alias(_) | Event::UnresolvedAlias(_) => {
                    index.node(&mut stack, span, None);
                }
                Event::MappingStart(..) => {
                    let path = index.node(&mut stack, span, None);
                    stack.push(path.map_or(Frame::Unnamed, |path| Frame::Map {
                        path,
                        seen: HashMap::new(),
                        key: None,
                    }));
                }
                Event::SequenceStart(..) => {
                    let path = index.node(&mut stack, span, None);
                    stack.push(path.map_or(Frame::Unnamed, |path| Frame::List { path, next: 0 }));
                }
                Event::MappingEnd | Event::SequenceEnd => {
                    stack.pop();
                }
                // Stream and document marks, anchors.
                _ => {}
            }
        }
        Ok(index)
    }

    /// Places one node; gives its path when it is a value.
    fn node(
        &mut self,
        stack: &mut [Frame],
        span: Span,
        scalar: Option<(&str, ScalarStyle)>,
    ) -> Option<Path> {
        let (path, key) = match stack.last_mut() {
            None => (Path::root(), None),
            Some(Frame::Unnamed) => return None,
            Some(Frame::List { path, next }) => {
                *next += 1;
                (path.index(*next - 1), None)
            }
            Some(Frame::Map { path, seen, key }) => match key.take() {
                None => {
                    let name = scalar.map(|(text, _)| text.to_owned()).unwrap_or_default();
                    self.key(&name, span, scalar.map(|(_, style)| style), seen);
                    *key = Some((name, span));
                    return None;
                }
                Some((name, key)) => (path.join(Step::Key(name)), Some(key)),
            },
        };
        let style = scalar.map(|(_, style)| style);
        self.spots.entry(path.clone()).or_insert(Spot { key, value: span, style });
        Some(path)
    }

    fn key(
        &mut self,
        name: &str,
        span: Span,
        style: Option<ScalarStyle>,
        seen: &mut HashMap<String, Span>,
    ) {
        if name == "<<" && style == Some(ScalarStyle::Plain) {
            self.merge_keys.push(span);
        }
        match seen.get(name) {
            Some(first) => {
                self.duplicates.push(Duplicate {
                    key: name.to_owned(),
                    first: *first,
                    again: span,
                });
            }
            None => {
                seen.insert(name.to_owned(), span);
            }
        }
    }

    /// The place of a value, or of the nearest thing around it that has one.
    pub(super) fn nearest(&self, path: &Path) -> Option<&Spot> {
        let mut path = path.clone();
        loop {
            if let Some(spot) = self.spots.get(&path) {
                return Some(spot);
            }
            path = path.parent()?;
        }
    }

    /// Every path, to test that an index names each value once.
    #[cfg(test)]
    pub(super) fn paths(&self) -> std::collections::HashSet<String> {
        self.spots.keys().map(Path::text).collect()
    }
}

fn span(raw: &RawSpan) -> Span {
    Span {
        start: position(raw.start.line(), raw.start.col()),
        end: position(raw.end.line(), raw.end.col()),
    }
}

/// The parser counts lines from 1 and columns from 0.
pub(super) fn position(line: usize, column: usize) -> Position {
    let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
    Position { line: number(line), column: number(column.saturating_add(1)) }
}
