//! The host's end of the helper's stream: many calls in flight, each with exactly one reply. A frame
//! that breaks the protocol, a reply to no call among them, ends the connection; nothing that arrives
//! can hold memory that no call asked for.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde_json::{Value, json};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::call::{Call, CallError, Reply};
use super::frame::{self, FrameError};
use super::wire::{self, Request, Shape};

/// Frames that wait for the helper to read.
const QUEUE: usize = 64;

/// Why the stream ended by itself, as far as anybody but the helper knows.
pub(super) type Explain = Box<dyn Fn() -> Option<String> + Send + Sync>;

type Answer = Result<Reply, CallError>;
type Outgoing = (Value, Vec<u8>);

/// A call without its reply.
struct Waiting {
    shape: Shape,
    cap: u32,
    /// Absent when its caller has gone away; the helper answers all the same.
    answer: Option<oneshot::Sender<Answer>>,
}

struct Shared {
    waiting: Mutex<HashMap<u64, Waiting>>,
    /// Cancelled when no further reply will come.
    ended: CancellationToken,
    reason: OnceLock<String>,
}

/// A connection to one helper. Dropping it closes the stream, which ends the helper.
pub(super) struct Connection {
    shared: Arc<Shared>,
    outgoing: mpsc::Sender<Outgoing>,
    next: AtomicU64,
}

/// A call that was sent. Dropping it cancels what it started.
pub(super) struct InFlight {
    id: u64,
    pub deadline: std::time::Duration,
    answer: oneshot::Receiver<Answer>,
    shared: Arc<Shared>,
    outgoing: mpsc::Sender<Outgoing>,
    answered: bool,
}

impl Connection {
    /// Takes the stream over. `explain` is asked at once when it ends by itself.
    pub fn new(stream: UnixStream, explain: Explain) -> Self {
        let (reader, writer) = stream.into_split();
        let shared = Arc::new(Shared {
            waiting: Mutex::default(),
            ended: CancellationToken::new(),
            reason: OnceLock::new(),
        });
        let (outgoing, queue) = mpsc::channel(QUEUE);
        // Both end with the token, which is cancelled when the connection is dropped.
        tokio::spawn(write_all(shared.clone(), writer, queue));
        tokio::spawn(read_all(shared.clone(), reader, explain));
        Connection { shared, outgoing, next: AtomicU64::new(1) }
    }

    /// Ends the connection; the first reason stays.
    pub fn end(&self, reason: &str) {
        self.shared.end(reason);
    }

    /// Cancelled when the connection has ended.
    pub fn ended(&self) -> &CancellationToken {
        &self.shared.ended
    }

    /// Why no call is answered any more.
    pub fn gone(&self) -> CallError {
        self.shared.gone()
    }

    /// Sends a call; waits only for room in the queue.
    pub async fn send(&self, call: Call) -> Result<InFlight, CallError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let Request { header, body, reply_cap, deadline, shape } = wire::request(id, call);
        let length = header.to_string().len();
        if length > frame::MAX_HEADER as usize || body.len() > frame::MAX_BODY as usize {
            let message = format!("the call is too large: {} bytes", length + body.len());
            return Err(CallError::Refused { kind: super::EditError::TooLarge, message });
        }
        let permit = tokio::select! {
            biased;
            () = self.shared.ended.cancelled() => return Err(self.gone()),
            permit = self.outgoing.reserve() => permit.map_err(|_| self.gone())?,
        };
        let (tell, answer) = oneshot::channel();
        // From here on the helper owes a reply.
        self.shared.lock().insert(id, Waiting { shape, cap: reply_cap, answer: Some(tell) });
        permit.send((header, body));
        Ok(InFlight {
            id,
            deadline,
            answer,
            shared: self.shared.clone(),
            outgoing: self.outgoing.clone(),
            answered: false,
        })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.shared.end("it was closed");
    }
}

impl InFlight {
    /// Waits for the reply, however long it takes.
    pub async fn answer(&mut self) -> Answer {
        let ended = self.shared.ended.clone();
        let answer = tokio::select! {
            biased;
            answer = &mut self.answer => answer.unwrap_or_else(|_| Err(self.shared.gone())),
            () = ended.cancelled() => Err(self.shared.gone()),
        };
        self.answered = true;
        answer
    }

