//! The way out of a real container: nothing but the proxy, whatever is tried inside.

use std::time::Duration;

use fleet::egress::{Caps, NetworkPolicy};
use fleet::sandbox::{Call, PodmanSandbox, Reply, Sandbox};
use tokio::io::AsyncWriteExt;
use tokio_util::sync::CancellationToken;

use crate::env::outside::{Names, Server, Way, dialer, hosts, ok};
use crate::env::sandbox::{Cell, wait_until};

/// A container with a way out.
struct Stand {
    cell: Cell,
    way: Way,
    sandbox: PodmanSandbox,
}

impl Stand {
    async fn start(run: &str, policy: NetworkPolicy, names: &Names, server: &Server) -> Self {
        let cell = Cell::new().await;
        let way = Way::new(policy, dialer(names, server.address), Caps::default());
        let mut spec = cell.spec(run);
        spec.egress = Some(way.gate.clone());
        let sandbox = cell.start_spec(spec).await;
        Stand { cell, way, sandbox }
    }

    async fn told(&self, command: &str) -> String {
        told(&self.sandbox, command).await
    }
}

/// What a command prints, both outputs.
pub(super) async fn told(sandbox: &PodmanSandbox, command: &str) -> String {
    let timeout = Duration::from_secs(30);
    let call = Call::Bash { command: format!("exec 2>&1\n{command}"), cwd: None, timeout };
    match sandbox.call(call, &CancellationToken::new()).await.expect("answered") {
        Reply::Command(output) => String::from_utf8_lossy(&output.output).into_owned(),
        other => panic!("a command was answered by {other:?}"),
    }
}

/// A server on loopback with one name that may be reached.
async fn good(
    answer: impl Fn(&str) -> String + Send + Sync + 'static,
) -> (Server, Names, NetworkPolicy) {
    let server = Server::http(answer).await;
    let names = Names::default();
    names.answer("good.test", &["127.0.0.1"]);
    let policy = hosts(&[&format!("good.test:{}", server.port())]);
    (server, names, policy)
}

#[tokio::test]
async fn programs_find_the_proxy_by_the_usual_variables() {
    let (server, names, policy) = good(|head| ok(head.lines().next().unwrap_or_default())).await;
    let stand = Stand::start("run-egress", policy, &names, &server).await;
    let port = server.port();
    let python = format!(
        "python3 -c 'import urllib.request as r; print(r.urlopen(\"http://good.test:{port}/p\").read().decode())'"
    );
    assert_eq!(stand.told(&python).await, "GET /p HTTP/1.1\n");
    let curl = format!("curl -sS --proxytunnel http://good.test:{port}/c");
    assert_eq!(stand.told(&curl).await, "GET /c HTTP/1.1");
    let kernel = Call::Python {
        code: format!(
            "import urllib.request as r\nr.urlopen('http://good.test:{port}/k').read().decode()"
        ),
        timeout: Duration::from_secs(30),
        reset_kernel: false,
        return_vars: Vec::new(),
    };
    let reply = stand.sandbox.call(kernel, &CancellationToken::new()).await.expect("answered");
    assert!(format!("{reply:?}").contains("GET /k HTTP/1.1"), "{reply:?}");
    let denied = stand.told("curl -sS -o /dev/null -w '%{http_connect} ' https://evil.test/").await;
    assert!(denied.starts_with("403 ") || denied.ends_with("403 "), "{denied}");
    stand.sandbox.close().await;
    let log = stand.way.log().await;
    assert_eq!(
        log.last().map(String::as_str),
        Some("denied evil.test:443 (sandbox): the host is not in the task's allow_network")
    );
}

#[tokio::test]
async fn addresses_in_every_spelling_are_refused_from_inside() {
    let (server, names, _) = good(|_| ok("reached")).await;
    let policy = NetworkPolicy::Public;
    let stand = Stand::start("run-literal", policy, &names, &server).await;
    let port = server.port();
    let script = format!(
        "python3 - <<'END'\nimport socket\n\
         for host in ['127.0.0.1', '127.1', '0177.0.0.1', '0x7f000001', '2130706433', '[::1]', \
         '[::ffff:127.0.0.1]', '[fe80::1%25lo]', '169.254.169.254', '0', '127.0.0.1.']:\n\
         \x20   for line in ['CONNECT %s:{port} HTTP/1.1', 'GET http://%s:{port}/ HTTP/1.1']:\n\
         \x20       s = socket.create_connection(('127.0.0.1', 3128))\n\
         \x20       s.sendall((line % host + '\\r\\n\\r\\n').encode())\n\
         \x20       print(s.makefile('rb').read().split(b'\\r\\n')[0].decode()[9:12], end=' ')\nEND"
    );
    assert_eq!(stand.told(&script).await, "403 ".repeat(22));
    assert_eq!(server.connections(), 0);
    stand.sandbox.close().await;
}

