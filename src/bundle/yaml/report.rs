//! Words for what YAML and the typed form refuse.

use serde_saphyr::granit_parser::ScanError;

use super::decode::{Mismatch, MismatchKind};
use super::document::{Finding, Span, TOP};
use super::index::{Index, position};
use super::path::Path;
use crate::bundle::Position;
use crate::bundle::nearest::{did_you_mean, nearest};

/// What a mismatch says, and where it belongs.
pub(super) struct Decoded {
    pub(super) finding: Finding,
    /// It is about the key, not the value.
    pub(super) at_key: bool,
    /// The key that a misspelled one stands for: it is not missing besides.
    pub(super) meant: Option<Path>,
}

/// Why the text is no YAML at all.
pub(super) fn unreadable(scan: &ScanError, text: &str) -> (Finding, Span) {
    let start = position(scan.marker().line(), scan.marker().col());
    let finding = Finding::error("yaml-syntax", format!("this is not YAML: {}", scan.info()));
    let line = usize::try_from(start.line).unwrap_or(usize::MAX);
    // The parser sometimes notices only on the next line.
    for number in [line, line.saturating_sub(1)] {
        if let Some(found) = with_quotes(&finding, text, number) {
            return found;
        }
    }
    let tab = line
        .checked_sub(1)
        .and_then(|at| text.lines().nth(at))
        .is_some_and(|source| source.chars().take_while(|c| c.is_whitespace()).any(|c| c == '\t'));
    let finding = if tab { finding.hint("indent by spaces, not by tabs") } else { finding };
    (finding, Span { start, end: Position { column: start.column + 1, ..start } })
}

fn quoted(value: &str) -> String {
    if value.contains(['"', '\\']) {
        format!("'{}'", value.replace('\'', "''"))
    } else {
        format!("\"{value}\"")
    }
}

/// A value that YAML reads as something else than text, and its column from 0.
fn unquoted(line: &str) -> Option<(&str, usize)> {
    let (before, value) = line.split_once(": ")?;
    let value = value.trim_start();
    let reserved = value.starts_with(['*', '@', '%', '`', '&', '!']) || value.starts_with("{{");
    let colon = !value.starts_with(['"', '\'', '[', '{', '|', '>']) && value.contains(": ");
    let column = line.chars().count() - value.chars().count();
    ((reserved || colon) && !before.trim_start().starts_with('#'))
        .then_some((value.trim_end(), column))
}

/// Everything that YAML allows and a bundle does not.
pub(super) fn refused(index: &Index) -> Vec<(Finding, Span)> {
    let duplicates = index.duplicates.iter().map(|duplicate| {
        let (first, again) = (duplicate.first.start.line, duplicate.again.start.line);
        let message = format!(
            "duplicate key {:?}: first on line {first}, again on line {again}",
            duplicate.key
        );
        (Finding::error("duplicate-key", message).hint("keep one of the two"), duplicate.again)
    });
    let merges = index.merge_keys.iter().map(|span| {
        let finding = Finding::error("merge-key", "the merge key \"<<\" is not part of a bundle")
            .hint("write the keys out, or put them into the manifest's defaults");
        (finding, *span)
    });
    let tags = index.tags.iter().map(|(tag, span)| {
        let finding =
            Finding::error("yaml-tag", format!("the tag {tag:?} is not part of a bundle"))
                .hint("remove the tag, or put the value in quotes");
        (finding, *span)
    });
    duplicates.chain(merges).chain(tags).collect()
}

/// Any other refusal of the strict reader.
pub(super) fn refusal(error: &serde_saphyr::Error, text: &str) -> (Finding, Span) {
    let finding = match error.without_snippet() {
        serde_saphyr::Error::MultipleDocuments { .. } => {
            Finding::error("yaml-syntax", "the file holds more than one document")
                .hint("remove the lines with ---, one file is one document")
        }
        serde_saphyr::Error::Eof { .. } => {
            Finding::error("yaml-syntax", "the file is empty").hint("write at least one key")
        }
        serde_saphyr::Error::Budget { breach, .. } => {
            Finding::error("too-large", format!("the file is too large or nested: {breach:?}"))
        }
        other => {
            let text = other.to_string();
            let line = text.lines().next().unwrap_or_default().to_owned();
            Finding::error(
                "yaml-syntax",
                format!("this is not YAML that a bundle may hold: {line}"),
            )
        }
    };
    let Some(location) = error.location() else { return (finding, TOP) };
    let start = Position {
        line: u32::try_from(location.line()).unwrap_or(1).max(1),
        column: u32::try_from(location.column()).unwrap_or(1).max(1),
    };
    let line = usize::try_from(start.line).unwrap_or(usize::MAX);
    if let Some((finding, span)) = with_quotes(&finding, text, line) {
        return (finding, span);
    }
    (finding, Span { start, end: Position { column: start.column + 1, ..start } })
}

