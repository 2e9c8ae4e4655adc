//! The one request at the beginning of a connection: `CONNECT host:port`, or a plain request with an
//! absolute `http://` URL, which is sent on with its `Host` set by fleet.

use tokio::io::{AsyncRead, AsyncReadExt};

use super::name::Target;
use super::refusal::Refusal;

/// The longest head, and the most header lines.
const MAX_HEAD: usize = 16 * 1024;
const MAX_LINES: usize = 100;
/// Headers that are about the connection to the proxy, or that fleet sets itself.
const DROPPED: [&str; 7] = [
    "host",
    "connection",
    "proxy-connection",
    "proxy-authorization",
    "keep-alive",
    "te",
    "upgrade",
];

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// A tunnel.
    Connect(Target),
    /// One request to a plain HTTP server: its head, as it is sent on.
    Plain(Target, Vec<u8>),
}

/// A head as it arrived, and what came with it.
pub(super) struct Arrived {
    pub head: Vec<u8>,
    pub rest: Vec<u8>,
}

/// Reads up to the empty line.
pub(super) async fn read<R: AsyncRead + Unpin>(stream: &mut R) -> Result<Arrived, Refusal> {
    let mut seen = Vec::with_capacity(1024);
    let mut chunk = [0_u8; 4096];
    loop {
        let n = stream.read(&mut chunk).await.map_err(|_| Refusal::Broken)?;
        if n == 0 {
            return Err(Refusal::Broken);
        }
        // The end may straddle two reads.
        let from = seen.len().saturating_sub(3);
        seen.extend_from_slice(&chunk[..n]);
        if let Some(at) = seen[from..].windows(4).position(|window| window == b"\r\n\r\n") {
            let rest = seen.split_off(from + at + 4);
            return if seen.len() > MAX_HEAD {
                Err(TOO_LONG)
            } else {
                Ok(Arrived { head: seen, rest })
            };
        }
        if seen.len() > MAX_HEAD {
            return Err(TOO_LONG);
        }
    }
}

const TOO_LONG: Refusal = Refusal::Malformed("its head is longer than 16 KiB");

/// The host and port that a head names, for the log, whether they are valid or not.
pub(super) fn asked_for(head: &[u8]) -> String {
    let line = head.split(|byte| *byte == b'\r' || *byte == b'\n').next().unwrap_or_default();
    let mut words = line.split(|byte| *byte == b' ').skip(1);
    let target = String::from_utf8_lossy(words.next().unwrap_or_default()).into_owned();
    let authority = target.split_once("://").map_or(target.as_str(), |(_, rest)| rest);
    let authority = authority.split(['/', '?']).next().unwrap_or_default();
    authority.chars().flat_map(char::escape_default).take(100).collect()
}

/// Parses a head.
pub(super) fn parse(head: &[u8]) -> Result<Request, Refusal> {
    let text = std::str::from_utf8(head)
        .ok()
        .filter(|text| text.is_ascii())
        .ok_or(Refusal::Malformed("its head is not ASCII"))?;
    let text = text.strip_suffix("\r\n\r\n").unwrap_or(text);
    let mut lines = text.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(Refusal::Malformed("its first line is not METHOD TARGET VERSION"));
    };
    if version != "HTTP/1.1" && version != "HTTP/1.0" {
        return Err(Refusal::Malformed("only HTTP/1.1 is spoken here"));
    }
    let headers = lines.map(header).collect::<Result<Vec<_>, _>>()?;
    if headers.len() > MAX_LINES {
        return Err(Refusal::Malformed("it has more than 100 header lines"));
    }
    if method == "CONNECT" {
        return Ok(Request::Connect(Target::parse(target, None)?));
    }
    plain(method, target, &headers)
}

/// One header line: a name and a value without control characters.
fn header(line: &str) -> Result<(&str, &str), Refusal> {
    let (name, value) =
        line.split_once(':').ok_or(Refusal::Malformed("a header line has no colon"))?;
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(token) {
        return Err(Refusal::Malformed("a header's name is not a token"));
    }
    if value.bytes().any(|byte| byte.is_ascii_control() && byte != b'\t') {
        return Err(Refusal::Malformed("a header's value has a control character"));
    }
    Ok((name, value.trim_matches([' ', '\t'])))
}

