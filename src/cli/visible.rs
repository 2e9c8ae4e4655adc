//! Text that a model, a tool or a repository wrote, made safe to print: it cannot move the cursor,
//! set the terminal's title or reorder what is read.

use std::borrow::Cow;

use jiff::Timestamp;

/// Stands for a character that is not shown.
const HIDDEN: char = '\u{fffd}';

/// The text without control and direction characters; line ends and tabs stay.
pub(super) fn visible(text: &str) -> Cow<'_, str> {
    if text.chars().any(is_hidden) {
        text.chars().map(|c| if is_hidden(c) { HIDDEN } else { c }).collect::<String>().into()
    } else {
        text.into()
    }
}

/// The text on one line of at most `width` characters.
pub(super) fn one_line(text: &str, width: usize) -> String {
    let line = visible(text).split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(width) {
        Some(_) => line.chars().take(width.saturating_sub(1)).chain(['…']).collect(),
        None => line,
    }
}

fn is_hidden(c: char) -> bool {
    let direction =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    direction || (c.is_control() && c != '\n' && c != '\t')
}

/// A length of time in the unit that suits it.
pub(super) fn duration(millis: u64) -> String {
    let secs = millis / 1000;
    match secs {
        0 => format!("{millis}ms"),
        1..60 => format!("{secs}.{}s", millis % 1000 / 100),
        60..3600 => format!("{}m {}s", secs / 60, secs % 60),
        _ => format!("{}h {}m", secs / 3600, secs / 60 % 60),
    }
}

/// Dollars, with more digits where there is little.
pub(super) fn dollars(usd: f64) -> String {
    if usd == 0.0 || usd >= 1.0 { format!("${usd:.2}") } else { format!("${usd:.4}") }
}

/// An instant to the second, in UTC.
pub(super) fn instant(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_and_direction_marks_are_not_shown() {
        assert_eq!(visible("a\u{1b}[2Jb\u{202e}c\n\td\re"), "a\u{fffd}[2Jb\u{fffd}c\n\td\u{fffd}e");
        assert_eq!(visible("plain ü"), "plain ü");
    }

    #[test]
    fn long_text_becomes_one_bounded_line() {
        assert_eq!(one_line("a\n b\tc", 10), "a b c");
        assert_eq!(one_line("abcdefgh", 5), "abcd…");
    }

    #[test]
    fn lengths_and_amounts_suit_their_size() {
        assert_eq!(
            [duration(7), duration(1250), duration(61_000), duration(7_260_000)],
            ["7ms", "1.2s", "1m 1s", "2h 1m"]
        );
        assert_eq!([dollars(0.0), dollars(0.012), dollars(2.5)], ["$0.00", "$0.0120", "$2.50"]);
    }
}
