//! The proxy over its socket, with a resolver that answers from a table.

use std::path::Path;
use std::time::Duration;

use fleet::egress::{AddressPolicy, Caps, Dialer, NetworkPolicy, Proxy};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::env::outside::{Names, Server, Way, dialer, hosts, ok};

/// A proxy on a socket of its own.
struct Stand {
    way: Way,
    proxy: Option<Proxy>,
    dir: tempfile::TempDir,
}

impl Stand {
    fn new(policy: NetworkPolicy, dialer: Dialer, caps: Caps) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let way = Way::new(policy, dialer, caps);
        let uid = rustix::process::geteuid().as_raw();
        let proxy = Proxy::listen(&way.gate, &dir.path().join("e"), move |peer| peer == uid)
            .expect("listens");
        Stand { way, proxy: Some(proxy), dir }
    }

    async fn connect(&self) -> UnixStream {
        UnixStream::connect(self.socket()).await.expect("connected")
    }

    fn socket(&self) -> std::path::PathBuf {
        self.dir.path().join("e")
    }

    /// Sends a text; everything that comes back.
    async fn ask(&self, text: &str) -> String {
        ask(&self.socket(), text).await
    }
}

async fn ask(socket: &Path, text: &str) -> String {
    let mut stream = UnixStream::connect(socket).await.expect("connected");
    stream.write_all(text.as_bytes()).await.expect("sent");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

/// The first line and the reason of a refusal.
fn refusal(answer: &str) -> String {
    let status = answer.lines().next().unwrap_or_default();
    let why = answer.lines().find_map(|line| line.strip_prefix("X-Fleet-Egress: "));
    format!("{}: {}", &status[9..12.min(status.len())], why.unwrap_or_default())
}

/// A public address that nothing is sent to: no test lets a connection to it be made.
const PUBLIC: &str = "93.184.216.34";

#[tokio::test]
async fn an_allowed_host_is_reached_by_tunnel_and_by_plain_request_and_each_has_two_lines() {
    let server = Server::http(|head| ok(head.lines().next().unwrap_or_default())).await;
    let names = Names::default();
    names.answer("good.test", &["127.0.0.1"]);
    let port = server.port();
    let policy = hosts(&[&format!("good.test:{port}")]);
    let mut stand = Stand::new(policy, dialer(&names, server.address), Caps::default());
    let tunnel =
        format!("CONNECT GOOD.test.:{port} HTTP/1.1\r\n\r\nGET /in HTTP/1.1\r\nHost: x\r\n\r\n");
    let answer = stand.ask(&tunnel).await;
    assert!(
        answer.starts_with("HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200 OK"),
        "{answer}"
    );
    assert!(answer.ends_with("GET /in HTTP/1.1"), "{answer}");
    let plain =
        stand.ask(&format!("GET http://good.test:{port}/out HTTP/1.1\r\nHost: y\r\n\r\n")).await;
    assert!(plain.ends_with("GET /out HTTP/1.1"), "{plain}");
    let target = format!("good.test:{port}");
    let inside = "GET /in HTTP/1.1\r\nHost: x\r\n\r\n".len();
    let forced = format!("GET /out HTTP/1.1\r\nHost: {target}\r\nConnection: close\r\n\r\n").len();
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push(stand.way.next().await);
    }
    assert_eq!(
        seen,
        [
            format!("allowed {target} (sandbox)"),
            format!("ended {target} {inside}/{}", ok("GET /in HTTP/1.1").len()),
            format!("allowed {target} (sandbox)"),
            format!("ended {target} {forced}/{}", ok("GET /out HTTP/1.1").len()),
        ]
    );
}

