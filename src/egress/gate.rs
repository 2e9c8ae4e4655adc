//! One run's way out: judges, dials and carries every connection, whoever asks for it. Open for one
//! attempt; once it is closed, connections end and no new one begins.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::dial::Dialer;
use super::head::{self, Arrived, Request};
use super::name::Target;
use super::policy::NetworkPolicy;
use super::refusal::Refusal;
use super::relay::{Meter, relay};
use super::verdicts::{Verdicts, Via};
use crate::run::EventKind;

/// How long a refused client is listened to, so that it reads why.
const LINGER: Duration = Duration::from_millis(500);
/// Connections beyond the limit that are told so at once.
const LOBBY: usize = 16;
/// How long ending connections may take.
const CLOSING: Duration = Duration::from_secs(5);

/// What one attempt may use up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    pub sent_bytes: u64,
    pub received_bytes: u64,
    /// Connections at once.
    pub connections: usize,
    /// How long a request's head may take.
    pub head: Duration,
    /// How long a connection may be silent.
    pub idle: Duration,
}

impl Default for Caps {
    fn default() -> Self {
        Caps {
            sent_bytes: 256 * 1024 * 1024,
            received_bytes: 2 * 1024 * 1024 * 1024,
            connections: 32,
            head: Duration::from_secs(10),
            idle: Duration::from_secs(120),
        }
    }
}

/// The way out of one attempt. Cheap to clone; clones are the same gate.
#[derive(Clone)]
pub struct Gate(Arc<Inner>);

struct Inner {
    policy: NetworkPolicy,
    dialer: Dialer,
    caps: Caps,
    verdicts: Verdicts,
    sent: AtomicU64,
    received: AtomicU64,
    /// Connections that are carried.
    slots: Semaphore,
    /// Connections that are looked at, those that will be refused included. More wait outside.
    lobby: Arc<Semaphore>,
    closed: CancellationToken,
    tasks: TaskTracker,
}

impl PartialEq for Gate {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Gate").field(&self.0.policy).finish()
    }
}

impl Gate {
    /// A gate whose verdicts go to `events`.
    pub fn new(
        policy: NetworkPolicy,
        dialer: Dialer,
        caps: Caps,
        events: mpsc::Sender<EventKind>,
    ) -> Self {
        Gate(Arc::new(Inner {
            policy,
            dialer,
            caps,
            verdicts: Verdicts::new(events),
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            slots: Semaphore::new(caps.connections),
            lobby: Arc::new(Semaphore::new(caps.connections + LOBBY)),
            closed: CancellationToken::new(),
            tasks: TaskTracker::new(),
        }))
    }

    /// A connection to the gate's proxy from within fleet: as if the sandbox had made it.
    pub(super) fn connect(&self) -> std::io::Result<UnixStream> {
        let (ours, theirs) = UnixStream::pair()?;
        let place = self.0.lobby.clone().try_acquire_owned();
        let place = place.map_err(|_| std::io::Error::other(Refusal::TooMany.to_string()))?;
        self.spawn_serving(theirs, Via::WebFetch, place, self.0.closed.child_token());
        Ok(ours)
    }

    /// Serves one connection in a task of its own, until it ends or is stopped.
    pub(super) fn spawn_serving(
        &self,
        stream: UnixStream,
        via: Via,
        place: OwnedSemaphorePermit,
        stop: CancellationToken,
    ) {
        let gate = self.clone();
        self.0.tasks.spawn(async move {
            let _place = place;
            gate.0.serve(stream, via, &stop).await;
        });
    }

    /// Waits until another connection may be looked at.
    pub(super) async fn place(&self) -> Option<OwnedSemaphorePermit> {
        self.0.lobby.clone().acquire_owned().await.ok()
    }

    /// Cancelled once the gate is closed.
    pub(super) fn closed(&self) -> &CancellationToken {
        &self.0.closed
    }

    /// Spawns a task that the gate waits for.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.0.tasks.spawn(task);
    }

    /// Ends every connection, admits no new one, and records the sums. Returns when all has ended.
    pub async fn close(&self) {
        self.0.closed.cancel();
        self.0.tasks.close();
        // Whatever hangs holds no connection: each selects on the token.
        let _ = timeout(CLOSING, self.0.tasks.wait()).await;
        self.0.verdicts.finish().await;
    }

    /// The same at once, without a word in the log.
    pub fn abandon(&self) {
        self.0.closed.cancel();
        self.0.verdicts.close();
    }
}

