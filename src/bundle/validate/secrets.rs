//! Secrets that were pasted into the bundle. Messages never hold the value.

use std::borrow::Cow;

use crate::bundle::Problem;
use crate::bundle::source::Origin;
use crate::bundle::yaml::{Finding, Span, position_after};
use crate::secrets;

/// Reports every secret in a file.
pub(super) fn scan(file: &str, text: &str, origin: Origin, problems: &mut Vec<Problem>) {
    let hint = match origin {
        Origin::Commit => {
            "keep it in an environment variable, name the variable here, and revoke the key: it is \
             in the history"
        }
        Origin::Disk => "keep it in an environment variable, and name the variable here",
    };
    for (what, place) in secrets::pasted(text) {
        let start = position_after(&text[..place.start]);
        let end = position_after(&text[..place.end]);
        let finding =
            Finding::error("secret-in-bundle", format!("this looks like {what}")).hint(hint);
        problems.push(finding.at(file, Span { start, end }));
    }
}

/// The text with each secret's characters replaced by stars, places unchanged.
pub(in crate::bundle) fn mask_secrets(text: &str) -> Cow<'_, str> {
    let found = secrets::pasted(text);
    if found.is_empty() {
        return Cow::Borrowed(text);
    }
    let hidden = |at: usize| found.iter().any(|(_, place)| place.contains(&at));
    let star = |(at, c): (usize, char)| if c != '\n' && hidden(at) { '*' } else { c };
    Cow::Owned(text.char_indices().map(star).collect())
}
