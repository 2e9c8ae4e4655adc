//! Parses a stream of server-sent events (WHATWG HTML, 9.2.6) from bytes as they come. Lines and the
//! whole stream are bounded: the sender is not trusted.

/// The longest line; one tool call with a whole file may come in one.
const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;
/// The most bytes of one stream.
const MAX_TOTAL_BYTES: u64 = 64 * 1024 * 1024;

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SseEvent {
    /// The event's name; empty when it has none.
    pub(super) name: String,
    pub(super) data: String,
}

/// A stream that breaks its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SseError {
    #[error("a line of the stream is longer than {MAX_LINE_BYTES} bytes")]
    LongLine,
    #[error("the stream is longer than {MAX_TOTAL_BYTES} bytes")]
    LongStream,
}

/// Turns bytes into events.
#[derive(Debug)]
pub(super) struct SseParser {
    max_line: usize,
    max_total: u64,
    total: u64,
    line: Vec<u8>,
    /// The last byte was a carriage return: a line feed right after it belongs to it.
    after_return: bool,
    first_line: bool,
    event: SseEvent,
    has_data: bool,
}

impl Default for SseParser {
    fn default() -> Self {
        SseParser::bounded(MAX_LINE_BYTES, MAX_TOTAL_BYTES)
    }
}

impl SseParser {
    fn bounded(max_line: usize, max_total: u64) -> Self {
        SseParser {
            max_line,
            max_total,
            total: 0,
            line: Vec::new(),
            after_return: false,
            first_line: true,
            event: SseEvent::default(),
            has_data: false,
        }
    }

    /// Takes the next bytes and returns the events that they complete.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<Vec<SseEvent>, SseError> {
        self.total += bytes.len() as u64;
        if self.total > self.max_total {
            return Err(SseError::LongStream);
        }
        let mut events = Vec::new();
        for &byte in bytes {
            let after_return = std::mem::replace(&mut self.after_return, byte == b'\r');
            match byte {
                b'\n' if after_return => {}
                b'\n' | b'\r' => events.extend(self.end_line()),
                _ if self.line.len() >= self.max_line => return Err(SseError::LongLine),
                _ => self.line.push(byte),
            }
        }
        Ok(events)
    }

    /// The stream has ended: an event whose data is complete but for the empty line counts, because
    /// several servers leave that out.
    pub(super) fn finish(mut self) -> Option<SseEvent> {
        let last = self.end_line();
        last.or_else(|| self.dispatch())
    }

    fn end_line(&mut self) -> Option<SseEvent> {
        let bytes = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&bytes);
        let first = std::mem::replace(&mut self.first_line, false);
        let line = if first { line.trim_start_matches('\u{feff}') } else { &line };
        if line.is_empty() {
            return self.dispatch();
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                if self.has_data {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
                self.has_data = true;
            }
            "event" => self.event.name = value.to_owned(),
            // A line that begins with a colon is a comment, such as a keep-alive.
            _ => {}
        }
        None
    }

    fn dispatch(&mut self) -> Option<SseEvent> {
        let event = std::mem::take(&mut self.event);
        std::mem::take(&mut self.has_data).then_some(event)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn data(text: &str) -> SseEvent {
        SseEvent { name: String::new(), data: text.to_owned() }
    }

    fn parse(text: &[u8]) -> Vec<SseEvent> {
        let mut parser = SseParser::default();
        let mut events = parser.push(text).expect("the stream is within its bounds");
        events.extend(parser.finish());
        events
    }

    #[test]
    fn events_end_at_empty_lines_whatever_the_line_ending() {
        for text in
            ["data: a\n\ndata: b\n\n", "data: a\r\n\r\ndata: b\r\n\r\n", "data:a\r\rdata:b\r\r"]
        {
            assert_eq!(parse(text.as_bytes()), [data("a"), data("b")], "{text:?}");
        }
    }

    #[test]
    fn comments_are_skipped_data_lines_are_joined_and_names_are_kept() {
        let text = b"\xef\xbb\xbf: keep-alive\n\nevent: error\ndata: a\ndata: b\nid: 7\n\n";
        let event = SseEvent { name: "error".to_owned(), data: "a\nb".to_owned() };
        assert_eq!(parse(text), [event]);
    }

    #[test]
    fn a_last_event_without_its_empty_line_counts() {
        assert_eq!(parse(b"data: [DONE]"), [data("[DONE]")]);
    }

    #[test]
    fn long_lines_and_long_streams_are_refused() {
        assert_eq!(SseParser::bounded(8, 100).push(b"data: 123"), Err(SseError::LongLine));
        let mut parser = SseParser::bounded(8, 16);
        assert_eq!(parser.push(b"data:1\n\n"), Ok(vec![data("1")]));
        assert_eq!(parser.push(b"data:2\n\n"), Ok(vec![data("2")]));
        assert_eq!(parser.push(b":"), Err(SseError::LongStream));
    }

    proptest! {
        #[test]
        fn where_the_bytes_are_cut_makes_no_difference(
            text in "(data: ?[a-z🦀]{0,4}|event: x|: c|)(\r\n|\n|\r)((data:[a-z]{0,3}|)(\r\n|\n|\r)){0,8}",
            cuts in proptest::collection::vec(0usize..80, 0..6),
        ) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.sort_unstable();
            cuts.push(bytes.len());
            let mut parser = SseParser::default();
            let mut events = Vec::new();
            let mut start = 0;
            for cut in cuts {
                events.extend(parser.push(&bytes[start..cut]).expect("within bounds"));
                start = cut;
            }
            events.extend(parser.finish());
            prop_assert_eq!(events, parse(bytes));
        }
    }
}