impl Inner {
    async fn serve(&self, mut stream: UnixStream, via: Via, stop: &CancellationToken) {
        let Ok(_slot) = self.slots.try_acquire() else {
            let refused = self.refuse(via, "a host".to_owned(), Refusal::TooMany).await;
            return answer(&mut stream, &refused, stop).await;
        };
        let arrived = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            arrived = timeout(self.caps.head, head::read(&mut stream)) => arrived,
        };
        let carried = match arrived {
            Ok(Ok(arrived)) => self.carry(&mut stream, via, arrived, stop).await,
            // Somebody who looked whether the port is open.
            Ok(Err(Refusal::Broken)) => return,
            Ok(Err(refusal)) => Err(refusal),
            Err(_) => Err(Refusal::Slow),
        };
        if let Err(refusal) = carried {
            answer(&mut stream, &refusal, stop).await;
        }
    }

    async fn refuse(&self, via: Via, target: String, refusal: Refusal) -> Refusal {
        let recorded = self.verdicts.judged(via, target, Err(&refusal)).await;
        recorded.err().unwrap_or(refusal)
    }

    /// Judges a request and carries it to its end. `Err` before anything was answered.
    async fn carry(
        &self,
        stream: &mut UnixStream,
        via: Via,
        arrived: Arrived,
        stop: &CancellationToken,
    ) -> Result<(), Refusal> {
        let judged = match head::parse(&arrived.head) {
            Ok(request) => {
                let judging = self.judge(&request);
                let addresses = tokio::select! {
                    biased;
                    () = stop.cancelled() => Err(Refusal::Over),
                    addresses = judging => addresses,
                };
                addresses.map(|addresses| (request, addresses))
            }
            Err(refusal) => Err(refusal),
        };
        let (request, addresses) = match judged {
            Ok(judged) => judged,
            Err(refusal) => {
                return Err(self.refuse(via, head::asked_for(&arrived.head), refusal).await);
            }
        };
        let target = target_of(&request).to_string();
        let record = self.verdicts.judged(via, target, Ok(())).await?;
        let began = Instant::now();
        let sent = Meter::new(&self.sent, self.caps.sent_bytes);
        let received = Meter::new(&self.received, self.caps.received_bytes);
        let dialled = tokio::select! {
            biased;
            () = stop.cancelled() => Err(Refusal::Over),
            dialled = self.dialer.dial(&addresses) => dialled,
        };
        let (end, answered) = match dialled {
            Ok(outside) => {
                let passed =
                    self.pass(stream, outside, request, &arrived.rest, &sent, &received, stop);
                (passed.await, true)
            }
            Err(refusal) => (Err(refusal), false),
        };
        let took = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let bytes = (sent.own(), received.own());
        self.verdicts.ended(record, bytes, took, end.as_ref().err()).await;
        if answered { Ok(()) } else { end }
    }

    /// The addresses to dial, where the policy and what the name resolves to allow it.
    async fn judge(&self, request: &Request) -> Result<Vec<std::net::SocketAddr>, Refusal> {
        let target = target_of(request);
        if self.closed.is_cancelled() {
            return Err(Refusal::Over);
        }
        self.policy.check(target)?;
        if self.is_spent() {
            return Err(Refusal::Spent);
        }
        self.dialer.addresses(target).await
    }

    fn is_spent(&self) -> bool {
        let used = |counter: &AtomicU64| counter.load(std::sync::atomic::Ordering::Relaxed);
        used(&self.sent) > self.caps.sent_bytes || used(&self.received) > self.caps.received_bytes
    }

    /// Answers the client and carries bytes.
    #[expect(clippy::too_many_arguments, reason = "two ends, two meters, what was read of one")]
    async fn pass(
        &self,
        inside: &mut UnixStream,
        mut outside: TcpStream,
        request: Request,
        rest: &[u8],
        sent: &Meter<'_>,
        received: &Meter<'_>,
        stop: &CancellationToken,
    ) -> Result<(), Refusal> {
        let broken = |_| Refusal::Broken;
        let first = match request {
            Request::Connect(_) => {
                inside
                    .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
                    .await
                    .map_err(broken)?;
                rest.to_vec()
            }
            Request::Plain(_, head) => [&head, rest].concat(),
        };
        sent.take(first.len())?;
        outside.write_all(&first).await.map_err(broken)?;
        relay(inside, outside, sent, received, self.caps.idle, stop).await
    }
}

fn target_of(request: &Request) -> &Target {
    match request {
        Request::Connect(target) | Request::Plain(target, _) => target,
    }
}

/// Tells a client why it is refused. It may still be sending: what it sends is thrown away for a
/// moment, since a reset would take the answer with it.
async fn answer(stream: &mut UnixStream, refusal: &Refusal, stop: &CancellationToken) {
    let telling = async {
        stream.write_all(refusal.answer().as_bytes()).await?;
        stream.shutdown().await?;
        let mut ignored = [0_u8; 4096];
        while stream.read(&mut ignored).await? > 0 {}
        std::io::Result::Ok(())
    };
    tokio::select! {
        // A client that is gone needs no answer.
        _ = timeout(LINGER, telling) => {}
        () = stop.cancelled() => {}
    }
}
