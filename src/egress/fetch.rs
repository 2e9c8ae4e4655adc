//! One document over the gate's proxy, for the tool `web_fetch`: TLS and HTTP here, names, addresses
//! and verdicts there. Follows redirects, each judged like the first request; sends no cookie, no
//! credential, no body.

use std::time::Duration;

use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HOST, LOCATION, USER_AGENT,
};
use hyper_util::rt::TokioIo;
use reqwest::Url;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::UnixStream;

use super::gate::Gate;
use super::name::{HostName, NameError};
use crate::tls;

/// The longest head of the proxy's answer.
const MAX_ANSWER: usize = 4096;

/// Ceilings of one fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchLimits {
    pub redirects: u32,
    /// Of the document.
    pub bytes: usize,
    /// For all of it, redirects included.
    pub time: Duration,
}

impl Default for FetchLimits {
    fn default() -> Self {
        FetchLimits { redirects: 5, bytes: 2 * 1024 * 1024, time: Duration::from_secs(30) }
    }
}

/// A document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Where it came from, after redirects.
    pub url: String,
    pub status: u16,
    pub content_type: String,
    pub body: Vec<u8>,
    /// The document is longer than the limit.
    pub is_cut: bool,
}

/// Why there is no document.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    #[error("{url:?} cannot be fetched: {why}")]
    Url { url: String, why: String },
    #[error("{host} was refused: {why}")]
    Refused { host: String, why: String },
    #[error("{host} offers no trusted TLS connection: {why}")]
    Tls { host: String, why: String },
    #[error("{host} broke the connection or does not speak HTTP: {why}")]
    Http { host: String, why: String },
    #[error("{host} answered in the encoding {encoding:?}, which was not asked for")]
    Encoding { host: String, encoding: String },
    #[error("more than {0} redirects")]
    Redirects(u32),
    #[error("it took longer than {} s", .0.as_secs())]
    TimedOut(Duration),
}

/// Fetches a document by GET.
pub async fn fetch(gate: &Gate, url: &str, limits: FetchLimits) -> Result<Fetched, FetchError> {
    let following = follow(gate, url, limits);
    tokio::time::timeout(limits.time, following)
        .await
        .unwrap_or(Err(FetchError::TimedOut(limits.time)))
}

async fn follow(gate: &Gate, url: &str, limits: FetchLimits) -> Result<Fetched, FetchError> {
    let mut at = checked(url, Url::parse(url))?;
    for _ in 0..=limits.redirects {
        match get(gate, &at, limits.bytes).await? {
            Got::Document(document) => return Ok(document),
            Got::Elsewhere(location) => {
                let next = checked(&location, at.join(&location))?;
                if at.scheme() == "https" && next.scheme() == "http" {
                    let why = "a redirect leads from https to http".to_owned();
                    return Err(FetchError::Url { url: next.to_string(), why });
                }
                at = next;
            }
        }
    }
    Err(FetchError::Redirects(limits.redirects))
}

/// An http(s) URL of a named host.
fn checked<E: std::fmt::Display>(text: &str, url: Result<Url, E>) -> Result<Url, FetchError> {
    let refuse = |why: String| {
        let url = text.chars().take(200).collect();
        Err(FetchError::Url { url, why })
    };
    let mut url = match url {
        Ok(url) => url,
        Err(error) => return refuse(error.to_string()),
    };
    if !matches!(url.scheme(), "http" | "https") {
        return refuse(format!(
            "its scheme is {}; only https and http can be fetched",
            url.scheme()
        ));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return refuse("it names a user".to_owned());
    }
    match url.domain().ok_or(NameError::Address).and_then(HostName::parse) {
        Ok(_) => {
            url.set_fragment(None);
            Ok(url)
        }
        Err(error) => refuse(error.to_string()),
    }
}

enum Got {
    Document(Fetched),
    Elsewhere(String),
}

async fn get(gate: &Gate, url: &Url, limit: usize) -> Result<Got, FetchError> {
    let host = url.host_str().unwrap_or_default().to_owned();
    let port = url.port_or_known_default().unwrap_or(443);
    let stream = tunnel(gate, &host, port).await?;
    if url.scheme() == "http" {
        return ask(stream, url, host, limit).await;
    }
    let refused = |why: String| FetchError::Tls { host: host.clone(), why };
    let connector = tokio_rustls::TlsConnector::from(tls::verified().map_err(refused)?);
    let name = host.clone().try_into().map_err(|_| refused("its name is not valid".to_owned()))?;
    let stream =
        connector.connect(name, stream).await.map_err(|error| refused(error.to_string()))?;
    ask(stream, url, host, limit).await
}

