//! The system's resolver for real, over a name server of the test's own: each test lies in a network and
//! with resolver files that nobody else sees.

use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::{Arc, Mutex};

use fleet::egress::{
    AddressPolicy, Caps, Dialer, FetchLimits, NetworkPolicy, SystemResolver, fetch,
};
use tokio::net::UdpSocket;

use crate::env::again;
use crate::env::outside::{Server, Way, hosts, ok};

/// An address that looks public, and in the test's network is this host's own.
const OWN: Ipv4Addr = Ipv4Addr::new(93, 184, 216, 34);

/// Loopback up, and the address [`OWN`] on it: by Python, because fleet needs that anyway.
const NETWORK: &str = r#"
import fcntl, socket, struct
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
fcntl.ioctl(s, 0x8914, struct.pack("16sH22x", b"lo", 0x41))
fcntl.ioctl(s, 0x8916, struct.pack("16sHH4s16x", b"lo:1", socket.AF_INET, 0, socket.inet_aton("93.184.216.34")))
"#;

const FILES: [(&str, &str); 3] = [
    ("hosts", "127.0.0.1 localhost localhost.localdomain hosts-file.test\n"),
    ("nsswitch.conf", "hosts: files dns\n"),
    (
        "resolv.conf",
        "nameserver 127.0.0.1\nsearch lure.test\noptions ndots:9 timeout:2 attempts:1\n",
    ),
];

/// Carries the test out in a network and with resolver files of its own.
fn apart(test: &str) {
    let dir = tempfile::tempdir().expect("a directory");
    let mut script = "set -e\n".to_owned();
    for (name, text) in FILES {
        std::fs::write(dir.path().join(name), text).expect("written");
        script += &format!("mount --bind \"$0/{name}\" \"$(readlink -f /etc/{name})\"\n");
    }
    std::fs::write(dir.path().join("network.py"), NETWORK).expect("written");
    script += "python3 \"$0/network.py\"\nexec \"$@\"\n";
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "--net", "sh", "-c", &script]);
    command.arg(dir.path());
    again::carry_out(command, &format!("egress::system::{test}"));
}

/// A name server on loopback: which name has which address. Every other name does not exist.
struct NameServer {
    asked: Arc<Mutex<Vec<String>>>,
}

impl NameServer {
    async fn start(names: &[(&'static str, Ipv4Addr)]) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:53").await.expect("its own network");
        let names = names.to_vec();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let writing = asked.clone();
        tokio::spawn(async move {
            let mut packet = [0; 512];
            while let Ok((length, from)) = socket.recv_from(&mut packet).await {
                let (name, answer) = answer(&packet[..length], &names);
                writing.lock().expect("no panic").push(name);
                let _ = socket.send_to(&answer, from).await;
            }
        });
        NameServer { asked }
    }

    /// The names that were asked for, each once.
    fn asked(&self) -> Vec<String> {
        let mut names = self.asked.lock().expect("no panic").clone();
        names.sort();
        names.dedup();
        names
    }
}

/// The name that a query asks for, and its answer (RFC 1035, section 4).
fn answer(query: &[u8], names: &[(&str, Ipv4Addr)]) -> (String, Vec<u8>) {
    let mut labels = Vec::new();
    let mut at = 12;
    while query[at] != 0 {
        let end = at + 1 + usize::from(query[at]);
        labels.push(String::from_utf8_lossy(&query[at + 1..end]).into_owned());
        at = end;
    }
    let name = labels.join(".").to_ascii_lowercase();
    let question = &query[12..at + 5];
    let wants_v4 = question[question.len() - 3] == 1;
    let found = names.iter().find(|(known, _)| *known == name);
    let record = found.filter(|_| wants_v4);
    let code = if found.is_some() { 0x80 } else { 0x83 };
    let mut reply = query[..2].to_vec();
    reply.extend([0x81, code, 0, 1, 0, u8::from(record.is_some()), 0, 0, 0, 0]);
    reply.extend(question);
    if let Some((_, address)) = record {
        reply.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
        reply.extend(address.octets());
    }
    (name, reply)
}

/// What is told of a fetch.
async fn told(way: &Way, url: &str) -> String {
    match fetch(&way.gate, url, FetchLimits::default()).await {
        Ok(fetched) => String::from_utf8_lossy(&fetched.body).into_owned(),
        Err(error) => error.to_string(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_system_s_resolver_is_asked_for_the_name_itself_and_its_answers_are_checked() {
    if !again::is_second() {
        let test = "the_system_s_resolver_is_asked_for_the_name_itself_and_its_answers_are_checked";
        return apart(test);
    }
    let names = NameServer::start(&[
        ("good.test", Ipv4Addr::LOCALHOST),
        ("inner.test", Ipv4Addr::new(10, 0, 0, 7)),
        ("own.test", OWN),
        ("missing.test.lure.test", OWN),
    ])
    .await;
    let server = Server::http(|_| ok("reached")).await;
    let port = server.port();
    let listed = ["good.test", "inner.test", "own.test", "missing.test"];
    let listed = listed.map(|name| format!("{name}:{port}"));
    let policy = hosts(&listed.each_ref().map(String::as_str));
    let resolver = Arc::new(SystemResolver::default());
    let open = Dialer::new(resolver, AddressPolicy::public_and(server.address));
    let way = Way::new(policy, open, Caps::default());
    let table = [
        ("good", "reached".to_owned()),
        ("inner", refused("inner", "the name resolves to an address that is not public (private)")),
        ("own", refused("own", "the name resolves to an address that is not public (this host)")),
        ("missing", refused("missing", "the name cannot be resolved: there is no such name")),
    ];
    for (name, want) in table {
        let seen = told(&way, &format!("http://{name}.test:{port}/")).await;
        assert_eq!(seen.replace(&port.to_string(), "PORT"), want, "{name}");
    }
    assert_eq!(names.asked(), ["good.test", "inner.test", "missing.test", "own.test"]);
    assert_eq!(server.connections(), 1);
}

fn refused(name: &str, why: &str) -> String {
    format!("{name}.test:PORT was refused: {why}")
}

/// What every run gets: no exception, every public host.
#[tokio::test(flavor = "multi_thread")]
async fn names_of_this_host_lead_nowhere_whoever_knows_them() {
    if !again::is_second() {
        return apart("names_of_this_host_lead_nowhere_whoever_knows_them");
    }
    let names = NameServer::start(&[
        ("hosts-file.test", Ipv4Addr::new(10, 0, 0, 7)),
        ("local.test", Ipv4Addr::LOCALHOST),
        ("own.test", OWN),
    ])
    .await;
    let server = std::net::TcpListener::bind((OWN, 80)).expect("its own network");
    server.set_nonblocking(true).expect("it is a socket");
    let way = Way::new(NetworkPolicy::Public, Dialer::default(), Caps::default());
    for name in ["localhost", "LOCALHOST.", "ip6-localhost"] {
        let told = told(&way, &format!("http://{name}/")).await;
        assert!(told.ends_with("the host has no dot: it is no public name"), "{name}: {told}");
    }
    for name in
        ["localhost.localdomain", "a.localhost", "hosts-file.test", "local.test", "own.test"]
    {
        let told = told(&way, &format!("http://{name}/")).await;
        assert!(told.starts_with(&format!("{name}:80 was refused: the name ")), "{name}: {told}");
    }
    assert!(names.asked().iter().all(|name| !name.ends_with("lure.test")), "{:?}", names.asked());
    let reached = server.accept().map(|(_, from)| from).map_err(|error| error.kind());
    assert_eq!(reached, Err(std::io::ErrorKind::WouldBlock));
}
