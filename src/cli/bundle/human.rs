//! Problems for people: the source line, what is wrong there, and the way out.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use super::printable::printable;
use crate::bundle::{Loaded, Problem, Severity};

/// Whether colours are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Paint {
    Plain,
    Colour,
}

/// Every problem, and a last line that counts them.
pub(super) fn render(loaded: &Loaded, paint: Paint) -> String {
    let renderer = match paint {
        Paint::Plain => Renderer::plain(),
        Paint::Colour => Renderer::styled(),
    };
    let mut text = String::new();
    for problem in &loaded.problems {
        let source = loaded.texts.get(&problem.file).map(|source| excerpt(source, problem));
        text.push_str(&renderer.render(&[group(problem, source.as_ref())]));
        text.push_str("\n\n");
    }
    text.push_str(&summary(loaded));
    text
}

/// The lines to show and the stretch within them to point at.
struct Excerpt {
    lines: String,
    first_line: usize,
    span: Range<usize>,
}

fn group<'a>(problem: &'a Problem, source: Option<&'a Excerpt>) -> Group<'a> {
    let level = match problem.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let title = level.primary_title(printable(&problem.message)).id(problem.code);
    let file = printable(&problem.file);
    let group = match source {
        Some(excerpt) => title.element(
            Snippet::source(&excerpt.lines)
                .path(file)
                .line_start(excerpt.first_line)
                .annotation(AnnotationKind::Primary.span(excerpt.span.clone())),
        ),
        None => title.element(Origin::path(file)),
    };
    match &problem.hint {
        Some(hint) => group.element(Level::HELP.message(printable(hint))),
        None => group,
    }
}

fn excerpt(source: &str, problem: &Problem) -> Excerpt {
    let line = usize::try_from(problem.line).unwrap_or(1).max(1);
    let text = source.lines().nth(line - 1).unwrap_or_default();
    let start = byte_offset(text, problem.column);
    let end = if problem.end_line == problem.line {
        byte_offset(text, problem.end_column).max(start)
    } else {
        text.len()
    };
    Excerpt { lines: text.to_owned(), first_line: line, span: start..end }
}

/// Columns count characters from 1.
fn byte_offset(line: &str, column: u32) -> usize {
    let before = usize::try_from(column).unwrap_or(1).saturating_sub(1);
    line.char_indices().nth(before).map_or(line.len(), |(offset, _)| offset)
}

fn summary(loaded: &Loaded) -> String {
    let count = |severity: Severity, one: &str| {
        let number = loaded.problems.iter().filter(|p| p.severity == severity).count();
        (number > 0).then(|| format!("{number} {one}{}", if number == 1 { "" } else { "s" }))
    };
    let state = match &loaded.commit {
        Some(commit) => format!("commit {}", commit.as_str().get(..12).unwrap_or_default()),
        None => "files on disk".to_owned(),
    };
    let counts = [count(Severity::Error, "error"), count(Severity::Warning, "warning")];
    let found = match counts.into_iter().flatten().collect::<Vec<_>>().join(" and ") {
        nothing if nothing.is_empty() => "no problems".to_owned(),
        counts => counts,
    };
    match &loaded.bundle {
        Some(bundle) => format!(
            "{}: tasks {}, personas {}: {found} ({state})\n",
            bundle.name,
            bundle.tasks.len(),
            bundle.personas.len()
        ),
        None => format!("{found} ({state})\n"),
    }
}
