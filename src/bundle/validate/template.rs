//! Prompts: syntax, variables that exist, and a rendering with sample values.

use std::sync::LazyLock;

use regex::Regex;

use crate::bundle::Position;
use crate::bundle::nearest::did_you_mean;
use crate::bundle::prompt::{self, VARIABLES};
use crate::bundle::yaml::{Document, Finding, Path, ScalarPlace, Span, position_after};

/// What stands between braces.
static TAGS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?s)\{\{.*?\}\}|\{%.*?%\}").expect("the pattern is a regex"));

/// Reports everything that would keep a prompt from being rendered.
pub(super) fn check_prompt(source: &str, at: &Path, document: &Document<'_>) {
    let environment = &*prompt::ENVIRONMENT;
    let template = match environment.template_from_str(source) {
        Ok(template) => template,
        Err(error) => return report(&error, source, at, document),
    };
    let mut unknown: Vec<String> = template
        .undeclared_variables(true)
        .into_iter()
        .filter(|name| !is_known(name, environment))
        .collect();
    unknown.sort();
    for name in &unknown {
        let span = find_variable(source, name).and_then(|range| place(source, range, at, document));
        let hint = did_you_mean(name, VARIABLES).unwrap_or_else(|| {
            "known are task, run, date and previous; braces that are meant literally go between \
             {% raw %} and {% endraw %}"
                .to_owned()
        });
        let finding = Finding::error("undefined-variable", format!("{name:?} is not defined"));
        emit(finding.hint(hint), span, at, document);
    }
    if unknown.is_empty()
        && let Err(error) = template.render(prompt::samples())
    {
        report(&error, source, at, document);
    }
}

/// Names with parts that go further than a variable are left to the rendering.
fn is_known(name: &str, environment: &minijinja::Environment<'_>) -> bool {
    let below = |known: &str| {
        known.contains('.') && name.strip_prefix(known).is_some_and(|rest| rest.starts_with('.'))
    };
    VARIABLES.contains(&name)
        || VARIABLES.iter().any(|known| below(known))
        || name.starts_with("date.")
        || environment.globals().any(|(global, _)| name.split('.').next() == Some(global))
}

fn report(error: &minijinja::Error, source: &str, at: &Path, document: &Document<'_>) {
    let what = error.detail().map_or_else(|| error.kind().to_string(), ToOwned::to_owned);
    let range = error.range().or_else(|| {
        let line = error.line()?.checked_sub(1)?;
        let start: usize = source.split_inclusive('\n').take(line).map(str::len).sum();
        let end = source.get(start..)?.find('\n').map_or(source.len(), |length| start + length);
        Some(start..end)
    });
    let span = range.and_then(|range| place(source, range, at, document));
    let finding = Finding::error("template", format!("the template cannot be rendered: {what}"));
    emit(finding.maybe_hint(way_out(error.kind())), span, at, document);
}

fn way_out(kind: minijinja::ErrorKind) -> Option<String> {
    use minijinja::ErrorKind;
    let hint = match kind {
        ErrorKind::SyntaxError => {
            "a tag is {{ variable }}, or {% if … %} and {% for … %} with their {% endif %} and \
             {% endfor %}"
        }
        ErrorKind::OutOfFuel => "shorten the loops: a prompt is text with a few variables",
        ErrorKind::UnknownFilter | ErrorKind::UnknownTest | ErrorKind::UnknownFunction => {
            "only minijinja's own filters, tests and functions exist"
        }
        ErrorKind::UndefinedError => "known are task, run, date and previous",
        _ => return None,
    };
    Some(hint.to_owned())
}

fn emit(finding: Finding, span: Option<Span>, at: &Path, document: &Document<'_>) {
    match span {
        Some(span) => document.add(finding, span),
        None => document.report(at, finding),
    }
}

/// Where a variable occurs first between braces.
fn find_variable(source: &str, name: &str) -> Option<std::ops::Range<usize>> {
    let pattern = Regex::new(&format!(r"\b{}\b", regex::escape(name))).ok()?;
    TAGS.find_iter(source).find_map(|tag| {
        let found = pattern.find(tag.as_str())?;
        Some(tag.start() + found.start()..tag.start() + found.end())
    })
}

/// A stretch of the template as a stretch of the file.
fn place(
    source: &str,
    range: std::ops::Range<usize>,
    at: &Path,
    document: &Document<'_>,
) -> Option<Span> {
    let start = position_after(source.get(..range.start)?);
    let end = position_after(source.get(..range.end)?);
    let move_by = |position: Position, lines: u32, columns: u32| Position {
        line: position.line + lines,
        column: position.column + columns,
    };
    match document.scalar_place(at)? {
        ScalarPlace::Inline(origin) if end.line == 1 => Some(Span {
            start: move_by(start, origin.line - 1, origin.column - 1),
            end: move_by(end, origin.line - 1, origin.column - 1),
        }),
        ScalarPlace::Flowing(origin) => {
            let start = flowed(source, range.start, origin, Side::Before, document)?;
            let end = flowed(source, range.end, origin, Side::Behind, document)?;
            (start <= end).then_some(Span { start, end })
        }
        ScalarPlace::Inline(_) | ScalarPlace::Unknown => None,
    }
}

/// On which side of a character a place is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Before,
    Behind,
}

/// The place in the file of an offset in a scalar of several lines. Indenting and folding change
/// spaces and line ends only, so that every other character is found by counting.
fn flowed(
    source: &str,
    offset: usize,
    origin: Position,
    side: Side,
    document: &Document<'_>,
) -> Option<Position> {
    let before = source.get(..offset)?.chars().filter(|c| !c.is_whitespace()).count();
    let skipped = match side {
        Side::Before => before,
        Side::Behind => before.checked_sub(1)?,
    };
    let first_line = usize::try_from(origin.line).ok()?.checked_sub(1)?;
    let first_column = usize::try_from(origin.column).ok()?.checked_sub(1)?;
    let lines = document.text().lines().enumerate().skip(first_line);
    let places = lines.flat_map(|(line, text)| {
        let from = if line == first_line { first_column } else { 0 };
        text.chars().enumerate().skip(from).map(move |(column, c)| (line, column, c))
    });
    let (line, column, _) = places.filter(|(.., c)| !c.is_whitespace()).nth(skipped)?;
    let behind = usize::from(side == Side::Behind);
    Some(Position {
        line: u32::try_from(line + 1).ok()?,
        column: u32::try_from(column + 1 + behind).ok()?,
    })
}
