//! Strict YAML: text to a value of which every part's place is known, and a typed form of it. Owns
//! what is refused in every file alike: duplicate keys, merge keys, tags, other encodings, unknown
//! keys, wrong types. Goes on after each of these, so that one reading finds them all.

mod decode;
mod document;
mod index;
mod parse;
mod path;
mod report;
#[cfg(test)]
mod tests;
mod text;

pub(super) use document::{Document, Finding, ScalarPlace, Span, TOP};
pub(super) use path::Path;
pub(super) use text::{position_after, read_text};