/// A connection through the proxy, or why it refuses.
async fn tunnel(gate: &Gate, host: &str, port: u16) -> Result<UnixStream, FetchError> {
    let refused = |why: String| FetchError::Refused { host: format!("{host}:{port}"), why };
    let failed = |error: std::io::Error| refused(error.to_string());
    let mut stream = gate.connect().map_err(failed)?;
    let request = format!("CONNECT {host}:{port} HTTP/1.1\r\n\r\n");
    stream.write_all(request.as_bytes()).await.map_err(failed)?;
    let mut seen = Vec::new();
    // Byte by byte: what follows the empty line belongs to the host.
    while !seen.ends_with(b"\r\n\r\n") {
        let byte = stream.read_u8().await.map_err(|_| refused("the run is over".to_owned()))?;
        seen.push(byte);
        if seen.len() > MAX_ANSWER {
            return Err(refused("the proxy's answer is too long".to_owned()));
        }
    }
    let answer = String::from_utf8_lossy(&seen);
    if answer.starts_with("HTTP/1.1 200 ") {
        return Ok(stream);
    }
    let why = answer.lines().find_map(|line| line.strip_prefix("X-Fleet-Egress: "));
    Err(refused(why.unwrap_or("no reason was given").to_owned()))
}

/// One GET over a connection of its own.
async fn ask<S>(stream: S, url: &Url, host: String, limit: usize) -> Result<Got, FetchError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let broken =
        |error: hyper::Error| FetchError::Http { host: host.clone(), why: error.to_string() };
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let path = url.query().map_or(url.path().to_owned(), |query| format!("{}?{query}", url.path()));
    let authority = url.port().map_or(host.clone(), |port| format!("{host}:{port}"));
    let request = hyper::Request::get(path)
        .header(HOST, authority)
        .header(USER_AGENT, concat!("fleet/", env!("CARGO_PKG_VERSION")))
        .header(ACCEPT, "text/*, application/json, application/xml;q=0.9, */*;q=0.5")
        .header(ACCEPT_ENCODING, "identity")
        .body(Empty::<Bytes>::new())
        .map_err(|error| FetchError::Url { url: url.to_string(), why: error.to_string() })?;
    let asking = async {
        let response = sender.send_request(request).await.map_err(broken)?;
        read(response, url, &host, limit).await
    };
    tokio::pin!(connection);
    tokio::pin!(asking);
    tokio::select! {
        biased;
        got = &mut asking => got,
        ended = &mut connection => match ended {
            // What was received before the end is still there.
            Ok(()) => asking.await,
            Err(error) => Err(broken(error)),
        },
    }
}

async fn read(
    response: hyper::Response<Incoming>,
    url: &Url,
    host: &str,
    limit: usize,
) -> Result<Got, FetchError> {
    let text = |name| {
        let value = response.headers().get(name);
        value.and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
    };
    let status = response.status().as_u16();
    let location = text(LOCATION);
    if matches!(status, 301 | 302 | 303 | 307 | 308) && !location.is_empty() {
        return Ok(Got::Elsewhere(location));
    }
    let encoding = text(CONTENT_ENCODING);
    if !encoding.is_empty() && !encoding.eq_ignore_ascii_case("identity") {
        return Err(FetchError::Encoding { host: host.to_owned(), encoding });
    }
    let content_type = text(CONTENT_TYPE);
    let mut incoming = response.into_body();
    let mut body = Vec::new();
    let mut is_cut = false;
    while let Some(frame) = incoming.frame().await {
        let frame = frame
            .map_err(|error| FetchError::Http { host: host.to_owned(), why: error.to_string() })?;
        let Ok(data) = frame.into_data() else { continue };
        let room = limit - body.len();
        body.extend_from_slice(&data[..data.len().min(room)]);
        if data.len() > room {
            is_cut = true;
            break;
        }
    }
    Ok(Got::Document(Fetched { url: url.to_string(), status, content_type, body, is_cut }))
}
