//! What every answer passes: the method, the Host header, and the headers that keep a browser from
//! running anything that is not ours.

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// Refuses what is not a read from a loopback name, and marks every answer.
pub(crate) async fn guard(request: Request, next: Next) -> Response {
    let mut response = match refusal(request.method(), request.headers(), request.uri().host()) {
        Some(refusal) => refusal,
        None => next.run(request).await,
    };
    harden(response.headers_mut());
    response
}

fn refusal(method: &Method, headers: &HeaderMap, target: Option<&str>) -> Option<Response> {
    if !matches!(*method, Method::GET | Method::HEAD) {
        let allow = [(header::ALLOW, "GET, HEAD")];
        return Some(
            (StatusCode::METHOD_NOT_ALLOWED, allow, "the status page is read-only\n")
                .into_response(),
        );
    }
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    if host.is_some_and(is_loopback) && target.is_none_or(is_loopback) {
        return None;
    }
    // Another name that resolves to loopback is how a web site reaches local services.
    let seen = host.unwrap_or("no host").escape_debug().to_string();
    let text = format!("{seen} is not a loopback name: open the page as http://localhost:PORT\n");
    Some((StatusCode::MISDIRECTED_REQUEST, text).into_response())
}

/// Whether a Host header names this machine itself: `localhost`, 127.0.0.0/8 or `[::1]`, any port.
fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    if name.eq_ignore_ascii_case("localhost") || name == "[::1]" {
        return true;
    }
    name.parse::<std::net::Ipv4Addr>().is_ok_and(|address| address.is_loopback())
}

fn harden(headers: &mut HeaderMap) {
    let fixed = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_names_are_answered() {
        for good in ["localhost", "LOCALHOST:8707", "127.0.0.1:1", "127.9.9.9", "[::1]:80", "[::1]"]
        {
            assert!(is_loopback(good), "{good}");
        }
        for bad in [
            "",
            "example.com",
            "localhost.example.com",
            "127.0.0.1.example.com:80",
            "10.0.0.1:8707",
            "[::2]",
            "localhost:80:80",
            "evil:8707",
        ] {
            assert!(!is_loopback(bad), "{bad}");
        }
    }
}
