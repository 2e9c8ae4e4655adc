//! Bounds what a tool shows to the model: head and tail kept with counts, escape sequences stripped,
//! binary suppressed, characters and secrets never cut. The whole text stays in a file of the workspace.

use std::borrow::Cow;
use std::ops::Range;

use crate::sandbox::{Call, CallError};
use crate::secrets::Redactor;

use super::context::{ToolContext, ToolFailure};

/// Where output is kept that the model does not see whole, relative to the workspace.
pub const SPILL_DIRECTORY: &str = ".fleet/output";
/// The most that is kept there of one call.
const SPILL_BYTES: usize = 8 * 1024 * 1024;
/// What the model is told when memory ran out, and whoever reads the log.
pub(super) const OUT_OF_MEMORY: &str = "[out of memory: the kernel killed a process of the sandbox; \
    all of it together has limits.sandbox.memory_mb]";
/// The smallest and the largest bound.
const BOUNDS: (usize, usize) = (1024, 128 * 1024);
/// How much of an output is looked at to tell text from binary.
const SNIFF_BYTES: usize = 8192;

/// Brings a bound into the range that is allowed.
pub fn clamp_limit(limit_bytes: usize) -> usize {
    limit_bytes.clamp(BOUNDS.0, BOUNDS.1)
}

/// What came out of the sandbox.
#[derive(Clone, Copy, Debug, Default)]
pub struct Raw<'a> {
    pub bytes: &'a [u8],
    /// Bytes that the helper dropped between head and tail.
    pub dropped_bytes: u64,
    /// Where the helper kept the whole.
    pub spill_path: Option<&'a str>,
}

/// The text for the model, `verdict` (how the call ended) last. Output that does not fit is kept in a
/// file, unless the helper has kept it already.
pub(super) async fn show(
    raw: Raw<'_>,
    verdict: &str,
    context: &ToolContext<'_>,
) -> Result<String, ToolFailure> {
    let (limit, redactor) = (context.output_limit_bytes, context.redactor);
    let text = clean(raw.bytes);
    if raw.spill_path.is_some() || text.len() + verdict.len() < limit {
        return Ok(bounded(&text, &raw, verdict, limit, redactor));
    }
    let path = format!("{SPILL_DIRECTORY}/{}.txt", file_name(context.call_id));
    let kept = raw.bytes[..raw.bytes.len().min(SPILL_BYTES)].to_vec();
    let call = Call::Write { path: path.clone(), content: kept };
    let spill_path = match context.sandbox.call(call, context.cancel).await {
        Ok(_) => Some(path.as_str()),
        // The command ran and its end matters more than the file.
        Err(CallError::Refused { .. } | CallError::Cancelled) => None,
        Err(CallError::Gone(reason)) => return Err(ToolFailure::SandboxGone(reason)),
    };
    Ok(bounded(&text, &Raw { spill_path, ..raw }, verdict, limit, redactor))
}

/// Letters and digits of a call's id, which the provider chose.
fn file_name(call_id: &str) -> String {
    call_id
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
        .take(64)
        .collect()
}

/// Text without escape sequences and control characters; binary becomes a note.
pub fn clean(bytes: &[u8]) -> Cow<'_, str> {
    if is_binary(bytes) {
        return Cow::Owned(format!("[binary output suppressed: {} bytes]", bytes.len()));
    }
    let text = String::from_utf8_lossy(bytes);
    let plain = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
    if text.chars().all(plain) {
        return text;
    }
    Cow::Owned(strip_controls(&text))
}

