//! What stands for the world outside a sandbox: a resolver that answers from a table, servers on
//! loopback, and a gate over both.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use fleet::egress::{
    AddressPolicy, Caps, Dialer, Gate, HostName, HostPattern, NetworkPolicy, Resolve,
};
use fleet::run::EventKind;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Answers from a table; the last answer of a name is repeated. Writes down what it was asked.
#[derive(Clone, Default)]
pub struct Names {
    answers: Arc<Mutex<BTreeMap<String, VecDeque<Vec<IpAddr>>>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Names {
    /// The next answer for a name.
    pub fn answer(&self, name: &str, addresses: &[&str]) {
        let parsed = addresses.iter().map(|address| address.parse().expect("an address"));
        let mut answers = self.answers.lock().expect("no panic");
        answers.entry(name.to_owned()).or_default().push_back(parsed.collect());
    }

    /// Every name that was asked for, in order.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("no panic").clone()
    }
}

impl Resolve for Names {
    fn resolve<'a>(&'a self, host: &'a HostName) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>> {
        async move {
            self.asked.lock().expect("no panic").push(host.to_string());
            let mut answers = self.answers.lock().expect("no panic");
            let found = answers.get_mut(host.as_str()).and_then(|queue| match queue.len() {
                0 | 1 => queue.front().cloned(),
                _ => queue.pop_front(),
            });
            found.ok_or_else(|| std::io::Error::from(std::io::ErrorKind::NotFound))
        }
        .boxed()
    }
}

/// A server on loopback that hands each connection to a function. Ends with its owner.
pub struct Server {
    pub address: SocketAddr,
    accepting: JoinHandle<()>,
    /// Connections so far.
    pub seen: Arc<Mutex<usize>>,
}

impl Server {
    pub async fn start<F, W>(serve: F) -> Self
    where
        F: Fn(TcpStream) -> W + Send + Sync + 'static,
        W: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let seen = Arc::new(Mutex::new(0));
        let count = seen.clone();
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                *count.lock().expect("no panic") += 1;
                tokio::spawn(serve(stream));
            }
        });
        Server { address, accepting, seen }
    }

    /// Reads one request and answers it by a function of its head.
    pub async fn http(answer: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        let answer = Arc::new(answer);
        Server::start(move |mut stream| {
            let answer = answer.clone();
            async move {
                let head = read_head(&mut stream).await;
                let _ = stream.write_all(answer(&head).as_bytes()).await;
                let _ = stream.shutdown().await;
            }
        })
        .await
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    pub fn connections(&self) -> usize {
        *self.seen.lock().expect("no panic")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Everything up to the empty line, or what there was.
pub async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8_lossy(&head).into_owned()
}

/// An HTTP answer with this body.
pub fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
}

/// Hosts that a task allows.
pub fn hosts(entries: &[&str]) -> NetworkPolicy {
    let parse = |entry: &&str| HostPattern::parse(entry).expect("an entry");
    NetworkPolicy::Hosts(entries.iter().map(parse).collect())
}

/// A dialer over a table of names that may reach one server on loopback.
pub fn dialer(names: &Names, open: SocketAddr) -> Dialer {
    Dialer::new(Arc::new(names.clone()), AddressPolicy::public_and(open))
}

/// A gate and its events.
pub struct Way {
    pub gate: Gate,
    events: mpsc::Receiver<EventKind>,
}

impl Way {
    pub fn new(policy: NetworkPolicy, dialer: Dialer, caps: Caps) -> Self {
        let (sender, events) = mpsc::channel(1024);
        Way { gate: Gate::new(policy, dialer, caps, sender), events }
    }

    /// Closes the gate and gives everything that was recorded, a line each, without durations.
    pub async fn log(mut self) -> Vec<String> {
        self.gate.close().await;
        let mut lines = Vec::new();
        while let Some(event) = self.events.recv().await {
            lines.push(line(&event));
        }
        lines
    }

    /// The next event.
    pub async fn next(&mut self) -> String {
        line(&self.events.recv().await.expect("an event"))
    }
}

fn line(event: &EventKind) -> String {
    let because =
        |reason: &Option<String>| reason.as_ref().map_or(String::new(), |why| format!(": {why}"));
    match event {
        EventKind::EgressJudged { via, target, allowed, reason } => {
            let verdict = if *allowed { "allowed" } else { "denied" };
            format!("{verdict} {target} ({via}){}", because(reason))
        }
        EventKind::EgressEnded { target, sent_bytes, received_bytes, reason, .. } => {
            format!("ended {target} {sent_bytes}/{received_bytes}{}", because(reason))
        }
        EventKind::EgressSummed { allowed, denied, sent_bytes, received_bytes } => {
            format!("summed {allowed} allowed, {denied} denied, {sent_bytes}/{received_bytes}")
        }
        other => format!("{other:?}"),
    }
}
