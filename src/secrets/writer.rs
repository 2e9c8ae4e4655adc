//! Masks secrets in logs.

use std::io::{self, Write};

use tracing_subscriber::fmt::MakeWriter;

use super::Redactor;

/// Makes writers that redact before they write to `inner`.
#[derive(Clone, Debug)]
pub struct RedactingWriter<F> {
    redactor: Redactor,
    inner: F,
}

impl<F> RedactingWriter<F> {
    /// Redacts what goes to the writers that `inner` makes.
    pub fn new(redactor: Redactor, inner: F) -> Self {
        RedactingWriter { redactor, inner }
    }
}

/// Holds one log record until it is whole, so that a secret cannot hide across two writes.
pub struct Record<W: Write> {
    redactor: Redactor,
    text: Vec<u8>,
    inner: W,
}

impl<'a, F: MakeWriter<'a>> MakeWriter<'a> for RedactingWriter<F> {
    type Writer = Record<F::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        Record {
            redactor: self.redactor.clone(),
            text: Vec::new(),
            inner: self.inner.make_writer(),
        }
    }
}

impl<W: Write> Write for Record<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let text = std::mem::take(&mut self.text);
        let masked = self.redactor.redact(&String::from_utf8_lossy(&text)).into_owned();
        self.inner.write_all(masked.as_bytes())?;
        self.inner.flush()
    }
}

impl<W: Write> Drop for Record<W> {
    fn drop(&mut self) {
        // A log that cannot be written has nowhere to say so.
        let _ = self.flush();
    }
}