/// Bounds the text of `raw` to `limit` bytes, the verdict and the notes included. A secret on the cut
/// is left out whole: the store would mask neither of its pieces.
pub fn bounded(
    text: &str,
    raw: &Raw<'_>,
    verdict: &str,
    limit: usize,
    redactor: &Redactor,
) -> String {
    let Raw { dropped_bytes, spill_path, .. } = *raw;
    let limit = clamp_limit(limit);
    let place = spill_path.map(|path| format!("; the whole is in {path}")).unwrap_or_default();
    if text.len() + verdict.len() < limit && dropped_bytes == 0 {
        return joined(text, verdict);
    }
    // The counts' digits change the note's length: room is kept for the longest.
    let room = limit.saturating_sub(verdict.len() + place.len() + 96);
    let head_end = floor_boundary(text, (room / 2).min(text.len()));
    let tail_start = ceil_boundary(text, text.len().saturating_sub(room - room / 2).max(head_end));
    let (head_end, tail_start) = around_secrets(text, head_end, tail_start, redactor);
    let left_out = (tail_start - head_end) as u64;
    let note = match (left_out, dropped_bytes) {
        (0, dropped) => {
            let note = format!("[{dropped} bytes from the middle left out{place}]");
            return joined(text, &format!("{note}\n{verdict}"));
        }
        (cut, dropped) => format!("[{} bytes left out here{place}]", cut + dropped),
    };
    let (head, tail) = (&text[..head_end], &text[tail_start..]);
    joined(&format!("{head}\n{note}\n{tail}"), verdict)
}

/// The cut, widened where it begins or ends inside a secret.
fn around_secrets(
    text: &str,
    head_end: usize,
    tail_start: usize,
    redactor: &Redactor,
) -> (usize, usize) {
    if head_end == tail_start {
        return (head_end, tail_start);
    }
    let spans = redactor.spans(text);
    let around = |at: usize| spans.iter().find(|span| span.start < at && at < span.end);
    let head = around(head_end).map_or(head_end, |span| span.start);
    let tail = around(tail_start).map_or(tail_start, |span| span.end);
    (head, tail)
}

fn joined(text: &str, verdict: &str) -> String {
    match (text.is_empty(), text.ends_with('\n')) {
        (true, _) => verdict.to_owned(),
        (false, true) => format!("{text}{verdict}"),
        (false, false) => format!("{text}\n{verdict}"),
    }
}

/// Whether bytes are no text: a zero byte, or more than a tenth that is not UTF-8.
pub fn is_binary(bytes: &[u8]) -> bool {
    let sample = &bytes[..bytes.len().min(SNIFF_BYTES)];
    if sample.contains(&0) {
        return true;
    }
    let invalid: usize = sample.utf8_chunks().map(|chunk| chunk.invalid().len()).sum();
    // A character may be cut at each end of the sample.
    invalid > 6 && invalid * 10 > sample.len()
}

/// The part of `bytes` that begins and ends with whole characters.
pub fn whole_characters(bytes: &[u8]) -> Range<usize> {
    let is_continuation = |byte: &u8| *byte & 0b1100_0000 == 0b1000_0000;
    let start = bytes.iter().take(3).take_while(|byte| is_continuation(byte)).count();
    let mut end = bytes.len();
    if let Some(last) = bytes.utf8_chunks().last() {
        let cut = last.invalid();
        // Only an unfinished character: other invalid bytes belong to the text as it is.
        if !cut.is_empty() && cut.len() < 4 && cut[0] >= 0b1100_0000 {
            end -= cut.len();
        }
    }
    start.min(end)..end
}

fn floor_boundary(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn ceil_boundary(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

/// Removes ANSI escape sequences and control characters; a lone carriage return ends a line.
fn strip_controls(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\x1b' => skip_escape(&mut rest),
            '\r' if rest.peek() == Some(&'\n') => {}
            '\r' => plain.push('\n'),
            '\n' | '\t' => plain.push(c),
            c if c.is_control() => {}
            c => plain.push(c),
        }
    }
    plain
}

