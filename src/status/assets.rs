//! The page's own style, script and icon. Nothing is loaded from elsewhere.

use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};

use super::render::{FILES, PageError};

/// `/assets/<name>`
pub(crate) async fn asset(
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, PageError> {
    let kind = match name.rsplit_once('.') {
        Some((_, "css")) => "text/css; charset=utf-8",
        Some((_, "js")) => "text/javascript; charset=utf-8",
        Some((_, "svg")) => "image/svg+xml",
        _ => return Err(missing(&name)),
    };
    let file = FILES.get_file(format!("assets/{name}")).ok_or_else(|| missing(&name))?;
    let tag = tag(file.contents());
    let fresh = [(header::ETAG, tag.clone()), (header::CACHE_CONTROL, "no-cache".to_owned())];
    if headers.get(header::IF_NONE_MATCH).is_some_and(|seen| seen.as_bytes() == tag.as_bytes()) {
        return Ok((StatusCode::NOT_MODIFIED, fresh).into_response());
    }
    Ok((fresh, [(header::CONTENT_TYPE, kind)], file.contents()).into_response())
}

fn missing(name: &str) -> PageError {
    PageError::NotFound(format!("there is no file {name:?}"))
}

fn tag(contents: &[u8]) -> String {
    let hash = Sha256::digest(contents);
    let short: String = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("\"{short}\"")
}