fn plain(method: &str, target: &str, headers: &[(&str, &str)]) -> Result<Request, Refusal> {
    if method.is_empty() || method.len() > 16 || !method.bytes().all(|b| b.is_ascii_uppercase()) {
        return Err(Refusal::Malformed("its method is not a word of capitals"));
    }
    let rest = target.strip_prefix("http://").ok_or(Refusal::Malformed(
        "this is a proxy: send CONNECT host:port, or a request for an http:// URL",
    ))?;
    if rest.contains('#') || rest.bytes().any(|byte| byte.is_ascii_control()) {
        return Err(Refusal::Malformed("its URL has a fragment or a control character"));
    }
    let (authority, path) = match rest.find(['/', '?']) {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    // Told apart from a name with an odd character: a user in a URL is a disguise.
    if authority.contains('@') {
        return Err(Refusal::Malformed("its URL names a user"));
    }
    let to = Target::parse(authority, Some(80))?;
    check_framing(headers)?;
    let slash = if path.starts_with('/') { "" } else { "/" };
    let mut head = format!("{method} {slash}{path} HTTP/1.1\r\nHost: {}\r\n", host_header(&to));
    for (name, value) in headers {
        if !DROPPED.contains(&name.to_ascii_lowercase().as_str()) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
    }
    head.push_str("Connection: close\r\n\r\n");
    Ok(Request::Plain(to, head.into_bytes()))
}

/// A body that two readers could delimit differently is refused.
fn check_framing(headers: &[(&str, &str)]) -> Result<(), Refusal> {
    let count =
        |wanted: &str| headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case(wanted)).count();
    match (count("content-length"), count("transfer-encoding")) {
        (0 | 1, 0) | (0, 1) => Ok(()),
        _ => Err(Refusal::Malformed("its body's length is given twice")),
    }
}

fn host_header(target: &Target) -> String {
    if target.port == 80 { target.host.to_string() } else { target.to_string() }
}

#[cfg(test)]
mod tests {
    use super::super::name::{NameError, TargetError};
    use super::*;

    fn parsed(text: &str) -> Result<String, Refusal> {
        parse(text.as_bytes()).map(|request| match request {
            Request::Connect(target) => format!("tunnel to {target}"),
            Request::Plain(target, head) => {
                format!("to {target}: {}", String::from_utf8_lossy(&head).escape_debug())
            }
        })
    }

    #[test]
    fn a_tunnel_s_target_is_read_as_a_name_and_a_port() {
        assert_eq!(
            parsed("CONNECT Example.COM.:443 HTTP/1.1\r\nHost: whatever\r\n\r\n"),
            Ok("tunnel to example.com:443".to_owned())
        );
        let address = Refusal::from(NameError::Address);
        let odd = Refusal::from(NameError::Character);
        let table = [
            ("127.0.0.1:443", address.clone()),
            ("0x7f.1:443", address.clone()),
            ("2130706433:443", address.clone()),
            ("[::1]:443", address.clone()),
            ("[fe80::1%25lo]:443", address.clone()),
            ("::1:443", address),
            ("good.example@10.0.0.1:443", Refusal::from(NameError::Address)),
            ("10.0.0.1#good.example:443", odd.clone()),
            ("user:pass@good.example:443", Refusal::from(NameError::Address)),
            ("good.example/x:443", odd),
            ("good.example", Refusal::from(TargetError::NoPort)),
            ("good.example:0", Refusal::from(TargetError::Port)),
        ];
        for (target, want) in table {
            let seen = parsed(&format!("CONNECT {target} HTTP/1.1\r\n\r\n"));
            assert_eq!(seen, Err(want), "{target}");
        }
    }

