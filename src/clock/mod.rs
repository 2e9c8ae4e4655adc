//! Tells the time and waits until a time. Owns the only calls to the system clock; refuses to know
//! what the time is for.

mod heartbeat;
mod simulated;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

pub use heartbeat::{Heartbeat, Rest};
pub use simulated::SimulatedClock;

/// The longest wait before wall time is read again, so that a sleeping host or a stepped clock is
/// noticed (design: misfires).
const REREAD: Duration = Duration::from_secs(30);

/// The system's clock, or one that a test moves by hand.
#[derive(Clone, Debug)]
pub enum Clock {
    System,
    Simulated(SimulatedClock),
}

impl Clock {
    /// The current instant.
    pub fn now(&self) -> Timestamp {
        match self {
            Clock::System => Timestamp::now(),
            Clock::Simulated(clock) => clock.now(),
        }
    }

    /// Returns once wall time has reached `until`. Wall time is read again at least every 30 s, so a
    /// jump of the clock is followed.
    pub async fn sleep_until(&self, until: Timestamp) {
        match self {
            Clock::System => loop {
                let left = until.duration_since(Timestamp::now());
                if left <= SignedDuration::ZERO {
                    return;
                }
                tokio::time::sleep(left.unsigned_abs().min(REREAD)).await;
            },
            Clock::Simulated(clock) => clock.sleep_until(until).await,
        }
    }

    /// Returns after `duration` of this clock's time.
    pub async fn sleep(&self, duration: Duration) {
        match self {
            Clock::System => tokio::time::sleep(duration).await,
            Clock::Simulated(clock) => clock.sleep(duration).await,
        }
    }
}