/// Skips what follows an escape character (ECMA-48): CSI up to its final byte, strings (OSC, DCS …)
/// up to BEL or ST, others two characters.
fn skip_escape(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match rest.next() {
        Some('[') => {
            while let Some(&c) = rest.peek() {
                if c == '\n' || c == '\x1b' {
                    return;
                }
                rest.next();
                if ('@'..='~').contains(&c) {
                    return;
                }
            }
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            while let Some(&c) = rest.peek() {
                if c == '\n' {
                    return;
                }
                rest.next();
                match c {
                    '\x07' => return,
                    '\x1b' => {
                        rest.next();
                        return;
                    }
                    _ => {}
                }
            }
        }
        Some('(' | ')' | '#' | '%') => {
            rest.next();
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Text of which the helper dropped some.
    fn bounded_with(text: &str, dropped_bytes: u64, spill: Option<&str>, limit: usize) -> String {
        let raw = Raw { bytes: text.as_bytes(), dropped_bytes, spill_path: spill };
        bounded(text, &raw, "[exit 0]", limit, &Redactor::default())
    }

    #[test]
    fn a_secret_on_the_cut_is_left_out_whole() {
        let redactor = Redactor::default();
        redactor.register("hunter2 hunter3 hunter4");
        let key = format!(
            "-----BEGIN PRIVATE KEY-----\n{}-----END PRIVATE KEY-----",
            "QUJD\n".repeat(40)
        );
        for secret in ["hunter2 hunter3 hunter4", "ghp_abcdefghijklmnopqrstuvwxyz0123456789", &key]
        {
            for shift in (180..480).step_by(2) {
                let (near, far) = (".".repeat(shift), " -".repeat(2000));
                for text in [format!("{near}{secret}{far}"), format!("{far}{secret}{near}")] {
                    let spans = redactor.spans(&text);
                    let shown = bounded(&text, &Raw::default(), "[exit 0]", 1024, &redactor);
                    let masked = redactor.redact(&shown);
                    let left = spans.iter().any(|span| {
                        let pieces = text[span.clone()].as_bytes().windows(5);
                        pieces
                            .filter_map(|piece| std::str::from_utf8(piece).ok())
                            .any(|piece| masked.contains(piece))
                    });
                    assert!(!left && shown.len() <= 1024, "{secret} after {shift}: {masked}");
                }
            }
        }
    }

    #[test]
    fn short_output_is_shown_whole_with_its_verdict() {
        assert_eq!(bounded_with("hello", 0, None, 1024), "hello\n[exit 0]");
        assert_eq!(bounded_with("hello\n", 0, None, 1024), "hello\n[exit 0]");
        assert_eq!(bounded_with("", 0, None, 1024), "[exit 0]");
    }

    #[test]
    fn long_output_keeps_head_and_tail_and_names_the_file() {
        let text = format!("first\n{}last", "y\n".repeat(50_000));
        let shown = bounded_with(&text, 0, Some(".fleet/output/a.txt"), 1024);
        assert!(shown.len() <= 1024, "{}", shown.len());
        assert!(shown.starts_with("first\n"));
        assert!(shown.ends_with("last\n[exit 0]"));
        assert!(shown.contains(" bytes left out here; the whole is in .fleet/output/a.txt]"));
    }

    #[test]
    fn bytes_that_the_helper_dropped_are_counted() {
        let shown = bounded_with("ab", 7, Some("f"), 1024);
        assert_eq!(shown, "ab\n[7 bytes from the middle left out; the whole is in f]\n[exit 0]");
    }

    #[test]
    fn a_cut_inside_a_character_moves_to_its_edge() {
        for pad in 0..8 {
            let text = format!("{}{}", "a".repeat(pad), "🦀".repeat(2000));
            let shown = bounded_with(&text, 0, None, 1024);
            assert!(!shown.contains('\u{fffd}') && shown.len() <= 1024, "pad {pad}");
        }
    }

    #[test]
    fn escape_sequences_and_controls_are_stripped() {
        let seen = clean(b"\x1b[1;31mred\x1b[0m \x1b]0;title\x07done\x08\r\n50%\r100%\n");
        assert_eq!(seen, "red done\n50%\n100%\n");
    }

    #[test]
    fn binary_is_suppressed() {
        assert_eq!(clean(&[0x7f, b'E', b'L', b'F', 0, 0]), "[binary output suppressed: 6 bytes]");
        assert_eq!(clean(&[0xff; 100]), "[binary output suppressed: 100 bytes]");
        assert_eq!(clean(b"caf\xe9"), "caf\u{fffd}");
    }

    proptest! {
        #[test]
        fn whatever_comes_is_bounded_text_without_controls(
            bytes in proptest::collection::vec(any::<u8>(), 0..6000),
            limit in 1024usize..2048,
            dropped in 0u64..3,
        ) {
            let text = clean(&bytes);
            let controls = |c: char| c.is_control() && c != '\n' && c != '\t';
            prop_assert!(!text.contains(controls));
            let shown = bounded_with(&text, dropped, Some("spill"), limit);
            prop_assert!(shown.len() <= limit, "{} of {limit}", shown.len());
            prop_assert!(shown.ends_with("[exit 0]"));
        }
    }
}
