//! What `web_fetch` gets, over the gate's own proxy.

use std::time::Duration;

use fleet::egress::{Caps, FetchError, FetchLimits, Fetched, NetworkPolicy, fetch};
use tokio::io::AsyncWriteExt;

use crate::env::outside::{Names, Server, Way, dialer, hosts, ok};

/// A way out to one server, by two names.
struct Stand {
    server: Server,
    way: Way,
}

impl Stand {
    async fn new(answer: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        Self::over(Server::http(answer).await)
    }

    fn over(server: Server) -> Self {
        let names = Names::default();
        names.answer("good.test", &["127.0.0.1"]);
        names.answer("also.test", &["127.0.0.1"]);
        names.answer("inner.test", &["10.0.0.7"]);
        let port = server.port();
        let allowed = ["good.test", "also.test", "inner.test"].map(|name| format!("{name}:{port}"));
        let policy = hosts(&allowed.each_ref().map(String::as_str));
        let way = Way::new(policy, dialer(&names, server.address), Caps::default());
        Stand { server, way }
    }

    async fn fetch(&self, url: &str) -> Result<Fetched, String> {
        let url = url.replace("PORT", &self.server.port().to_string());
        fetch(&self.way.gate, &url, FetchLimits::default())
            .await
            .map_err(|error| self.plain(&error))
    }

    /// An error without the server's port.
    fn plain(&self, error: &FetchError) -> String {
        error.to_string().replace(&self.server.port().to_string(), "PORT")
    }
}

fn redirect(to: &str) -> String {
    format!(
        "HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )
}

#[tokio::test]
async fn a_document_comes_with_its_status_type_and_final_url() {
    let stand = Stand::new(|head| {
        let path = head.split(' ').nth(1).unwrap_or_default();
        match path {
            "/missing" => "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\ngone".to_owned(),
            _ => format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{head}",
                head.len()
            ),
        }
    })
    .await;
    let port = stand.server.port();
    let got = stand.fetch("http://GOOD.test:PORT/a?b=c#part").await.expect("a document");
    let head = String::from_utf8(got.body).expect("text");
    assert_eq!(
        (got.url, got.status, got.content_type, got.is_cut),
        (format!("http://good.test:{port}/a?b=c"), 200, "text/plain".to_owned(), false)
    );
    assert!(head.starts_with("GET /a?b=c HTTP/1.1\r\n"), "{head}");
    assert!(head.contains(&format!("host: good.test:{port}\r\n")), "{head}");
    assert!(
        !head.to_lowercase().contains("cookie") && !head.to_lowercase().contains("authorization")
    );
    let missing = stand.fetch("http://good.test:PORT/missing").await.expect("a document");
    assert_eq!((missing.status, missing.body), (404, b"gone".to_vec()));
}

#[tokio::test]
async fn every_redirect_is_judged() {
    let stand = Stand::new(|head| {
        let host = head.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default();
        let port = host.rsplit(':').next().unwrap_or_default();
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        match path.as_str() {
            "/hop" => redirect(&format!("http://also.test:{port}/end")),
            "/relative" => redirect("end"),
            "/loop" => redirect("/loop"),
            "/metadata" => redirect("http://169.254.169.254/latest"),
            "/inner" => redirect(&format!("http://inner.test:{port}/")),
            "/evil" => redirect("https://evil.test/"),
            "/file" => redirect("file:///etc/passwd"),
            "/user" => redirect("http://a:b@good.test/"),
            _ => ok(&format!("{host} {path}")),
        }
    })
    .await;
    let port = stand.server.port();
    let body = |got: Fetched| String::from_utf8_lossy(&got.body).into_owned();
    assert_eq!(
        stand.fetch("http://good.test:PORT/hop").await.map(body),
        Ok(format!("also.test:{port} /end"))
    );
    assert_eq!(
        stand.fetch("http://good.test:PORT/relative").await.map(body),
        Ok(format!("good.test:{port} /end"))
    );
    let table = [
        ("loop", "more than 5 redirects"),
        (
            "metadata",
            "\"http://169.254.169.254/latest\" cannot be fetched: the host is an address, not a name",
        ),
        (
            "inner",
            "inner.test:PORT was refused: the name resolves to an address that is not public (private)",
        ),
        ("evil", "evil.test:443 was refused: the host is not in the task's allow_network"),
        (
            "file",
            "\"file:///etc/passwd\" cannot be fetched: its scheme is file; only https and http can be \
             fetched",
        ),
        ("user", "\"http://a:b@good.test/\" cannot be fetched: it names a user"),
    ];
    for (path, want) in table {
        let error = stand.fetch(&format!("http://good.test:PORT/{path}")).await;
        assert_eq!(error.map(body), Err(want.to_owned()), "{path}");
    }
}