#[tokio::test]
async fn a_redirect_of_an_allowed_host_leads_nowhere_else() {
    let (server, names, policy) = good(|_| {
        "HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/latest/meta-data/\r\n\
         Content-Length: 0\r\nConnection: close\r\n\r\n"
            .to_owned()
    })
    .await;
    let stand = Stand::start("run-redirect", policy, &names, &server).await;
    let seen = stand
        .told(&format!("curl -sSL -w ' %{{http_code}}' http://good.test:{}/", server.port()))
        .await;
    assert_eq!(seen, "fleet: the host is an address, not a name\n 403");
    stand.sandbox.close().await;
    let log = stand.way.log().await;
    let denied = "denied 169.254.169.254 (sandbox): the host is an address, not a name";
    assert!(log.iter().any(|line| line == denied), "{log:?}");
}

#[tokio::test]
async fn a_relay_inside_gains_nothing_and_the_socket_stays_what_it_is() {
    let (server, names, policy) = good(|_| ok("reached")).await;
    let stand = Stand::start("run-relay", policy, &names, &server).await;
    let port = server.port();
    // A relay of the model's own, to fleet's socket, and requests through it.
    let script = format!(
        "python3 - 2>/dev/null <<'END'\nimport os, socket, threading\n\
         def relay(server):\n    while True:\n        a, _ = server.accept()\n        \
         b = socket.socket(socket.AF_UNIX)\n        b.connect('/fleet/e')\n        \
         for x, y in ((a, b), (b, a)):\n            \
         threading.Thread(target=carry, args=(x, y), daemon=True).start()\n\
         def carry(x, y):\n    while True:\n        data = x.recv(65536)\n        \
         if not data:\n            y.shutdown(1)\n            return\n        y.sendall(data)\n\
         server = socket.create_server(('127.0.0.1', 8080))\n\
         threading.Thread(target=relay, args=(server,), daemon=True).start()\n\
         for target in ('evil.test:443', '10.0.0.1:80', 'good.test:{port}'):\n    \
         s = socket.create_connection(('127.0.0.1', 8080))\n    \
         s.sendall(('CONNECT %s HTTP/1.1\\r\\n\\r\\n' % target).encode())\n    \
         print(s.recv(12).decode()[9:])\n\
         for attempt in (lambda: os.unlink('/fleet/e'), lambda: os.rename('/tmp/x', '/fleet/e'),\n                \
         lambda: open('/fleet/y', 'w'), lambda: os.chmod('/fleet/e', 0o777)):\n    \
         try:\n        attempt()\n        print('done')\n    \
         except OSError as error:\n        print(error.errno in (30, 18, 2))\nEND"
    );
    assert_eq!(stand.told(&script).await, "403\n403\n200\nTrue\nTrue\nTrue\nTrue\n");
    stand.sandbox.close().await;
}

#[tokio::test]
async fn a_proxy_that_dies_in_the_middle_of_a_body_opens_nothing() {
    let server = Server::start(|mut stream| async move {
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nbeginning";
        let _ = stream.write_all(head).await;
        std::future::pending::<()>().await;
    })
    .await;
    let names = Names::default();
    names.answer("good.test", &["127.0.0.1"]);
    let port = server.port();
    let policy = hosts(&[&format!("good.test:{port}")]);
    let stand = Stand::start("run-death", policy, &names, &server).await;
    let script = format!(
        "curl -sS --no-buffer -o part http://good.test:{port}/; \
         curl -sS http://good.test:{port}/; cat /proc/net/dev | tail -n +3 | cut -d: -f1"
    );
    let gate = stand.way.gate.clone();
    let closing = async {
        let part = stand.cell.path("ws/part");
        wait_until("the body begins", || part.metadata().is_ok_and(|file| file.len() > 0)).await;
        gate.close().await;
    };
    let (seen, ()) = tokio::join!(told(&stand.sandbox, &script), closing);
    assert!(seen.contains("with 9") && seen.contains("remaining to read"), "{seen}");
    assert!(seen.ends_with("    lo\n"), "{seen}");
    assert_eq!(server.connections(), 1);
    stand.sandbox.close().await;
}

