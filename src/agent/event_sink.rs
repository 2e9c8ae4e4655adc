//! The bounded, ordered way of events from the loop to the runner, which persists them.

use tokio::sync::{mpsc, oneshot};

use crate::run::EventKind;

/// What the runner receives: an event, or a wish to know that all earlier ones are stored.
#[derive(Debug)]
pub enum LogRequest {
    Event(Box<EventKind>),
    /// Answered after every earlier event is committed.
    Flush(oneshot::Sender<()>),
}

/// The runner no longer takes events: the run must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the session log is closed")]
pub struct LogClosed;

/// The loop's end of the log.
#[derive(Clone, Debug)]
pub struct EventSink {
    requests: mpsc::Sender<LogRequest>,
}

impl EventSink {
    /// A sink and the runner's end; at most `capacity` events wait.
    pub fn channel(capacity: usize) -> (Self, mpsc::Receiver<LogRequest>) {
        let (requests, receiver) = mpsc::channel(capacity);
        (EventSink { requests }, receiver)
    }

    /// Records an event, in order; waits when the log is full.
    pub async fn record(&self, kind: EventKind) -> Result<(), LogClosed> {
        self.requests.send(LogRequest::Event(Box::new(kind))).await.map_err(|_| LogClosed)
    }

    /// Returns once everything recorded before is stored. Called before a paid request and before a
    /// tool with effects.
    pub async fn flush(&self) -> Result<(), LogClosed> {
        let (answer, stored) = oneshot::channel();
        self.requests.send(LogRequest::Flush(answer)).await.map_err(|_| LogClosed)?;
        stored.await.map_err(|_| LogClosed)
    }
}
