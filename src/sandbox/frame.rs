//! Frames on the helper's socket: two lengths, a JSON header, raw bytes. Everything that is read is
//! hostile: lengths are checked before anything is allocated.

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// The longest header, both ways.
pub(super) const MAX_HEADER: u32 = 1024 * 1024;
/// The longest body that any call may have.
pub(super) const MAX_BODY: u32 = 544 * 1024 * 1024;

/// Why the stream cannot be read on.
#[derive(Debug, thiserror::Error)]
pub(super) enum FrameError {
    #[error("its connection ended")]
    Ended,
    #[error("it sent a malformed frame: {0}")]
    Malformed(String),
}

impl From<std::io::Error> for FrameError {
    fn from(_: std::io::Error) -> Self {
        FrameError::Ended
    }
}

/// A header, and how many bytes of body follow it.
#[derive(Debug, PartialEq)]
pub(super) struct Header {
    pub value: Value,
    pub body: u32,
}

/// Reads lengths and header; the body is left in the stream.
pub(super) async fn read_header<R: AsyncRead + Unpin>(from: &mut R) -> Result<Header, FrameError> {
    let (header, body) = (from.read_u32().await?, from.read_u32().await?);
    if header == 0 || header > MAX_HEADER {
        return Err(FrameError::Malformed(format!("a header of {header} bytes")));
    }
    if body > MAX_BODY {
        return Err(FrameError::Malformed(format!("a body of {body} bytes")));
    }
    let mut text = vec![0; header as usize];
    from.read_exact(&mut text).await?;
    let value: Value = serde_json::from_slice(&text)
        .map_err(|error| FrameError::Malformed(format!("a header that is not JSON ({error})")))?;
    if !value.is_object() {
        return Err(FrameError::Malformed("a header that is no object".to_owned()));
    }
    Ok(Header { value, body })
}

/// Reads a body. Grows as bytes come, so that a length alone costs no memory.
pub(super) async fn read_body<R: AsyncRead + Unpin>(
    from: &mut R,
    length: u32,
) -> Result<Vec<u8>, FrameError> {
    let mut body = Vec::new();
    let read = from.take(u64::from(length)).read_to_end(&mut body).await?;
    if read == length as usize { Ok(body) } else { Err(FrameError::Ended) }
}

/// Reads a body and forgets it.
pub(super) async fn skip_body<R: AsyncRead + Unpin>(
    from: &mut R,
    length: u32,
) -> Result<(), FrameError> {
    let skipped =
        tokio::io::copy(&mut from.take(u64::from(length)), &mut tokio::io::sink()).await?;
    if skipped == u64::from(length) { Ok(()) } else { Err(FrameError::Ended) }
}

/// Writes one frame.
pub(super) async fn write<W: AsyncWrite + Unpin>(
    to: &mut W,
    header: &Value,
    body: &[u8],
) -> std::io::Result<()> {
    let text = header.to_string();
    let too_long = || std::io::Error::other("a frame that is too long");
    let header_length = u32::try_from(text.len()).ok().filter(|n| *n <= MAX_HEADER);
    let body_length = u32::try_from(body.len()).ok().filter(|n| *n <= MAX_BODY);
    let mut start = Vec::with_capacity(8 + text.len());
    start.extend_from_slice(&header_length.ok_or_else(too_long)?.to_be_bytes());
    start.extend_from_slice(&body_length.ok_or_else(too_long)?.to_be_bytes());
    start.extend_from_slice(text.as_bytes());
    to.write_all(&start).await?;
    to.write_all(body).await?;
    to.flush().await
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn refusal(bytes: &[u8]) -> String {
        let mut from = bytes;
        read_header(&mut from).await.expect_err("the frame is refused").to_string()
    }

    #[tokio::test]
    async fn a_frame_comes_out_as_it_went_in() {
        let mut wire = Vec::new();
        write(&mut wire, &serde_json::json!({"id": 1}), b"body").await.expect("written");
        let mut from = wire.as_slice();
        let header = read_header(&mut from).await.expect("header");
        let body = read_body(&mut from, header.body).await.expect("body");
        assert_eq!((header.value, body), (serde_json::json!({"id": 1}), b"body".to_vec()));
    }

    #[tokio::test]
    async fn hostile_lengths_and_headers_are_refused_before_they_are_read() {
        let seen = [
            refusal(&[0, 0, 0, 0, 0, 0, 0, 0]).await,
            refusal(&[0, 16, 0, 1, 0, 0, 0, 0]).await,
            refusal(&[0, 0, 0, 2, 0xff, 0, 0, 0]).await,
            refusal(&[0, 0, 0, 2, 0, 0, 0, 0, b'[', b']']).await,
            refusal(&[0, 0, 0, 9, 0, 0, 0, 0, b'{']).await,
        ];
        assert_eq!(
            seen,
            [
                "it sent a malformed frame: a header of 0 bytes",
                "it sent a malformed frame: a header of 1048577 bytes",
                "it sent a malformed frame: a body of 4278190080 bytes",
                "it sent a malformed frame: a header that is no object",
                "its connection ended",
            ]
        );
    }
}