#[tokio::test]
async fn a_big_body_comes_through_whole_both_ways() {
    const SIZE: usize = 20 * 1024 * 1024;
    let server = Server::start(|mut stream| async move {
        let head = crate::env::outside::read_head(&mut stream).await;
        if head.starts_with("PUT") {
            let mut count = 0;
            let mut chunk = vec![0_u8; 65536];
            while count < SIZE {
                count +=
                    tokio::io::AsyncReadExt::read(&mut stream, &mut chunk).await.expect("read");
            }
            let _ = stream.write_all(ok(&count.to_string()).as_bytes()).await;
        } else {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {SIZE}\r\n\r\n");
            let _ = stream.write_all(head.as_bytes()).await;
            let _ = stream.write_all(&vec![b'x'; SIZE]).await;
        }
        let _ = stream.shutdown().await;
    })
    .await;
    let names = Names::default();
    names.answer("good.test", &["127.0.0.1"]);
    let port = server.port();
    let policy = hosts(&[&format!("good.test:{port}")]);
    let stand = Stand::start("run-big", policy, &names, &server).await;
    let down = stand.told(&format!("curl -sS http://good.test:{port}/ | wc -c")).await;
    assert_eq!(down, format!("{SIZE}\n"));
    let up = stand
        .told(&format!(
            "head -c {SIZE} /dev/zero | curl -sS -H 'Expect:' -T - http://good.test:{port}/ ; echo"
        ))
        .await;
    // curl streams in chunks of its own, so that there are more bytes than were read.
    assert!(up.trim().parse::<usize>().is_ok_and(|count| count >= SIZE), "{up}");
    stand.sandbox.close().await;
}

#[tokio::test]
async fn a_sandbox_with_a_way_out_has_no_network_and_no_socket_outside() {
    let (server, names, policy) = good(|_| ok("reached")).await;
    let stand = Stand::start("run-sockets", policy, &names, &server).await;
    let pid = container_pid(&stand);
    let net = |file: &str| {
        std::fs::read_to_string(format!("/proc/{pid}/net/{file}")).expect("the container's sockets")
    };
    let request = format!("curl -sS http://good.test:{}/", server.port());
    let outward = "python3 -c 'import socket; socket.create_connection((\"192.0.2.1\", 80), 2)'";
    let lookup = "python3 -c 'import socket; socket.getaddrinfo(\"random-name.test\", 80)'";
    assert_eq!(stand.told(&request).await, "reached");
    assert!(stand.told(outward).await.contains("Network is unreachable"));
    assert!(stand.told(lookup).await.contains("gaierror"));
    // In its namespace: the forwarder's port and connections to it, all on loopback; no datagram.
    for line in net("tcp").lines().skip(1) {
        let mut fields = line.split_whitespace().skip(1);
        let local = fields.next().expect("a local address");
        assert!(local.starts_with("0100007F:"), "{line}");
    }
    assert_eq!(net("tcp").lines().skip(1).filter(|line| line.contains(" 0A ")).count(), 1);
    assert_eq!(
        [net("tcp6"), net("udp"), net("udp6"), net("raw")].map(|t| t.lines().count()),
        [1; 4]
    );
    assert_eq!(net("route").lines().count(), 1, "{}", net("route"));
    assert_eq!(names.asked(), ["good.test"], "no other name was looked up");
    stand.sandbox.close().await;
}

#[tokio::test]
async fn a_sealed_run_has_no_port_no_variables_and_asks_for_no_name() {
    let cell = Cell::new().await;
    let sandbox = cell.start("run-sealed").await;
    let seen = told(
        &sandbox,
        "env | grep -ci proxy; ls /fleet/e; curl -sS -m 2 -x http://127.0.0.1:3128 http://good.test/; \
         python3 -c 'import socket; socket.getaddrinfo(\"a-random-name-of-a-sealed-run.test\", 80)'; \
         wc -l < /proc/net/udp; wc -l < /proc/net/tcp",
    )
    .await;
    let lines: Vec<&str> = seen.lines().collect();
    assert_eq!(lines[0], "0");
    assert!(lines[1].contains("No such file"), "{seen}");
    assert!(seen.contains("Failed to connect to 127.0.0.1 port 3128"), "{seen}");
    assert!(seen.contains("gaierror"), "{seen}");
    assert!(seen.ends_with("1\n1\n"), "{seen}");
    sandbox.close().await;
}

#[tokio::test]
async fn many_connections_at_once_are_carried_or_refused_and_none_is_left() {
    let (server, names, policy) = good(|_| ok("reached")).await;
    let stand = Stand::start("run-many", policy, &names, &server).await;
    let script = format!(
        "seq 300 | xargs -P 100 -I% curl -sS -o /dev/null -w '%{{http_code}}\\n' http://good.test:{}/ \
         | sort | uniq -c | awk '{{ n += $1 }} END {{ print n }}'",
        server.port()
    );
    assert_eq!(stand.told(&script).await, "300\n");
    // The next one finds everything free again.
    let next = format!("curl -sS http://good.test:{}/", server.port());
    assert_eq!(stand.told(&next).await, "reached");
    stand.sandbox.close().await;
}