#[tokio::test]
async fn addresses_and_other_schemes_are_no_urls_to_fetch() {
    let stand = Stand::new(|_| ok("reached")).await;
    for url in [
        "http://127.0.0.1:PORT/",
        "http://127.1:PORT/",
        "http://0x7f000001:PORT/",
        "http://2130706433:PORT/",
        "http://[::1]:PORT/",
        "http://１２７.0.0.1:PORT/",
        "http://localhost:PORT/",
        "ftp://good.test/",
        "good.test",
        "http://",
        "http://good.test:PORT@evil.test/",
    ] {
        let error = stand.fetch(url).await.expect_err(url);
        assert!(error.contains("cannot be fetched"), "{url}: {error}");
    }
    assert_eq!(stand.server.connections(), 0);
}

#[tokio::test]
async fn a_long_document_is_cut_and_a_slow_one_is_given_up() {
    let server = Server::start(|mut stream| async move {
        let head = crate::env::outside::read_head(&mut stream).await;
        if head.contains("/slow") {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc").await;
            std::future::pending::<()>().await;
        }
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
        let chunk = vec![b'x'; 65536];
        while stream.write_all(&chunk).await.is_ok() {}
    })
    .await;
    let stand = Stand::over(server);
    let limits =
        FetchLimits { bytes: 100_000, time: Duration::from_millis(500), ..FetchLimits::default() };
    let port = stand.server.port();
    let got = fetch(&stand.way.gate, &format!("http://good.test:{port}/big"), limits).await;
    let got = got.expect("a document");
    assert_eq!((got.body.len(), got.is_cut), (100_000, true));
    let slow = fetch(&stand.way.gate, &format!("http://good.test:{port}/slow"), limits).await;
    assert_eq!(slow, Err(FetchError::TimedOut(Duration::from_millis(500))));
}

#[tokio::test]
async fn what_is_no_http_no_tls_or_compressed_is_told_by_its_kind() {
    let stand = Stand::new(|head| {
        if head.contains("/gzip") {
            "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx".to_owned()
        } else {
            "SSH-2.0-OpenSSH\r\n".to_owned()
        }
    })
    .await;
    let told = async |url: &str| stand.fetch(url).await.expect_err(url);
    let gzip = told("http://good.test:PORT/gzip").await;
    assert_eq!(gzip, "good.test answered in the encoding \"gzip\", which was not asked for");
    let ssh = told("http://good.test:PORT/").await;
    assert!(ssh.starts_with("good.test broke the connection or does not speak HTTP"), "{ssh}");
    let talks_first = Server::start(|mut stream| async move {
        let _ = stream.write_all(b"220 mail.good.test\r\n").await;
    });
    let stand = Stand::over(talks_first.await);
    let tls = stand.fetch("https://good.test:PORT/").await.expect_err("no TLS");
    assert!(tls.starts_with("good.test offers no trusted TLS connection"), "{tls}");
}

#[tokio::test]
async fn a_closed_gate_fetches_nothing() {
    let stand = Stand::new(|_| ok("reached")).await;
    stand.way.gate.close().await;
    let error = stand.fetch("http://good.test:PORT/").await.expect_err("closed");
    assert_eq!(error, "good.test:PORT was refused: the run is over");
    assert_eq!(stand.server.connections(), 0);
    let sealed = Way::new(
        NetworkPolicy::Sealed,
        dialer(&Names::default(), stand.server.address),
        Caps::default(),
    );
    let error = fetch(&sealed.gate, "https://good.test/", FetchLimits::default()).await;
    let refused = "the host is not in the task's allow_network".to_owned();
    let host = "good.test:443".to_owned();
    assert_eq!(error, Err(FetchError::Refused { host, why: refused }));
}
