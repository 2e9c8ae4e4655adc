//! A clock that stands still until it is moved.

use jiff::Timestamp;
use tokio::sync::watch;

/// A clock that a test moves by hand. Clones share one time.
#[derive(Clone, Debug)]
pub struct SimulatedClock {
    now: watch::Sender<Timestamp>,
}

impl SimulatedClock {
    /// A clock that stands at `start`.
    pub fn starting_at(start: Timestamp) -> Self {
        SimulatedClock { now: watch::Sender::new(start) }
    }

    /// The instant at which the clock stands.
    pub fn now(&self) -> Timestamp {
        *self.now.borrow()
    }

    /// Moves the clock to `to`, forward or back, and wakes every sleeper whose time has come.
    pub fn set(&self, to: Timestamp) {
        self.now.send_replace(to);
    }

    /// Moves the clock forward by `by`.
    pub fn advance(&self, by: std::time::Duration) {
        self.now.send_modify(|now| *now += by);
    }

    /// Returns once the clock stands at `until` or later.
    pub(super) async fn sleep_until(&self, until: Timestamp) {
        let mut seen = self.now.subscribe();
        // The sender lives as long as `self`, so the channel cannot close.
        let _ = seen.wait_for(|now| *now >= until).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use std::time::Duration;

    #[tokio::test]
    async fn sleeper_wakes_when_its_time_comes_and_not_before() {
        let simulated = SimulatedClock::starting_at(Timestamp::UNIX_EPOCH);
        let clock = Clock::Simulated(simulated.clone());
        let until = Timestamp::UNIX_EPOCH + Duration::from_secs(60);
        let sleeper = tokio::spawn(async move { clock.sleep_until(until).await });

        simulated.advance(Duration::from_secs(59));
        tokio::task::yield_now().await;
        assert!(!sleeper.is_finished());

        simulated.advance(Duration::from_secs(1));
        sleeper.await.expect("sleeper ends");
    }
}