#[tokio::test]
async fn the_socket_goes_with_the_container() {
    let (server, names, policy) = good(|_| ok("reached")).await;
    let stand = Stand::start("run-gone", policy, &names, &server).await;
    let door = doors(&stand.cell);
    assert_eq!(door.len(), 1);
    assert!(door[0].join("e").exists());
    stand.sandbox.close().await;
    wait_until("the door is removed", || doors(&stand.cell).is_empty()).await;
}

/// The doors of a state directory's sandboxes.
fn doors(cell: &Cell) -> Vec<std::path::PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").expect("XDG_RUNTIME_DIR is set");
    let fleet = std::path::Path::new(&runtime).join("fleet");
    let mut found = Vec::new();
    for place in std::fs::read_dir(fleet).into_iter().flatten().flatten() {
        for entry in std::fs::read_dir(place.path()).into_iter().flatten().flatten() {
            let path = entry.path();
            let owner = std::fs::read_to_string(path.with_extension("owner")).unwrap_or_default();
            if path.is_dir() && owner.starts_with(&cell.state_label()) {
                found.push(path);
            }
        }
    }
    found
}

/// The first process of the container, as the host sees it.
fn container_pid(stand: &Stand) -> u32 {
    let output = crate::env::sandbox::podman_command(&stand.cell.seal.runtime)
        .args(["inspect", "--format", "{{.State.Pid}}", stand.sandbox.container()])
        .output()
        .expect("podman starts");
    String::from_utf8_lossy(&output.stdout).trim().parse().expect("a process")
}

#[tokio::test]
async fn while_a_connection_is_open_no_process_of_the_sandbox_has_a_socket_of_the_host_s_network() {
    let (release, released) = tokio::sync::watch::channel(false);
    let server = Server::start(move |mut stream| {
        let mut released = released.clone();
        async move {
            let _ = released.wait_for(|released| *released).await;
            let _ = stream.write_all(b"let go").await;
        }
    })
    .await;
    let names = Names::default();
    names.answer("good.test", &["127.0.0.1"]);
    let port = server.port();
    let policy = hosts(&[&format!("good.test:{port}")]);
    let mut stand = Stand::start("run-holder", policy, &names, &server).await;
    let marker = format!("holder-of-{}", server.port());
    let script = format!(
        "python3 -c 'import socket\ns = socket.create_connection((\"127.0.0.1\", 3128))\n\
         s.sendall(b\"CONNECT good.test:{port} HTTP/1.1\\r\\n\\r\\n\")\n\
         print(s.makefile().read()[-6:])' {marker}",
    );
    let watching = async {
        while !stand.way.next().await.starts_with("allowed") {}
        let seen = processes_of(&marker);
        let verdicts: Vec<_> =
            seen.iter().map(|pid| (foreign_sockets(*pid), same_network(*pid))).collect();
        release.send(true).expect("the server waits");
        verdicts
    };
    let (said, verdicts) = tokio::join!(told(&stand.sandbox, &script), watching);
    assert_eq!(said, "let go\n");
    assert!(!verdicts.is_empty());
    assert!(verdicts.iter().all(|verdict| *verdict == (Vec::new(), false)), "{verdicts:?}");
    stand.sandbox.close().await;
}

/// Processes with this word among their arguments.
fn processes_of(word: &str) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").expect("processes").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let has = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|argument| argument == word.as_bytes())
    };
    pids.filter(has).collect()
}

/// Sockets of the host's network that a process holds.
fn foreign_sockets(pid: u32) -> Vec<String> {
    let mut held = std::collections::BTreeSet::new();
    for entry in std::fs::read_dir(format!("/proc/{pid}/fd")).expect("its files").flatten() {
        let target = std::fs::read_link(entry.path()).unwrap_or_default();
        let text = target.to_string_lossy().into_owned();
        if let Some(inode) = text.strip_prefix("socket:[").and_then(|text| text.strip_suffix(']')) {
            held.insert(inode.to_owned());
        }
    }
    assert!(!held.is_empty(), "it holds its connection to the forwarder");
    let mut found = Vec::new();
    for file in ["tcp", "tcp6", "udp", "udp6", "raw", "raw6"] {
        let host = std::fs::read_to_string(format!("/proc/self/net/{file}")).unwrap_or_default();
        let lines = host.lines().skip(1);
        found.extend(
            lines
                .filter(|line| {
                    line.split_whitespace().nth(9).is_some_and(|inode| held.contains(inode))
                })
                .map(str::to_owned),
        );
    }
    found
}

/// Whether a process shares this one's network namespace.
fn same_network(pid: u32) -> bool {
    let of = |who: &str| std::fs::read_link(format!("/proc/{who}/ns/net")).expect("a namespace");
    of(&pid.to_string()) == of("self")
}
