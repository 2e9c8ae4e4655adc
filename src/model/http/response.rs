//! What a provider's HTTP response is, before it is understood.

use reqwest::Response;
use reqwest::header::{CONTENT_TYPE, HeaderMap};

/// Whether the server streams its answer.
pub(super) fn is_event_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    kind.trim_start().to_ascii_lowercase().starts_with("text/event-stream")
}

/// Reads at most `limit` bytes.
pub(super) async fn read_body(
    response: &mut Response,
    limit: usize,
) -> Result<Vec<u8>, reqwest::Error> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        let room = limit - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if body.len() == limit {
            break;
        }
    }
    Ok(body)
}