    #[test]
    fn a_plain_request_is_sent_on_with_the_host_that_was_judged() {
        let request = "GET http://Example.com/a?b HTTP/1.1\r\nHost: evil.test\r\nAccept: */*\r\n\
                       Proxy-Authorization: x\r\nConnection: keep-alive\r\n\r\n";
        assert_eq!(
            parsed(request),
            Ok("to example.com:80: GET /a?b HTTP/1.1\\r\\nHost: example.com\\r\\nAccept: */*\\r\\n\
                Connection: close\\r\\n\\r\\n"
                .to_owned())
        );
        assert_eq!(
            parsed("GET http://example.com:8080?b HTTP/1.0\r\n\r\n"),
            Ok("to example.com:8080: GET /?b HTTP/1.1\\r\\nHost: example.com:8080\\r\\n\
                Connection: close\\r\\n\\r\\n"
                .to_owned())
        );
    }

    #[test]
    fn malformed_requests_are_refused() {
        let why = |text: &str| match parsed(text) {
            Err(Refusal::Malformed(why)) => why,
            other => panic!("{text:?} gave {other:?}"),
        };
        let table = [
            ("GET / HTTP/1.1\r\n\r\n", "this is a proxy"),
            ("GET https://example.com/ HTTP/1.1\r\n\r\n", "this is a proxy"),
            ("GET ftp://example.com/ HTTP/1.1\r\n\r\n", "this is a proxy"),
            ("GET http://a@example.com/ HTTP/1.1\r\n\r\n", "its URL names a user"),
            ("GET http://example.com/#x HTTP/1.1\r\n\r\n", "its URL has a fragment"),
            ("get http://example.com/ HTTP/1.1\r\n\r\n", "its method"),
            ("CONNECT example.com:443\r\n\r\n", "its first line"),
            ("CONNECT  example.com:443 HTTP/1.1\r\n\r\n", "its first line"),
            ("CONNECT example.com:443 HTTP/2\r\n\r\n", "only HTTP/1.1"),
            ("CONNECT example.com:443 HTTP/1.1\r\nHost : x\r\n\r\n", "a header's name"),
            ("CONNECT example.com:443 HTTP/1.1\r\nA: x\r\n folded\r\n\r\n", "a header line has no"),
            ("CONNECT example.com:443 HTTP/1.1\nA: x\r\n\r\n", "its first line"),
            ("CONNECT example.com:443 HTTP/1.1\nA:x\r\n\r\n", "only HTTP/1.1"),
            ("GET http://example.com/ HTTP/1.1\r\nA: x\ny\r\n\r\n", "a header's value"),
            ("CONNECT bücher.example:443 HTTP/1.1\r\n\r\n", "its head is not ASCII"),
            (
                "POST http://example.com/ HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
                "its body's length",
            ),
            (
                "POST http://example.com/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
                "its body's length",
            ),
        ];
        for (text, want) in table {
            assert!(why(text).starts_with(want), "{text:?}: {}", why(text));
        }
    }

    #[tokio::test]
    async fn a_head_ends_at_its_empty_line_and_has_a_limit() {
        let arrived = read(&mut &b"CONNECT a.b:1 HTTP/1.1\r\n\r\nrest"[..]).await.expect("a head");
        assert_eq!((arrived.head.len(), arrived.rest.as_slice()), (26, &b"rest"[..]));
        let endless = vec![b'a'; 100_000];
        assert_eq!(read(&mut &endless[..]).await.err(), Some(TOO_LONG));
        assert_eq!(
            read(&mut &b"CONNECT a.b:1 HTTP/1.1\r\n"[..]).await.err(),
            Some(Refusal::Broken)
        );
    }

    #[test]
    fn the_log_gets_what_was_asked_for_in_printable_characters() {
        let table = [
            ("CONNECT [::1]:80 HTTP/1.1\r\n", "[::1]:80"),
            ("GET http://u@h/p?q HTTP/1.1\r\n", "u@h"),
            ("CONNECT a\x1b[2J:80 HTTP/1.1\r\n", "a\\u{1b}[2J:80"),
            ("nonsense", ""),
        ];
        for (head, want) in table {
            assert_eq!(asked_for(head.as_bytes()), want);
        }
    }
}