    /// Asks the helper to kill what the call started. It still answers.
    pub fn cancel(&self) {
        // A full queue means a helper that does not read: the caller's patience ends that.
        let _ = self.outgoing.try_send((json!({"cancel": self.id}), Vec::new()));
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if !self.answered {
            if let Some(waiting) = self.shared.lock().get_mut(&self.id) {
                waiting.answer = None;
            }
            self.cancel();
        }
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, reason: &str) {
        // Only the first reason is the cause.
        let _ = self.reason.set(reason.to_owned());
        self.ended.cancel();
    }

    fn gone(&self) -> CallError {
        CallError::Gone(self.reason.get().cloned().unwrap_or_else(|| "it was closed".to_owned()))
    }
}

async fn write_all(
    shared: Arc<Shared>,
    mut writer: OwnedWriteHalf,
    mut queue: mpsc::Receiver<Outgoing>,
) {
    let writing = async {
        while let Some((header, body)) = queue.recv().await {
            if frame::write(&mut writer, &header, &body).await.is_err() {
                // The reader sees the same end, and says why.
                return;
            }
        }
    };
    tokio::select! {
        () = shared.ended.cancelled() => {}
        () = writing => {}
    }
}

async fn read_all(shared: Arc<Shared>, mut reader: OwnedReadHalf, explain: Explain) {
    let reading = async {
        loop {
            if let Err(error) = read_one(&shared, &mut reader).await {
                return error;
            }
        }
    };
    tokio::select! {
        () = shared.ended.cancelled() => {}
        error = reading => {
            let told = matches!(error, FrameError::Ended).then(explain).flatten();
            shared.end(&told.unwrap_or_else(|| error.to_string()));
        }
    }
}

