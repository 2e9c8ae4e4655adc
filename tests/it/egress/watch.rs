//! The sockets of the host while a whole run goes on: looked at without a pause, by their owners.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fleet::run::RunState;
use tokio::io::AsyncWriteExt;
use tokio::sync::watch;

use super::run::{carry_out, outputs};
use crate::env::outside::{Names, Server, dialer, ok, read_head};
use crate::env::world::World;

/// Looks at the sockets of this process, of what it started and of whatever names the world's directory,
/// until it is told to stop.
struct Watch {
    stop: Arc<AtomicBool>,
    looking: std::thread::JoinHandle<BTreeSet<String>>,
    /// Everything that was seen so far.
    seen: watch::Receiver<BTreeSet<String>>,
}

impl Watch {
    fn start(world: &Path) -> Self {
        let (told, seen) = watch::channel(BTreeSet::new());
        let stop = Arc::new(AtomicBool::new(false));
        let (world, stopped) = (world.display().to_string(), stop.clone());
        let looking = std::thread::spawn(move || {
            let mut all = BTreeSet::new();
            while !stopped.load(Ordering::Relaxed) {
                all.extend(family(&world).into_iter().flat_map(sockets));
                told.send_if_modified(|seen| {
                    let is_new = *seen != all;
                    seen.clone_from(&all);
                    is_new
                });
            }
            all
        });
        Watch { stop, looking, seen }
    }

    fn end(self) -> BTreeSet<String> {
        self.stop.store(true, Ordering::Relaxed);
        self.looking.join().expect("it looks to the end")
    }
}

/// This process, its descendants, and the processes that name this directory.
fn family(world: &str) -> Vec<u32> {
    let mut parents = Vec::new();
    let mut found = BTreeSet::from([std::process::id()]);
    for entry in std::fs::read_dir("/proc").expect("processes").flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        // Behind the name, which may hold anything: the state, and the parent.
        let parent = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1));
        parents.extend(parent.and_then(|text| text.parse::<u32>().ok()).map(|it| (pid, it)));
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if String::from_utf8_lossy(&line).contains(world) {
            found.insert(pid);
        }
    }
    loop {
        let before = found.len();
        let children = parents.iter().filter(|(_, parent)| found.contains(parent));
        found.extend(children.map(|(pid, _)| *pid).collect::<Vec<_>>());
        if found.len() == before {
            return found.into_iter().collect();
        }
    }
}

/// The sockets of the host's network that a process holds: kind, own end and other end, as the kernel
/// writes them.
fn sockets(pid: u32) -> Vec<String> {
    let held: BTreeSet<String> = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| std::fs::read_link(entry.path()).ok())
        .filter_map(|target| {
            let text = target.to_string_lossy().into_owned();
            Some(text.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
        })
        .collect();
    let mut found = Vec::new();
    if held.is_empty() {
        return found;
    }
    for kind in ["tcp", "tcp6", "udp", "udp6", "udplite", "raw", "raw6", "packet"] {
        let table = std::fs::read_to_string(format!("/proc/self/net/{kind}")).unwrap_or_default();
        for line in table.lines().skip(1) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let inode = if kind == "packet" { fields.get(8) } else { fields.get(9) };
            if inode.is_some_and(|inode| held.contains(*inode)) {
                found.push(format!("{kind} {} {}", fields[1], fields[2]));
            }
        }
    }
    found
}

/// Whether both ends are on loopback, or the other one is nobody yet.
fn is_loopback(socket: &str) -> bool {
    let mut ends = socket.split(' ').skip(1).map(|end| end.split(':').next().unwrap_or_default());
    socket.starts_with("tcp ")
        && ends.next() == Some("0100007F")
        && matches!(ends.next(), Some("0100007F" | "00000000"))
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_run_goes_on_the_host_holds_no_socket_but_those_to_the_host_that_was_allowed() {
    let (release, released) = watch::channel(false);
    let server = Server::start(move |mut stream| {
        let mut released = released.clone();
        async move {
            let head = read_head(&mut stream).await;
            // What is inside waits until the watch has seen the connection.
            let _ = released.wait_for(|released| *released).await;
            let _ = stream.write_all(ok(head.lines().next().unwrap_or_default()).as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    })
    .await;
    let port = server.port();
    let names = Names::default();
    names.answer("good.test", &["127.0.0.1"]);
    names.answer("inner.test", &["10.0.0.7"]);
    let script = format!(
        r#"turns:
  - tool_calls:
      - name: bash
        arguments:
          command: |
            curl -sS http://good.test:{port}/inside
            curl -sS http://inner.test:{port}/
            curl -sS -m 2 --noproxy '*' http://192.0.2.1/
            python3 - <<'END'
            import socket
            for attempt in (
                lambda: socket.getaddrinfo("a-random-name.test", 80),
                lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("192.0.2.1", 53)),
                lambda: socket.create_connection(("127.0.0.1", {port}), 2),
            ):
                try:
                    print("passed", attempt())
                except OSError as error:
                    print("refused")
            END
  - tool_calls:
      - name: web_fetch
        arguments: {{url: 'http://good.test:{port}/tool'}}
  - tool_calls:
      - name: run_python
        arguments: {{code: 'import urllib.request as r; print(r.urlopen("http://good.test:{port}/cell").status)'}}
  - text: Done.
"#
    );
    let task = format!(
        "prompt: x\nallow_network: ['good.test:{port}', 'inner.test:{port}']\n\
         completion: {{shell: 'true', required_tools: [web_fetch, run_python]}}\n"
    );
    let world = World::new(&[("tasks/reach.yaml", &task), ("scripted/reach.yaml", &script)]);
    let mut watching = Watch::start(world.path());
    let to_server = format!(" 0100007F:{port:04X}");
    let running = carry_out(&world, "reach", dialer(&names, server.address));
    let seeing = async {
        let saw = watching.seen.wait_for(|seen| seen.iter().any(|one| one.ends_with(&to_server)));
        saw.await.expect("it looks");
        release.send(true).expect("the server waits");
    };
    let ((state, events), ()) = tokio::join!(running, seeing);
    let seen = watching.end();
    assert_eq!(state, RunState::Success, "{events:?}");
    let inside = outputs(&events)[0].1;
    assert!(inside.ends_with("\nrefused\nrefused\nrefused\n[exit 0]"), "{inside}");
    assert_eq!(server.connections(), 3);
    let others: Vec<&String> = seen.iter().filter(|socket| !is_loopback(socket)).collect();
    assert_eq!(others, Vec::<&String>::new());
}
