//! Secrets that were pasted into the bundle. Messages never hold the value.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Regex, RegexSet};

use crate::bundle::Problem;
use crate::bundle::source::Origin;
use crate::bundle::yaml::{Finding, Span, position_after};

/// Shapes of keys that providers hand out.
const PATTERNS: [(&str, &str); 9] = [
    ("an API key", r"\bsk-[A-Za-z0-9_-]{20,}"),
    ("a GitHub token", r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,})"),
    ("a GitLab token", r"\bglpat-[A-Za-z0-9_-]{20,}"),
    ("an AWS access key", r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    ("a Google API key", r"\bAIza[0-9A-Za-z_-]{35}"),
    ("a Slack token", r"\bxox[abprs]-[0-9A-Za-z-]{10,}"),
    ("a JSON web token", r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"),
    ("a private key", r"-----BEGIN [A-Z ]*PRIVATE KEY-----"),
    ("a password in a URL", r"\bhttps?://[^/\s:@]+:[^/\s:@{$]+@"),
];

/// Of each shape in one file; more is noise.
const MAX_FOUND: usize = 50;

/// All shapes at once: nearly every text has none.
static ANY: LazyLock<RegexSet> = LazyLock::new(|| {
    RegexSet::new(PATTERNS.map(|(_, pattern)| pattern)).expect("the patterns are regexes")
});

static SHAPES: LazyLock<[(&str, Regex); 9]> = LazyLock::new(|| {
    PATTERNS.map(|(what, pattern)| (what, Regex::new(pattern).expect("the pattern is a regex")))
});

/// Whether text holds a secret.
pub(super) fn looks_secret(text: &str) -> bool {
    ANY.is_match(text)
}

/// Reports every secret in a file.
pub(super) fn scan(file: &str, text: &str, origin: Origin, problems: &mut Vec<Problem>) {
    if !looks_secret(text) {
        return;
    }
    let hint = match origin {
        Origin::Commit => {
            "keep it in an environment variable, name the variable here, and revoke the key: it is \
             in the history"
        }
        Origin::Disk => "keep it in an environment variable, and name the variable here",
    };
    let found = SHAPES.iter().flat_map(|(what, shape)| {
        shape.find_iter(text).take(MAX_FOUND).map(move |found| (what, found))
    });
    for (what, found) in found {
        let start = position_after(&text[..found.start()]);
        let end = position_after(&text[..found.end()]);
        let finding =
            Finding::error("secret-in-bundle", format!("this looks like {what}")).hint(hint);
        problems.push(finding.at(file, Span { start, end }));
    }
}

/// The text with each secret's characters replaced by stars, places unchanged.
pub(in crate::bundle) fn mask_secrets(text: &str) -> Cow<'_, str> {
    if !looks_secret(text) {
        return Cow::Borrowed(text);
    }
    let mut masked = text.to_owned();
    for (_, shape) in SHAPES.iter() {
        let stars = |found: &regex::Captures<'_>| "*".repeat(found[0].chars().count());
        masked = shape.replace_all(&masked, stars).into_owned();
    }
    Cow::Owned(masked)
}
