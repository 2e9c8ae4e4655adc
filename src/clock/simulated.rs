//! A clock that stands still until it is moved.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;

/// A clock that a test moves by hand. Clones share one time.
#[derive(Clone, Debug)]
pub struct SimulatedClock {
    times: watch::Sender<Times>,
}

/// As on a real host, what the wall clock says and how long the host has been awake are two things.
#[derive(Clone, Copy, Debug)]
struct Times {
    wall: Timestamp,
    awake: Duration,
}

impl SimulatedClock {
    /// A clock that stands at `start`.
    pub fn starting_at(start: Timestamp) -> Self {
        SimulatedClock { times: watch::Sender::new(Times { wall: start, awake: Duration::ZERO }) }
    }

    /// The instant at which the clock stands.
    pub fn now(&self) -> Timestamp {
        self.times.borrow().wall
    }

    /// Lets time pass until the clock shows `to`, and wakes every sleeper whose time has come. Back,
    /// the clock is only put.
    pub fn set(&self, to: Timestamp) {
        self.times.send_modify(|times| {
            times.awake += Duration::try_from(to.duration_since(times.wall)).unwrap_or_default();
            times.wall = to;
        });
    }

    /// Lets that much time pass.
    pub fn advance(&self, by: Duration) {
        self.times.send_modify(|times| {
            times.wall += by;
            times.awake += by;
        });
    }

    /// Puts the wall clock forward or back, as a suspension or a correction does: no time passes.
    pub fn jump(&self, by: SignedDuration) {
        self.times.send_modify(|times| times.wall += by);
    }

    /// Returns once that much time has passed, whatever the wall clock shows.
    pub(super) async fn sleep(&self, duration: Duration) {
        let mut seen = self.times.subscribe();
        let until = seen.borrow().awake + duration;
        // The sender lives as long as `self`, so the channel cannot close.
        let _ = seen.wait_for(|times| times.awake >= until).await;
    }

    /// Returns once the clock stands at `until` or later.
    pub(super) async fn sleep_until(&self, until: Timestamp) {
        let mut seen = self.times.subscribe();
        // The sender lives as long as `self`, so the channel cannot close.
        let _ = seen.wait_for(|times| times.wall >= until).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    #[tokio::test]
    async fn a_jump_wakes_who_waits_for_an_instant_and_not_who_waits_for_time_to_pass() {
        let simulated = SimulatedClock::starting_at(Timestamp::UNIX_EPOCH);
        let clock = Clock::Simulated(simulated.clone());
        let hour = SignedDuration::from_hours(1);
        let (waiting, passing) = (clock.clone(), clock.clone());
        let until = Timestamp::UNIX_EPOCH + hour;
        let waiting = tokio::spawn(async move { waiting.sleep_until(until).await });
        let passing = tokio::spawn(async move { passing.sleep(Duration::from_secs(60)).await });
        tokio::task::yield_now().await;

        simulated.jump(hour);
        waiting.await.expect("who waits for an instant wakes");
        assert!(!passing.is_finished());

        simulated.jump(-hour * 2);
        simulated.advance(Duration::from_secs(60));
        passing.await.expect("who waits for time to pass wakes");
    }

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
