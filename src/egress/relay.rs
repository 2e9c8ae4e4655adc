//! Carries bytes both ways between two streams, counted, capped and never idle for long.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::refusal::Refusal;

const CHUNK: usize = 32 * 1024;

/// Bytes in one direction: those of a run, which have a limit, and those of a connection.
pub(super) struct Meter<'a> {
    pub of_run: &'a AtomicU64,
    pub limit: u64,
    own: AtomicU64,
}

impl<'a> Meter<'a> {
    pub fn new(of_run: &'a AtomicU64, limit: u64) -> Self {
        Meter { of_run, limit, own: AtomicU64::new(0) }
    }

    /// Bytes of this connection.
    pub fn own(&self) -> u64 {
        self.own.load(Ordering::Relaxed)
    }

    /// Counts bytes before they are passed on.
    pub fn take(&self, bytes: usize) -> Result<(), Refusal> {
        let bytes = bytes as u64;
        let before = self.of_run.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) > self.limit {
            return Err(Refusal::Spent);
        }
        self.own.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }
}

/// When something passed last.
struct Activity(Mutex<Instant>);

impl Activity {
    fn touch(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn last(&self) -> Instant {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ceases_for(&self, limit: Duration) {
        loop {
            let until = self.last() + limit;
            if Instant::now() >= until {
                return;
            }
            sleep_until(until).await;
        }
    }
}

/// Carries bytes until both sides have ended, or something else ends it.
pub(super) async fn relay<A, B>(
    inside: A,
    outside: B,
    sent: &Meter<'_>,
    received: &Meter<'_>,
    idle: Duration,
    stop: &CancellationToken,
) -> Result<(), Refusal>
where
    A: AsyncRead + AsyncWrite + Unpin,
    B: AsyncRead + AsyncWrite + Unpin,
{
    let activity = Activity(Mutex::new(Instant::now()));
    let (inside_read, inside_write) = tokio::io::split(inside);
    let (outside_read, outside_write) = tokio::io::split(outside);
    let both = async {
        tokio::try_join!(
            one_way(inside_read, outside_write, sent, &activity),
            one_way(outside_read, inside_write, received, &activity),
        )
    };
    tokio::select! {
        biased;
        () = stop.cancelled() => Err(Refusal::Over),
        ended = both => ended.map(|_| ()),
        () = activity.ceases_for(idle) => Err(Refusal::Idle),
    }
}

async fn one_way<R, W>(
    mut from: R,
    mut to: W,
    meter: &Meter<'_>,
    activity: &Activity,
) -> Result<(), Refusal>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut chunk = vec![0_u8; CHUNK];
    loop {
        let n = from.read(&mut chunk).await.map_err(|_| Refusal::Broken)?;
        activity.touch();
        if n == 0 {
            // The other side may have closed altogether by now.
            let _ = to.shutdown().await;
            return Ok(());
        }
        meter.take(n)?;
        to.write_all(&chunk[..n]).await.map_err(|_| Refusal::Broken)?;
        activity.touch();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relays between two pairs with these limits; what became of it and what was counted.
    async fn relayed(
        limit: u64,
        words: &'static [u8],
        stop: CancellationToken,
    ) -> (Result<(), Refusal>, u64, u64) {
        let (mut inside, inner) = tokio::io::duplex(64);
        let (mut outside, outer) = tokio::io::duplex(64);
        let (up, down) = (AtomicU64::new(0), AtomicU64::new(0));
        let (sent, received) = (Meter::new(&up, limit), Meter::new(&down, limit));
        let talking = async {
            inside.write_all(words).await.expect("written");
            let mut heard = vec![0_u8; words.len()];
            outside.read_exact(&mut heard).await.expect("heard");
            outside.write_all(b"echo").await.expect("written");
            if !stop.is_cancelled() && words == b"bye" {
                outside.shutdown().await.expect("shut");
                inside.shutdown().await.expect("shut");
            }
            std::future::pending::<()>().await;
        };
        let idle = Duration::from_secs(30);
        tokio::select! {
            ended = relay(inner, outer, &sent, &received, idle, &stop) => {
                (ended, sent.own(), received.own())
            }
            () = talking => unreachable!(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn silence_ends_a_connection() {
        let seen = relayed(100, b"hello", CancellationToken::new()).await;
        assert_eq!(seen, (Err(Refusal::Idle), 5, 4));
    }

    #[tokio::test(start_paused = true)]
    async fn both_ends_end_it_well() {
        assert_eq!(relayed(100, b"bye", CancellationToken::new()).await, (Ok(()), 3, 4));
    }
}
