//! Bytes to text: UTF-8 with or without a byte-order mark; every other encoding is named.

use crate::bundle::{Position, Problem, Severity};

/// The file's text without its byte-order mark, or the problem with its encoding.
pub(crate) fn read_text<'a>(file: &str, bytes: &'a [u8]) -> Result<&'a str, Problem> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    if let Some(encoding) = wide_encoding(bytes) {
        return Err(wrong_encoding(file, encoding, Position { line: 1, column: 1 }));
    }
    std::str::from_utf8(bytes).map_err(|error| {
        let valid = String::from_utf8_lossy(&bytes[..error.valid_up_to()]).into_owned();
        wrong_encoding(file, "ISO-8859-1", position_after(&valid))
    })
}

/// UTF-16 and UTF-32, by their marks or by the zero bytes of ASCII text in them.
fn wide_encoding(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0xFF, 0xFE, 0, 0, ..] | [0, 0, 0xFE, 0xFF, ..] => Some("UTF-32"),
        [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] => Some("UTF-16"),
        [first, 0, second, 0, ..] if *first != 0 && *second != 0 => Some("UTF-16LE"),
        [0, first, 0, second, ..] if *first != 0 && *second != 0 => Some("UTF-16BE"),
        _ => None,
    }
}

fn wrong_encoding(file: &str, encoding: &str, at: Position) -> Problem {
    let likely = if encoding == "ISO-8859-1" { "probably " } else { "" };
    Problem {
        file: file.to_owned(),
        line: at.line,
        column: at.column,
        end_line: at.line,
        end_column: at.column + 1,
        code: "encoding",
        severity: Severity::Error,
        message: format!("the file is {likely}{encoding}, not UTF-8"),
        hint: Some(format!("convert it: iconv -f {encoding} -t UTF-8")),
    }
}

/// The place just behind `text`.
pub(crate) fn position_after(text: &str) -> Position {
    let line = text.matches('\n').count();
    let column = text.rsplit('\n').next().unwrap_or_default().chars().count();
    super::index::position(line + 1, column)
}
