//! A loopback server that speaks the wire formats of models: it answers with what a test scripted, in order, and
//! records what it was asked. It runs on a thread of its own, so that tests without a runtime can use
//! it as well.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Request, Response, StatusCode};
use futures_util::{Stream, StreamExt, stream};
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};

/// One scripted answer.
#[derive(Clone, Debug)]
pub enum Reply {
    /// Status 200 and an event stream of these lines, each sent by itself.
    Stream { events: Vec<String>, end: StreamEnd },
    /// A body in one piece.
    Whole { status: u16, headers: Vec<(String, String)>, body: String },
    /// Nothing, until the client gives up.
    Silence,
}

/// How a stream ends.
#[derive(Clone, Copy, Debug)]
pub enum StreamEnd {
    Clean,
    /// The connection breaks.
    Cut,
    /// Nothing more comes.
    Stall,
}

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Asked {
    pub path: String,
    pub authorization: Option<String>,
    pub headers: HeaderMap,
    pub body: Value,
}

/// The server; it stops when it is dropped.
pub struct ModelServer {
    address: SocketAddr,
    shared: Shared,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// Answers a request, as long as it has an answer.
type Responder = dyn Fn(&Asked) -> Option<Reply> + Send + Sync;

#[derive(Clone)]
struct Shared {
    respond: Arc<Responder>,
    asked: watch::Sender<Vec<Asked>>,
    /// Connections whose client went away before the answer ended.
    abandoned: watch::Sender<usize>,
}

impl ModelServer {
    /// A server that answers with `replies`, and with status 500 when they are used up.
    pub fn start(replies: Vec<Reply>) -> Self {
        let replies = Mutex::new(VecDeque::from(replies));
        Self::answering(move |_| replies.lock().expect("no test panics in here").pop_front())
    }

    /// A server whose answers depend on what it is asked; status 500 where there is none.
    pub fn answering(respond: impl Fn(&Asked) -> Option<Reply> + Send + Sync + 'static) -> Self {
        let shared = Shared {
            respond: Arc::new(respond),
            asked: watch::Sender::default(),
            abandoned: watch::Sender::default(),
        };
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
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
        ModelServer { address, shared, stop: Some(stop), thread: Some(thread) }
    }

    /// The base URL, as a bundle names it.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The URL of any other path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Every request so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.shared.asked.borrow().clone()
    }

    /// Returns once that many requests have come.
    pub async fn wait_for_requests(&self, number: usize) {
        let mut seen = self.shared.asked.subscribe();
        seen.wait_for(|asked| asked.len() >= number).await.expect("the server lives");
    }

    /// Returns once a client has gone away before its answer ended.
    pub async fn wait_for_abandoned(&self) {
        let mut seen = self.shared.abandoned.subscribe();
        seen.wait_for(|abandoned| *abandoned > 0).await.expect("the server lives");
    }
}

impl Drop for ModelServer {
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

/// Text, then a plain end and usage.
pub fn streams_text(text: &str) -> Reply {
    streams(&[
        json!({"choices": [{"index": 0, "delta": {"role": "assistant", "content": text}}]}),
        finish("stop"),
        usage(100, 10),
    ])
}

/// One call, then its end and usage.
pub fn streams_call(id: &str, tool: &str, arguments: &str) -> Reply {
    streams(&[
        delta(json!({"tool_calls": [{
            "index": 0, "id": id, "type": "function",
            "function": {"name": tool, "arguments": arguments}
        }]})),
        finish("tool_calls"),
        usage(100, 10),
    ])
}

/// A well-formed stream of chunks, `[DONE]` last.
pub fn streams(chunks: &[Value]) -> Reply {
    let mut events: Vec<_> = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    events.push("data: [DONE]\n\n".to_owned());
    Reply::Stream { events, end: StreamEnd::Clean }
}

/// A stream of named events, as Messages sends them.
pub fn streams_events(events: &[Value]) -> Reply {
    let events = events
        .iter()
        .map(|event| {
            let name = event["type"].as_str().expect("an event has a type");
            format!("event: {name}\ndata: {event}\n\n")
        })
        .collect();
    Reply::Stream { events, end: StreamEnd::Clean }
}

/// A chunk with that delta.
pub fn delta(delta: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta}]})
}

/// The chunk that says why the model stopped.
pub fn finish(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

/// The chunk with usage.
pub fn usage(prompt: u64, completion: u64) -> Value {
    json!({"choices": [], "usage": {"prompt_tokens": prompt, "completion_tokens": completion}})
}

/// A refusal with a JSON body.
pub fn refuses(status: u16, error: Value) -> Reply {
    Reply::Whole { status, headers: Vec::new(), body: json!({ "error": error }).to_string() }
}

async fn answer(State(shared): State<Shared>, request: Request<Body>) -> Response<Body> {
    let path = request.uri().path().to_owned();
    let headers = request.headers().clone();
    let authorization = header(&headers, "authorization");
    let body = axum::body::to_bytes(request.into_body(), 16 << 20).await.expect("a request body");
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    // From here on, whoever drops this before the end is a client that went away.
    let pending = Pending { shared: shared.clone(), ended: false };
    let asked = Asked { path, authorization, headers, body };
    let reply = (shared.respond)(&asked);
    shared.asked.send_modify(|all| all.push(asked));
    match reply {
        Some(Reply::Stream { events, end }) => Response::builder()
            .header("content-type", "text/event-stream")
            .body(Body::from_stream(pieces(events, end, pending)))
            .expect("a response"),
        Some(Reply::Whole { status, headers, body }) => {
            pending.end();
            let mut response = Response::builder().status(status);
            for (name, value) in headers {
                response = response.header(name, value);
            }
            response.body(Body::from(body)).expect("a response")
        }
        Some(Reply::Silence) => {
            std::future::pending::<Infallible>().await;
            unreachable!("silence never ends")
        }
        None => {
            pending.end();
            Response::builder()
                .status(StatusCode::INTERNAL_SERVER_ERROR)
                .body(Body::from("the test's replies are used up"))
                .expect("a response")
        }
    }
}

/// Each event by itself, then the end.
fn pieces(
    events: Vec<String>,
    end: StreamEnd,
    pending: Pending,
) -> impl Stream<Item = Result<Bytes, std::io::Error>> {
    // A pause makes the server send what it has before it goes on.
    let events = stream::iter(events).then(async |event| {
        tokio::task::yield_now().await;
        Ok(Bytes::from(event))
    });
    let end = stream::once(async move {
        tokio::task::yield_now().await;
        match end {
            StreamEnd::Clean => {
                pending.end();
                Ok(Bytes::new())
            }
            StreamEnd::Cut => {
                pending.end();
                Err(std::io::Error::other("cut"))
            }
            StreamEnd::Stall => {
                let _pending = pending;
                std::future::pending::<Infallible>().await;
                unreachable!("a stall never ends")
            }
        }
    });
    events.chain(end)
}

/// An answer that has not ended; dropped early, it counts as abandoned.
struct Pending {
    shared: Shared,
    ended: bool,
}

impl Pending {
    fn end(mut self) {
        self.ended = true;
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if !self.ended {
            self.shared.abandoned.send_modify(|abandoned| *abandoned += 1);
        }
    }
}

/// A time that passes only where a test waits for silence.
pub const SHORT_SILENCE: Duration = Duration::from_millis(200);

fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).map(|value| value.to_str().expect("a textual header").to_owned())
}
