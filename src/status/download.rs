//! Published files as downloads. Only what the store's manifest lists is served, always as an
//! attachment: the content is an agent's and must not open in the page's origin.

use std::path::Path as FilePath;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::Stream;
use rustix::fs::OFlags;
use tokio::fs::File;
use tokio::io::AsyncReadExt;

use super::Served;
use super::render::PageError;
use crate::store::ArtifactRow;

const CHUNK: usize = 64 * 1024;

/// `/runs/<id>/artifacts/<n>`
pub(crate) async fn artifact(
    State(served): State<Arc<Served>>,
    Path((id, number)): Path<(String, u32)>,
) -> Result<Response, PageError> {
    let store = &served.context.store;
    let detail = store.run_detail(store.find_run(id).await?).await?;
    let run = detail.run.run_id;
    let row = detail.artifacts.into_iter().find(|row| row.number == number).ok_or_else(|| {
        PageError::NotFound(format!("run {run} has no artifact with number {number}"))
    })?;
    let directory = served.context.artifacts.join(run.as_str()).join(row.attempt.to_string());
    let file = open(&directory.join(row.number.to_string())).await.map_err(|error| match error
        .kind()
    {
        std::io::ErrorKind::NotFound => PageError::NotFound(format!(
            "the copy of {:?} is no longer in the state directory",
            row.name
        )),
        _ => PageError::File(error),
    })?;
    let size = file.metadata().await?.len();
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
        (header::CONTENT_LENGTH, size.to_string()),
        (header::CONTENT_DISPOSITION, disposition(&row)),
    ];
    Ok((headers, Body::from_stream(chunks(file))).into_response())
}

/// Opens a regular file, never through a link.
async fn open(path: &FilePath) -> std::io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    let flags = i32::try_from(flags).expect("open flags are small");
    let file = File::options().read(true).custom_flags(flags).open(path).await?;
    if !file.metadata().await?.is_file() {
        return Err(std::io::Error::other("not a regular file"));
    }
    Ok(file)
}

fn chunks(file: File) -> impl Stream<Item = std::io::Result<Bytes>> {
    futures_util::stream::unfold(Some(file), |file| async move {
        let mut file = file?;
        let mut chunk = vec![0; CHUNK];
        match file.read(&mut chunk).await {
            Ok(0) => None,
            Ok(length) => {
                chunk.truncate(length);
                Some((Ok(Bytes::from(chunk)), Some(file)))
            }
            Err(error) => Some((Err(error), None)),
        }
    })
}

/// The attachment's name: the agent chose it, so everything unusual is percent-encoded (RFC 8187).
fn disposition(row: &ArtifactRow) -> String {
    let base = row.name.rsplit(['/', '\\']).next().unwrap_or_default();
    let mut name = String::new();
    for byte in base.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'_' => {
                name.push(char::from(byte));
            }
            _ => name.push_str(&format!("%{byte:02X}")),
        }
    }
    if name.is_empty() {
        name = format!("artifact-{}", row.number);
    }
    format!("attachment; filename*=UTF-8''{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_download_cannot_leave_its_header() {
        let row = |name: &str| ArtifactRow {
            number: 3,
            attempt: 1,
            name: name.into(),
            path: "p".into(),
            description: None,
            size: 0,
            sha256: None,
        };
        let seen = |name| disposition(&row(name));
        assert_eq!(seen("report.md"), "attachment; filename*=UTF-8''report.md");
        assert_eq!(seen("../../a\"\r\nb"), "attachment; filename*=UTF-8''a%22%0D%0Ab");
        assert_eq!(seen("ä"), "attachment; filename*=UTF-8''%C3%A4");
        assert_eq!(seen("x/"), "attachment; filename*=UTF-8''artifact-3");
    }
}
