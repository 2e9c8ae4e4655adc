//! Ends an attempt from outside: the runner's cancellation and the wall clock.

use std::time::Duration;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::run::{Cancel, CancelReason, Outcome, OutcomeClass};

/// How long cancelled work may take to stop before it is abandoned. The sandbox kills what it runs;
/// whoever closes the sandbox ends the rest.
const STOP_GRACE: Duration = Duration::from_secs(10);

/// What may end an attempt at any moment.
#[derive(Clone, Debug)]
pub(super) struct Guard {
    pub(super) cancel: Cancel,
    pub(super) clock: Clock,
    pub(super) deadline: Option<Timestamp>,
}

impl Guard {
    /// The outcome, if the attempt must end now.
    pub(super) fn check(&self) -> Result<(), Outcome> {
        if let Some(reason) = self.cancel.reason() {
            return Err(outcome(reason));
        }
        match self.deadline {
            Some(deadline) if self.clock.now() >= deadline => {
                Err(outcome(CancelReason::WallTimeout))
            }
            _ => Ok(()),
        }
    }

    /// Waits until the attempt must end.
    async fn ended(&self) -> Outcome {
        let deadline = async {
            match self.deadline {
                Some(deadline) => self.clock.sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            reason = self.cancel.cancelled() => outcome(reason),
            () = deadline => outcome(CancelReason::WallTimeout),
        }
    }

    /// Waits for `work`, dropping it when the attempt must end.
    pub(super) async fn or_drop<F: Future>(&self, work: F) -> Result<F::Output, Outcome> {
        tokio::select! {
            biased;
            outcome = self.ended() => Err(outcome),
            output = work => Ok(output),
        }
    }

    /// Waits for `work`; when the attempt must end, cancels `token` and gives the work a grace to
    /// stop what it started.
    pub(super) async fn or_cancel<F: Future>(
        &self,
        token: &CancellationToken,
        work: F,
    ) -> Result<F::Output, Outcome> {
        let mut work = std::pin::pin!(work);
        let outcome = tokio::select! {
            biased;
            outcome = self.ended() => outcome,
            output = &mut work => return Ok(output),
        };
        token.cancel();
        tokio::select! {
            _ = &mut work => {}
            () = self.clock.sleep(STOP_GRACE) => {}
        }
        Err(outcome)
    }
}

fn outcome(reason: CancelReason) -> Outcome {
    let (class, text) = match reason {
        CancelReason::Operator => (OutcomeClass::Cancelled, "cancelled by the operator"),
        CancelReason::Shutdown => (OutcomeClass::Interrupted, "fleet was stopped during the run"),
        CancelReason::LeaseLost => (OutcomeClass::Interrupted, "the run's lease was lost"),
        CancelReason::StoreFailed => {
            (OutcomeClass::Interrupted, "the session log could not be written")
        }
        CancelReason::WallTimeout => (OutcomeClass::WallTimeout, "the wall time limit was reached"),
    };
    Outcome::failed(class, text)
}

/// The log's end is closed: the runner no longer records, so nothing more may happen.
pub(super) fn log_closed(_: super::LogClosed) -> Outcome {
    outcome(CancelReason::StoreFailed)
}