#[tokio::test]
async fn what_is_not_allowed_is_refused_before_any_name_is_looked_up() {
    let server = Server::http(|_| ok("reached")).await;
    let names = Names::default();
    names.answer("good.test", &["127.0.0.1"]);
    let policy = hosts(&["good.test:8443", "*.sub.test"]);
    let stand = Stand::new(policy, dialer(&names, server.address), Caps::default());
    let host = "403: the host is not in the task's allow_network";
    let port =
        "403: the port is not allowed: 443 and 80, unless the task's allow_network names another";
    let address = "403: the host is an address, not a name";
    let character = "403: the host has a character that no name has";
    let table = [
        ("evil.test:443", host),
        ("good.test.evil.test:8443", host),
        ("sub.test:443", host),
        ("good.test:443", port),
        ("a.sub.test:22", port),
        ("127.0.0.1:8443", address),
        ("127.1:8443", address),
        ("0177.0.0.1:8443", address),
        ("0x7f000001:8443", address),
        ("2130706433:8443", address),
        ("[::1]:8443", address),
        ("[::ffff:127.0.0.1]:8443", address),
        ("[fe80::1%25eth0]:8443", address),
        ("169.254.169.254:80", address),
        ("evil@good.test:8443", character),
        ("good.test#evil:8443", character),
        ("good%2etest:8443", character),
        ("localhost:8443", "403: the host has no dot: it is no public name"),
    ];
    for (target, want) in table {
        let answer = stand.ask(&format!("CONNECT {target} HTTP/1.1\r\n\r\n")).await;
        assert_eq!(refusal(&answer), want, "{target}");
    }
    assert_eq!(names.asked(), [""; 0]);
    assert_eq!(server.connections(), 0);
    let log = stand.way.log().await;
    let want: Vec<String> =
        table.iter().map(|(to, why)| format!("denied {to} (sandbox): {}", &why[5..])).collect();
    assert_eq!(log, want);
}

#[tokio::test]
async fn a_name_with_one_answer_that_is_not_public_is_refused_whole() {
    let names = Names::default();
    let table = [
        ("loopback.test", vec!["127.0.0.1"], "loopback"),
        ("private.test", vec!["10.0.0.7"], "private"),
        ("mixed.test", vec![PUBLIC, "192.168.0.1"], "private"),
        ("metadata.test", vec!["169.254.169.254"], "link-local"),
        ("azure.test", vec!["168.63.129.16"], "metadata"),
        ("shared.test", vec!["100.100.100.200"], "carrier-grade NAT"),
        ("zero.test", vec!["0.0.0.0"], "unspecified"),
        ("six.test", vec!["::1"], "loopback"),
        ("mapped.test", vec!["::ffff:169.254.169.254"], "link-local"),
        ("nat64.test", vec!["64:ff9b::a9fe:a9fe"], "link-local"),
        ("sixtofour.test", vec!["2002:7f00:1::"], "6to4"),
        ("unique.test", vec!["fd00:ec2::254"], "private"),
    ];
    for (name, addresses, _) in &table {
        names.answer(name, addresses);
    }
    let dialer = Dialer::new(std::sync::Arc::new(names), AddressPolicy::public());
    let stand = Stand::new(NetworkPolicy::Public, dialer, Caps::default());
    for (name, _, kind) in &table {
        let answer = stand.ask(&format!("CONNECT {name}:443 HTTP/1.1\r\n\r\n")).await;
        let want = format!("403: the name resolves to an address that is not public ({kind})");
        assert_eq!(refusal(&answer), want, "{name}");
    }
    let unknown = stand.ask("CONNECT nowhere.test:443 HTTP/1.1\r\n\r\n").await;
    assert_eq!(refusal(&unknown), "502: the name cannot be resolved: there is no such name");
}

#[tokio::test]
async fn this_host_s_own_address_is_refused_whichever_it_is() {
    // The address by which this host speaks to others, if it has one; nothing is sent.
    let probe = std::net::UdpSocket::bind("0.0.0.0:0").expect("a socket");
    let own = probe.connect((PUBLIC, 443)).and_then(|()| probe.local_addr());
    let own = own.map_or_else(|_| "127.0.0.1".to_owned(), |address| address.ip().to_string());
    let names = Names::default();
    names.answer("me.test", &[&own]);
    let dialer = Dialer::new(std::sync::Arc::new(names), AddressPolicy::public());
    let stand = Stand::new(NetworkPolicy::Public, dialer, Caps::default());
    let answer = stand.ask("CONNECT me.test:443 HTTP/1.1\r\n\r\n").await;
    assert!(
        refusal(&answer).starts_with("403: the name resolves to an address that is not public")
    );
}

#[tokio::test]
async fn a_name_that_changes_its_address_is_dialled_as_it_was_checked() {
    let server = Server::http(|_| ok("the checked one")).await;
    let trap = Server::http(|_| ok("the trap")).await;
    let names = Names::default();
    // Rebinding: the first look-up gives what passes, every later one something else.
    names.answer("rebind.test", &["127.0.0.1"]);
    names.answer("rebind.test", &["127.0.0.2"]);
    let port = server.port();
    let policy = hosts(&[&format!("rebind.test:{port}")]);
    let stand = Stand::new(policy, dialer(&names, server.address), Caps::default());
    let request = format!("GET http://rebind.test:{port}/ HTTP/1.1\r\n\r\n");
    assert!(stand.ask(&request).await.ends_with("the checked one"));
    assert_eq!(names.asked(), ["rebind.test"], "one look-up for each connection");
    let again = stand.ask(&request).await;
    assert_eq!(
        refusal(&again),
        "403: the name resolves to an address that is not public (loopback)"
    );
    assert_eq!((server.connections(), trap.connections()), (1, 0));
}

