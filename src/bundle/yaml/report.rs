//! Words for what YAML and the typed form refuse.

use serde_saphyr::granit_parser::ScanError;

use super::decode::{Mismatch, MismatchKind};
use super::document::{Finding, Span, TOP};
use super::index::{Index, position};
use super::parse::{MAX_ALIASES, MAX_DEPTH, MAX_NODES};
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
    duplicates.chain(merges).chain(tags(index)).collect()
}

/// Every explicit tag, YAML's own ones included.
pub(super) fn tags(index: &Index) -> Vec<(Finding, Span)> {
    let refuse = |(tag, span): &(String, Span)| {
        let finding =
            Finding::error("yaml-tag", format!("the tag {tag:?} is not part of a bundle"))
                .hint("remove the tag, or put the value in quotes");
        (finding, *span)
    };
    index.tags.iter().map(refuse).collect()
}

/// Whether the text has more in it than is read.
pub(super) fn is_too_large(error: &serde_saphyr::Error) -> bool {
    matches!(error.without_snippet(), serde_saphyr::Error::Budget { .. })
}

/// Quotes are no way out where an alias is meant.
fn is_about_aliases(error: &serde_saphyr::Error) -> bool {
    use serde_saphyr::Error;
    matches!(
        error.without_snippet(),
        Error::RecursiveReferencesRequireWeakTypes { .. }
            | Error::AliasReplayCounterOverflow { .. }
            | Error::AliasReplayLimitExceeded { .. }
            | Error::AliasExpansionLimitExceeded { .. }
            | Error::AliasReplayStackDepthExceeded { .. }
            | Error::Budget { .. }
    )
}

fn refusal_words(error: &serde_saphyr::Error) -> Finding {
    use serde_saphyr::Error;
    let (message, hint) = match error {
        Error::MultipleDocuments { .. } => (
            "the file holds more than one document",
            "remove the lines with ---, one file is one document",
        ),
        Error::Eof { .. } => ("the file is empty", "write at least one key"),
        Error::Budget { breach, .. } => return too_large(breach),
        Error::NullIntoString { .. } => ("a key is empty", "write the key before its colon"),
        Error::Unexpected { expected: "string scalar", .. } => (
            "a key is a list or a mapping, and keys are text",
            "put the key, or the value that was meant, in quotes",
        ),
        Error::RecursiveReferencesRequireWeakTypes { .. } => (
            "an alias stands inside the value that it repeats",
            "an alias may only repeat a value that ended before it: write this one out",
        ),
        Error::AliasReplayCounterOverflow { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => {
            ("the aliases repeat too much", "write the values out, or repeat smaller ones")
        }
        other => {
            let text = other.to_string();
            let line = text.lines().next().unwrap_or_default();
            let line = line.rsplit_once(" at line ").map_or(line, |(what, _)| what);
            let message = format!("this is not YAML that a bundle may hold: {line}");
            return Finding::error("yaml-syntax", message);
        }
    };
    Finding::error("yaml-syntax", message).hint(hint)
}

fn too_large(breach: &serde_saphyr::budget::BudgetBreach) -> Finding {
    use serde_saphyr::budget::BudgetBreach;
    let (what, limit) = match breach {
        BudgetBreach::Nodes { .. } | BudgetBreach::Events { .. } => ("keys and values", MAX_NODES),
        BudgetBreach::Depth { .. } => ("levels of nesting", MAX_DEPTH),
        BudgetBreach::Aliases { .. } => ("aliases", MAX_ALIASES),
        _ => {
            return Finding::error("too-large", "the file is too large or nested")
                .hint("split it, or remove what is not needed");
        }
    };
    Finding::error("too-large", format!("the file has more than {limit} {what}"))
        .hint("split it, or remove what is not needed")
}

/// Any other refusal of the strict reader.
pub(super) fn refusal(error: &serde_saphyr::Error, text: &str) -> (Finding, Span) {
    let finding = refusal_words(error.without_snippet());
    let Some(location) = error.location() else { return (finding, TOP) };
    let start = Position {
        line: u32::try_from(location.line()).unwrap_or(1).max(1),
        column: u32::try_from(location.column()).unwrap_or(1).max(1),
    };
    let line = usize::try_from(start.line).unwrap_or(usize::MAX);
    if !is_about_aliases(error)
        && let Some((finding, span)) = with_quotes(&finding, text, line)
    {
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
            let message = format!("{what}: {seen} is not {wanted}");
            Finding::error("invalid-value", message).hint(format!("write {wanted}"))
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
    let fraction = seen.strip_prefix("the number ").and_then(|number| number.strip_suffix(".0"));
    match (wanted, text) {
        (wanted, None) if wanted.starts_with("a whole number") => {
            fraction.map(|whole| format!("write {whole}, without a fraction"))
        }
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