async fn read_one(shared: &Shared, reader: &mut OwnedReadHalf) -> Result<(), FrameError> {
    let header = frame::read_header(reader).await?;
    let id = wire::reply_id(&header.value)
        .ok_or_else(|| FrameError::Malformed("a frame without an id".to_owned()))?;
    let waiting = shared.lock().get(&id).map(|waiting| (waiting.cap, waiting.answer.is_some()));
    let Some((cap, heard)) = waiting else {
        return Err(FrameError::Malformed("a reply to no call".to_owned()));
    };
    if header.body > cap {
        let what = format!("a body of {} bytes where {cap} are allowed", header.body);
        return Err(FrameError::Malformed(what));
    }
    let body = if heard {
        frame::read_body(reader, header.body).await?
    } else {
        frame::skip_body(reader, header.body).await?;
        Vec::new()
    };
    let answered = shared.lock().remove(&id);
    let Some(Waiting { shape, answer: Some(answer), .. }) = answered else { return Ok(()) };
    let reply = wire::reply(shape, header.value, body).map_err(FrameError::Malformed)?;
    // The caller may have gone away.
    let _ = answer.send(reply);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (Connection, UnixStream) {
        let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
        (Connection::new(ours, Box::new(|| None)), theirs)
    }

    fn stat() -> Call {
        Call::Stat { path: "a".into() }
    }

    /// What one call gets from a peer that answers with these frames.
    async fn answered_by(frames: &[(Value, &[u8])]) -> String {
        let (connection, mut peer) = pair();
        let mut sent = connection.send(stat()).await.expect("sent");
        for (header, body) in frames {
            frame::write(&mut peer, header, body).await.expect("written");
        }
        match sent.answer().await {
            Ok(reply) => format!("{reply:?}"),
            Err(error) => error.to_string(),
        }
    }

    fn good(id: u64) -> (Value, &'static [u8]) {
        (json!({"id": id, "ok": true, "kind": "file", "size": 3}), b"")
    }

    #[tokio::test]
    async fn a_second_reply_to_one_call_ends_the_connection() {
        let (connection, mut peer) = pair();
        let mut first = connection.send(stat()).await.expect("sent");
        let mut second = connection.send(stat()).await.expect("sent");
        for id in [1, 1] {
            let (header, body) = good(id);
            frame::write(&mut peer, &header, body).await.expect("written");
        }
        assert!(matches!(first.answer().await, Ok(Reply::Stat { size: 3, .. })));
        let told = second.answer().await.expect_err("gone").to_string();
        assert_eq!(told, "the sandbox ended: it sent a malformed frame: a reply to no call");
        let later = connection.send(stat()).await.err().expect("nothing is reused").to_string();
        assert_eq!(later, told);
    }

    #[tokio::test]
    async fn every_malformed_frame_ends_the_connection() {
        let table: [(Value, &[u8], &str); 9] = [
            (json!({"ok": true}), b"", "a frame without an id"),
            (json!({"id": -1, "ok": true}), b"", "a frame without an id"),
            (json!({"id": "1", "ok": true}), b"", "a frame without an id"),
            (json!({"id": 99, "ok": true}), b"some body", "a reply to no call"),
            (
                json!({"id": 1, "ok": true, "kind": "file", "size": -3}),
                b"",
                "a reply of another shape (invalid value: integer `-3`, expected u64)",
            ),
            (
                json!({"id": 1, "ok": true, "kind": "file", "size": 3}),
                b"x",
                "a body of 1 bytes where 0 are allowed",
            ),
            (json!({"id": 1}), b"", "a reply without ok"),
            (json!({"id": 1, "ok": true}), b"", "a reply of another shape (missing field `kind`)"),
            (
                json!({"id": 1, "ok": false, "kind": "odd", "message": ""}),
                b"",
                "a refusal of kind \"odd\"",
            ),
        ];
        for (header, body, want) in table {
            let seen = answered_by(&[(header, body)]).await;
            assert_eq!(seen, format!("the sandbox ended: it sent a malformed frame: {want}"));
        }
    }

    #[tokio::test]
    async fn replies_in_any_order_find_their_calls_and_a_refusal_leaves_the_connection() {
        let (connection, mut peer) = pair();
        let mut one = connection.send(stat()).await.expect("sent");
        let mut two = connection.send(stat()).await.expect("sent");
        let (header, body) = good(2);
        frame::write(&mut peer, &header, body).await.expect("written");
        let refusal =
            json!({"id": 1, "ok": false, "kind": "not_found", "message": "a is not there"});
        frame::write(&mut peer, &refusal, b"").await.expect("written");
        assert!(matches!(two.answer().await, Ok(Reply::Stat { size: 3, .. })));
        let refused = one.answer().await.expect_err("refused").to_string();
        assert_eq!(
            (refused.as_str(), connection.ended().is_cancelled()),
            ("a is not there", false)
        );
    }

    #[tokio::test]
    async fn forgotten_call_is_cancelled_and_its_late_reply_is_dropped() {
        let (connection, mut peer) = pair();
        drop(connection.send(stat()).await.expect("sent"));
        let request = frame::read_header(&mut peer).await.expect("the call").value;
        let cancel = frame::read_header(&mut peer).await.expect("the cancel").value;
        assert_eq!((request["id"].clone(), cancel), (json!(1), json!({"cancel": 1})));
        let mut next = connection.send(stat()).await.expect("sent");
        for id in [1, 2] {
            let (header, body) = good(id);
            frame::write(&mut peer, &header, body).await.expect("written");
        }
        assert!(matches!(next.answer().await, Ok(Reply::Stat { .. })));
    }

    #[tokio::test]
    async fn only_an_end_of_the_stream_is_explained_by_others() {
        for (frame, want) in [
            (None, "the sandbox ended: out of memory"),
            (Some("x"), "the sandbox ended: it sent a malformed frame: a frame without an id"),
        ] {
            let (ours, mut theirs) = UnixStream::pair().expect("a pair of sockets");
            let connection = Connection::new(ours, Box::new(|| Some("out of memory".to_owned())));
            let mut sent = connection.send(stat()).await.expect("sent");
            if let Some(id) = frame {
                frame::write(&mut theirs, &json!({"id": id}), b"").await.expect("written");
            }
            drop(theirs);
            assert_eq!(sent.answer().await.expect_err("gone").to_string(), want);
        }
    }

    #[tokio::test]
    async fn end_of_the_stream_is_told_to_all_callers() {
        let (connection, peer) = pair();
        let mut sent = connection.send(stat()).await.expect("sent");
        drop(peer);
        let told = sent.answer().await.expect_err("gone").to_string();
        assert_eq!(told, "the sandbox ended: its connection ended");
    }
}