/// The finding with a hint to quote the line's value, where that is likely to help.
fn with_quotes(finding: &Finding, text: &str, line: usize) -> Option<(Finding, Span)> {
    let source = text.lines().nth(line.checked_sub(1)?)?;
    let (value, column) = unquoted(source)?;
    let start = position(line, column);
    let end = position(line, column + value.chars().count());
    let hint = format!("put the value in quotes: {}", quoted(value));
    Some((finding.clone().hint(hint), Span { start, end }))
}

/// A key or value that the typed form does not have.
pub(super) fn mismatch(mismatch: Mismatch, path: &Path) -> Decoded {
    let what = match path.text() {
        text if text.is_empty() => "the file".to_owned(),
        text => text,
    };
    let mut meant = None;
    let mut at_key = false;
    let finding = match mismatch.kind {
        MismatchKind::UnknownKey { key, known } => {
            at_key = true;
            let likely = nearest(&key, known.iter().copied());
            meant = likely.and_then(|likely| Some(path.parent()?.key(likely)));
            let hint = match likely {
                Some(likely) => format!("did you mean {likely:?}?"),
                None => format!("known keys here: {}", known.join(", ")),
            };
            Finding::error("unknown-key", format!("unknown key {key:?}")).hint(hint)
        }
        MismatchKind::WrongType { seen, .. } if seen == "nothing" && *path == Path::root() => {
            Finding::error("yaml-syntax", "the file is empty").hint("write its keys, or remove it")
        }
        MismatchKind::WrongType { seen, wanted } if seen == "nothing" => {
            at_key = true;
            Finding::error("wrong-type", format!("{what} has no value: {wanted} is wanted"))
                .hint("write a value, or remove the key")
        }
        MismatchKind::WrongType { seen, wanted } => {
            let hint = type_hint(&seen, &wanted);
            Finding::error("wrong-type", format!("{what}: {seen} is not {wanted}")).maybe_hint(hint)
        }
        MismatchKind::InvalidValue { seen, wanted } => {
            Finding::error("invalid-value", format!("{what}: {seen} is not {wanted}"))
        }
        MismatchKind::UnknownWord { word, known } => {
            let hint = did_you_mean(&word, known.iter().copied())
                .unwrap_or_else(|| format!("it is one of {}", known.join(", ")));
            Finding::error("invalid-value", format!("{what}: {word:?} is not known")).hint(hint)
        }
        MismatchKind::Other(message) => {
            Finding::error("invalid-value", format!("{what}: {message}"))
        }
    };
    Decoded { finding, at_key, meant }
}

/// How to write what was probably meant.
fn type_hint(seen: &str, wanted: &str) -> Option<String> {
    let text = seen.strip_prefix("the text \"").and_then(|text| text.strip_suffix('"'));
    match (wanted, text) {
        ("true or false", Some(text)) => match text.to_ascii_lowercase().as_str() {
            "yes" | "y" | "on" | "true" => Some("write true".to_owned()),
            "no" | "n" | "off" | "false" => Some("write false".to_owned()),
            _ => Some("write true or false without quotes".to_owned()),
        },
        (wanted, Some(text)) if wanted.contains("number") => number_hint(text),
        ("text", None) if seen.starts_with("the number") || seen == "true" || seen == "false" => {
            Some("put the value in quotes".to_owned())
        }
        ("a list", Some(text)) => Some(format!("write a list: [{text}]")),
        _ => None,
    }
}

fn number_hint(text: &str) -> Option<String> {
    let plain: String = text.chars().filter(|c| *c != '_').collect();
    let digits = !plain.is_empty() && plain.bytes().all(|byte| byte.is_ascii_digit());
    if !digits {
        return Some("write a plain decimal number without unit and quotes".to_owned());
    }
    let decimal = plain.trim_start_matches('0');
    Some(if plain.starts_with('0') && plain.len() > 1 {
        format!("a leading zero makes it text: write {decimal}, or 0o{decimal} if octal was meant")
    } else {
        format!("write {plain} without quotes and underscores")
    })
}