#[tokio::test]
async fn more_bytes_than_the_run_has_end_the_connection_and_all_later_ones() {
    let server = Server::start(|mut stream| async move {
        let chunk = vec![b'x'; 64 * 1024];
        while stream.write_all(&chunk).await.is_ok() {}
    })
    .await;
    let names = Names::default();
    names.answer("big.test", &["127.0.0.1"]);
    let port = server.port();
    let caps = Caps { received_bytes: 1024 * 1024, ..Caps::default() };
    let stand =
        Stand::new(hosts(&[&format!("big.test:{port}")]), dialer(&names, server.address), caps);
    let request = format!("CONNECT big.test:{port} HTTP/1.1\r\n\r\n");
    let answer = stand.ask(&request).await;
    assert!(answer.len() <= 1024 * 1024 + 39 && answer.len() > 900 * 1024, "{}", answer.len());
    assert_eq!(refusal(&stand.ask(&request).await), "503: the run's bytes are spent");
    let log = stand.way.log().await;
    assert!(log[1].ends_with(": the run's bytes are spent"), "{log:?}");
    assert_eq!(log[2], format!("denied big.test:{port} (sandbox): the run's bytes are spent"));
}

#[tokio::test]
async fn upload_has_a_limit_of_its_own() {
    let server = Server::start(|mut stream| async move {
        let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
    })
    .await;
    let names = Names::default();
    names.answer("sink.test", &["127.0.0.1"]);
    let port = server.port();
    let caps = Caps { sent_bytes: 256 * 1024, ..Caps::default() };
    let stand =
        Stand::new(hosts(&[&format!("sink.test:{port}")]), dialer(&names, server.address), caps);
    let mut stream = stand.connect().await;
    let head = format!("CONNECT sink.test:{port} HTTP/1.1\r\n\r\n");
    stream.write_all(head.as_bytes()).await.expect("sent");
    let chunk = vec![b'x'; 64 * 1024];
    let mut sent = 0;
    while stream.write_all(&chunk).await.is_ok() {
        sent += chunk.len();
        assert!(sent < 8 * 1024 * 1024, "an upload without end");
    }
    let log = stand.way.log().await;
    assert!(log[1].ends_with("/0: the run's bytes are spent"), "{log:?}");
}

#[tokio::test]
async fn a_silent_server_a_silent_client_and_an_endless_head_are_ended() {
    let server = Server::start(|stream| async move {
        let _held = stream;
        std::future::pending::<()>().await;
    })
    .await;
    let names = Names::default();
    names.answer("slow.test", &["127.0.0.1"]);
    let port = server.port();
    let short = Duration::from_millis(200);
    let caps = Caps { idle: short, head: short, ..Caps::default() };
    let stand =
        Stand::new(hosts(&[&format!("slow.test:{port}")]), dialer(&names, server.address), caps);
    let tunnel = stand.ask(&format!("CONNECT slow.test:{port} HTTP/1.1\r\n\r\n")).await;
    assert_eq!(tunnel, "HTTP/1.1 200 Connection established\r\n\r\n");
    let slow = stand.ask("CONNECT slow.test").await;
    assert_eq!(refusal(&slow), "408: the request did not arrive in time");
    let endless = stand.ask(&"x".repeat(40_000)).await;
    assert_eq!(refusal(&endless), "400: the request is malformed: its head is longer than 16 KiB");
    let log = stand.way.log().await;
    assert_eq!(log[1], format!("ended slow.test:{port} 0/0: nothing passed for too long"));
}

