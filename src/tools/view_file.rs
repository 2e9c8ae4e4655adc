//! `view_file`: part of a file, by bytes.

use serde::Deserialize;

use crate::sandbox::{Call, FileContent, Reply};

use super::context::{Asked, ToolContext, ToolFailure, ToolOutput, unexpected};
use super::output;

/// The most that one call reads.
const MAX_BYTES: u64 = 128 * 1024;
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
    let call = Call::Read { path: arguments.path, offset, limit };
    match context.ask(call).await? {
        Asked::Reply(Reply::Content(content)) => Ok(ToolOutput::text(shown(&content, offset))),
        Asked::Reply(other) => Err(unexpected(&other)),
        Asked::Refused(error) => Ok(error),
    }
}

fn shown(content: &FileContent, offset: u64) -> String {
    let FileContent { bytes, size, sha256 } = content;
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

    fn content(bytes: &[u8], size: u64) -> FileContent {
        FileContent { bytes: bytes.to_vec(), size, sha256: "ab".to_owned() }
    }

    #[test]
    fn a_part_that_ends_inside_a_character_leaves_it_to_the_next_part() {
        let text = "ab🦀cd";
        let first = shown(&content(&text.as_bytes()[..4], 8), 0);
        assert_eq!(first, "ab\n[bytes 0 to 2 of 8, sha256 ab; go on with offset 2]");
        let second = shown(&content(&text.as_bytes()[2..], 8), 2);
        assert_eq!(second, "🦀cd\n[bytes 2 to 8 of 8, the end, sha256 ab]");
    }

    #[test]
    fn a_binary_file_is_named_and_not_shown() {
        assert_eq!(shown(&content(&[0x7f, b'E', 0, 1], 4), 0), "[binary file: 4 bytes, sha256 ab]");
    }
}
