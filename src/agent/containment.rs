//! Contains a panic in a tool: it becomes a value, and its text goes nowhere, not even to standard
//! error, because it may hold anything that the tool held.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::task::Poll;

thread_local! {
    static CONTAINED: Cell<bool> = const { Cell::new(false) };
}

/// A panic happened; the id is all that is told about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Incident {
    pub(super) id: String,
}

/// Runs a future to its end or its panic.
pub(super) async fn contain<F: Future>(work: F) -> Result<F::Output, Incident> {
    silence_contained_panics();
    let mut work = std::pin::pin!(work);
    std::future::poll_fn(|cx| {
        let outer = CONTAINED.replace(true);
        let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx)));
        CONTAINED.set(outer);
        match polled {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
            // The payload is dropped unread. The future is never polled again.
            Err(_payload) => Poll::Ready(Err(Incident { id: fresh_id() })),
        }
    })
    .await
}

/// Puts a hook before the process's own that says nothing of contained panics. Others are reported
/// as before.
fn silence_contained_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !CONTAINED.get() {
                report(info);
            }
        }));
    });
}

fn fresh_id() -> String {
    let mut bytes = [0_u8; 6];
    // Without randomness the id is still an id: it only tells less apart.
    let _ = getrandom::fill(&mut bytes);
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("inc_{digits}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_after_an_await_becomes_an_incident() {
        let work = async {
            tokio::task::yield_now().await;
            panic!("secret words");
        };
        let incident = contain(work).await;
        let id = match incident {
            Ok(()) => unreachable!("the work panics"),
            Err(incident) => incident.id,
        };
        assert!(id.starts_with("inc_") && id.len() == 16, "{id}");
        assert_eq!(contain(async { 7 }).await, Ok(7));
    }
}
