//! File names and the words that repeat them, on one line and without power over the terminal.

use std::borrow::Cow;

/// The text with control and direction characters written out, such as `\u{1b}`.
pub(super) fn printable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    Cow::Owned(shown)
}

fn is_hidden(c: char) -> bool {
    let direction =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    direction || c.is_control()
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn control_and_direction_characters_are_written_out() {
        assert_eq!(printable("a\u{1b}[2J\nb\u{202e}\u{9b}é"), "a\\u{1b}[2J\\nb\\u{202e}\\u{9b}é");
    }
}