#[tokio::test]
async fn connections_beyond_the_limit_are_refused_and_a_flood_waits_outside() {
    let server = Server::start(|stream| async move {
        let _held = stream;
        std::future::pending::<()>().await;
    })
    .await;
    let names = Names::default();
    names.answer("held.test", &["127.0.0.1"]);
    let port = server.port();
    let caps = Caps { connections: 2, ..Caps::default() };
    let stand =
        Stand::new(hosts(&[&format!("held.test:{port}")]), dialer(&names, server.address), caps);
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut stream = stand.connect().await;
        let head = format!("CONNECT held.test:{port} HTTP/1.1\r\n\r\n");
        stream.write_all(head.as_bytes()).await.expect("sent");
        let mut answer = [0_u8; 39];
        stream.read_exact(&mut answer).await.expect("established");
        held.push(stream);
    }
    let third = stand.ask(&format!("CONNECT held.test:{port} HTTP/1.1\r\n\r\n")).await;
    assert_eq!(refusal(&third), "503: too many connections at once");
    drop(held);
    let before = open_files();
    let flood: Vec<_> = futures_util::future::join_all((0..200).map(|_| stand.connect())).await;
    // Ours are 200; the proxy took no more than its limit and those that it tells so.
    assert!(open_files() <= before + 200 + 2 + 16, "{} then {}", before, open_files());
    drop(flood);
}

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("this process").count()
}

#[tokio::test]
async fn the_log_has_lines_for_two_hundred_connections_and_sums_for_the_rest() {
    let names = Names::default();
    let dialer = Dialer::new(std::sync::Arc::new(names), AddressPolicy::public());
    let stand = Stand::new(hosts(&["good.test"]), dialer, Caps::default());
    for _ in 0..230 {
        stand.ask("CONNECT evil.test:443 HTTP/1.1\r\n\r\n").await;
    }
    let log = stand.way.log().await;
    assert_eq!(log.len(), 201);
    assert_eq!(log[200], "summed 0 allowed, 30 denied, 0/0");
}

#[tokio::test]
async fn closing_the_gate_ends_what_is_open_and_nothing_opens_again() {
    let server = Server::start(|mut stream| async move {
        let _ = stream.write_all(b"first").await;
        std::future::pending::<()>().await;
    })
    .await;
    let names = Names::default();
    names.answer("good.test", &["127.0.0.1"]);
    let port = server.port();
    let policy = hosts(&[&format!("good.test:{port}")]);
    let mut stand = Stand::new(policy, dialer(&names, server.address), Caps::default());
    let head = format!("CONNECT good.test:{port} HTTP/1.1\r\n\r\n");
    let mut stream = stand.connect().await;
    stream.write_all(head.as_bytes()).await.expect("sent");
    let mut answer = vec![0_u8; 39 + 5];
    stream.read_exact(&mut answer).await.expect("the beginning of a body");
    assert_eq!(stand.way.next().await, format!("allowed good.test:{port} (sandbox)"));
    stand.way.gate.close().await;
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest).await;
    assert_eq!(rest, b"");
    let refused = UnixStream::connect(stand.socket()).await;
    assert_eq!(refused.expect_err("closed").kind(), std::io::ErrorKind::ConnectionRefused);
    assert_eq!(stand.way.next().await, format!("ended good.test:{port} 0/5: the run is over"));
}

#[tokio::test]
async fn a_dropped_proxy_ends_its_connections_and_its_socket() {
    let server = Server::start(|stream| async move {
        let _held = stream;
        std::future::pending::<()>().await;
    })
    .await;
    let names = Names::default();
    names.answer("good.test", &["127.0.0.1"]);
    let port = server.port();
    let policy = hosts(&[&format!("good.test:{port}")]);
    let mut stand = Stand::new(policy, dialer(&names, server.address), Caps::default());
    let mut stream = stand.connect().await;
    let head = format!("CONNECT good.test:{port} HTTP/1.1\r\n\r\n");
    stream.write_all(head.as_bytes()).await.expect("sent");
    let mut answer = [0_u8; 39];
    stream.read_exact(&mut answer).await.expect("established");
    stand.proxy = None;
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest).await;
    assert_eq!(rest, b"");
    crate::env::sandbox::wait_until("the socket refuses", || {
        std::os::unix::net::UnixStream::connect(stand.socket()).is_err()
    })
    .await;
}

#[tokio::test]
async fn another_user_s_process_is_cut() {
    let names = Names::default();
    let way = Way::new(
        hosts(&["good.test"]),
        Dialer::new(std::sync::Arc::new(names), AddressPolicy::public()),
        Caps::default(),
    );
    let dir = tempfile::tempdir().expect("a directory");
    let socket = dir.path().join("e");
    let stranger = rustix::process::geteuid().as_raw() + 1;
    let _proxy = Proxy::listen(&way.gate, &socket, move |peer| peer == stranger).expect("listens");
    let mut stream = UnixStream::connect(&socket).await.expect("connected");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    assert_eq!(answer, b"");
    assert_eq!(way.log().await, [""; 0]);
}
