//! `view_file`: part of a file, by bytes.

use serde::Deserialize;

use crate::sandbox::{Call, FileContent, Reply};
use crate::secrets::Redactor;

use super::context::{Asked, ToolContext, ToolFailure, ToolOutput, unexpected};
use super::output;

/// The most that one call reads.
const MAX_BYTES: u64 = 128 * 1024;
/// Read beyond the part, so that a secret on its end is seen.
const LOOK_AHEAD: u64 = 1024;
/// Kept free for the last line.
const TRAILER_BYTES: u64 = 256;

/// The arguments of a call.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    path: String,
    offset: Option<u64>,
    limit: Option<u64>,
}

/// Reads the part.
pub(super) async fn run(
    arguments: Arguments,
    context: &ToolContext<'_>,
) -> Result<ToolOutput, ToolFailure> {
    let room = (context.output_limit_bytes as u64).saturating_sub(TRAILER_BYTES).max(1);
    let limit = arguments.limit.unwrap_or(room).clamp(1, room.min(MAX_BYTES));
    let offset = arguments.offset.unwrap_or(0);
    let ahead = (limit + LOOK_AHEAD).min(MAX_BYTES);
    let call = Call::Read { path: arguments.path, offset, limit: ahead };
    match context.ask(call).await? {
        Asked::Reply(Reply::Content(content)) => Ok(ToolOutput::text(shown(
            &content,
            offset,
            part(&content.bytes, limit, context.redactor),
        ))),
        Asked::Reply(other) => Err(unexpected(&other)),
        Asked::Refused(error) => Ok(error),
    }
}

/// How much of what was read is shown: at most `limit` bytes, and no secret in part. Its other piece
/// would stand in the next part, and the store would mask neither.
fn part(bytes: &[u8], limit: u64, redactor: &Redactor) -> usize {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    if bytes.len() <= limit {
        return bytes.len();
    }
    let text = bytes.utf8_chunks().next().map(|chunk| chunk.valid()).unwrap_or_default();
    let spans = redactor.spans(text);
    let cut = spans.iter().find(|span| span.start < limit && limit < span.end);
    // One that fills the whole part is shown in part after all: there is no other way on.
    cut.map(|span| span.start).filter(|start| *start > 0).unwrap_or(limit)
}

fn shown(content: &FileContent, offset: u64, part: usize) -> String {
    let FileContent { bytes, size, sha256 } = content;
    let bytes = &bytes[..part];
    if output::is_binary(bytes) {
        return format!("[binary file: {size} bytes, sha256 {sha256}]");
    }
    // A part may begin and end inside a character: those bytes belong to the neighbouring parts.
    let whole = output::whole_characters(bytes);
    let start = offset + whole.start as u64;
    let end = offset + whole.end as u64;
    let mut text = String::from_utf8_lossy(&bytes[whole]).into_owned();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    if start == 0 && end >= *size {
        text.push_str(&format!("[{size} bytes, sha256 {sha256}]"));
    } else if end < *size {
        text.push_str(&format!(
            "[bytes {start} to {end} of {size}, sha256 {sha256}; go on with offset {end}]"
        ));
    } else {
        text.push_str(&format!("[bytes {start} to {end} of {size}, the end, sha256 {sha256}]"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(content: &FileContent, offset: u64) -> String {
        shown(content, offset, content.bytes.len())
    }

    #[test]
    fn a_part_that_ends_inside_a_secret_ends_before_it() {
        let redactor = Redactor::default();
        redactor.register("hunter2hunter2");
        let text = b"password: hunter2hunter2\n";
        let parts = [5, 10, 11, 23, 24, 25].map(|limit| part(text, limit, &redactor));
        assert_eq!(parts, [5, 10, 10, 10, 24, 25]);
        assert_eq!(part(b"hunter2hunter2", 5, &redactor), 5);
        assert_eq!(part(b"hunter2hunter2", 14, &redactor), 14);
    }

    fn content(bytes: &[u8], size: u64) -> FileContent {
        FileContent { bytes: bytes.to_vec(), size, sha256: "ab".to_owned() }
    }

    #[test]
    fn a_part_that_ends_inside_a_character_leaves_it_to_the_next_part() {
        let text = "ab🦀cd";
        let first = whole(&content(&text.as_bytes()[..4], 8), 0);
        assert_eq!(first, "ab\n[bytes 0 to 2 of 8, sha256 ab; go on with offset 2]");
        let second = whole(&content(&text.as_bytes()[2..], 8), 2);
        assert_eq!(second, "🦀cd\n[bytes 2 to 8 of 8, the end, sha256 ab]");
    }

    #[test]
    fn a_binary_file_is_named_and_not_shown() {
        assert_eq!(whole(&content(&[0x7f, b'E', 0, 1], 4), 0), "[binary file: 4 bytes, sha256 ab]");
    }
}
