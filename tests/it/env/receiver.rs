//! A loopback HTTP server that takes notices: it answers with the statuses that a test gave, in order,
//! then with 204, and keeps what it got.

use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use serde_json::Value;
use tokio::sync::oneshot;

use super::world::eventually;

/// Instead of a status: no answer at all.
pub const SILENCE: u16 = 0;

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Received {
    pub path: String,
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

impl Received {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("the body is JSON")
    }
}

#[derive(Clone, Debug, Default)]
struct Shared {
    statuses: Arc<Mutex<VecDeque<u16>>>,
    received: Arc<Mutex<Vec<Received>>>,
}

/// The server; it stops when it is dropped.
#[derive(Debug)]
pub struct Receiver {
    address: SocketAddr,
    shared: Shared,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Receiver {
    pub fn start(statuses: &[u16]) -> Self {
        Self::start_at(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), statuses)
    }

    /// At an address where one was before.
    pub fn start_at(address: SocketAddr, statuses: &[u16]) -> Self {
        let statuses = Arc::new(Mutex::new(statuses.iter().copied().collect()));
        let shared = Shared { statuses, ..Shared::default() };
        let listener = TcpListener::bind(address).expect("the port is free");
        listener.set_nonblocking(true).expect("the listener is made non-blocking");
        let address = listener.local_addr().expect("the listener has an address");
        let (stop, stopped) = oneshot::channel::<()>();
        let router = Router::new().fallback(answer).with_state(shared.clone());
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime is made");
            runtime.block_on(async move {
                let listener =
                    tokio::net::TcpListener::from_std(listener).expect("the listener is taken");
                tokio::select! {
                    served = async { axum::serve(listener, router).await } => {
                        served.expect("the server serves");
                    }
                    _ = stopped => {}
                }
            });
        });
        Receiver { address, shared, stop: Some(stop), thread: Some(thread) }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL, as a bundle names it.
    pub fn url(&self) -> String {
        format!("http://{}/fleet", self.address)
    }

    /// Every request so far.
    pub fn received(&self) -> Vec<Received> {
        self.shared.received.lock().expect("the list").clone()
    }

    /// Every request, once there are that many.
    pub fn wait_for(&self, number: usize) -> Vec<Received> {
        eventually("the receiver gets its requests", || {
            Some(self.received()).filter(|received| received.len() >= number)
        })
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // The thread may have ended by itself.
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the server's thread ends");
        }
    }
}

async fn answer(
    State(shared): State<Shared>,
    uri: Uri,
    headers: HeaderMap,
    body: String,
) -> StatusCode {
    let headers = headers.iter().map(|(name, value)| {
        (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    });
    let received = Received { path: uri.to_string(), headers: headers.collect(), body };
    shared.received.lock().expect("the list").push(received);
    let status = shared.statuses.lock().expect("the statuses").pop_front().unwrap_or(204);
    if status == SILENCE {
        std::future::pending::<()>().await;
    }
    StatusCode::from_u16(status).expect("a status")
}
