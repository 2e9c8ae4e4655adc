//! Leaves a provider alone after failures in a row, for every run of the process at once: a provider
//! that is down is not asked by each of them until each has failed.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

/// Failures in a row that open the breaker.
const OPENS_AFTER: u32 = 5;
/// How long it stays open. The next failure after that opens it again.
const OPEN_FOR: Duration = Duration::from_secs(60);

/// One provider's breaker. Clones are the same breaker.
#[derive(Clone, Debug, Default)]
pub struct Breaker(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    failures: u32,
    open_until: Option<Timestamp>,
}

impl Breaker {
    /// Until when no request may be sent; none when one may.
    pub(super) fn open_until(&self, now: Timestamp) -> Option<Timestamp> {
        let until = self.state().open_until?;
        // A clock that was put back does not keep it open.
        let longest = now.saturating_add(OPEN_FOR).unwrap_or(Timestamp::MAX);
        (now < until && until <= longest).then_some(until)
    }

    /// The provider answered, whatever it said: it is up.
    pub(super) fn answered(&self) {
        *self.state() = State::default();
    }

    /// A request failed in a way that may pass.
    pub(super) fn failed(&self, now: Timestamp) {
        let mut state = self.state();
        state.failures = state.failures.saturating_add(1);
        if state.failures >= OPENS_AFTER {
            state.open_until = now.saturating_add(OPEN_FOR).ok();
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("an instant")
    }

    #[test]
    fn five_failures_in_a_row_open_it_for_a_minute_and_the_next_one_again() {
        let breaker = Breaker::default();
        for _ in 0..4 {
            breaker.failed(at(0));
        }
        assert_eq!(breaker.open_until(at(0)), None);
        breaker.clone().failed(at(10));
        assert_eq!(breaker.open_until(at(11)), Some(at(70)));
        assert_eq!(breaker.open_until(at(70)), None);
        breaker.failed(at(71));
        assert_eq!(breaker.open_until(at(72)), Some(at(131)));
        breaker.answered();
        assert_eq!(breaker.open_until(at(72)), None);
        breaker.failed(at(73));
        assert_eq!(breaker.open_until(at(73)), None);
    }

    #[test]
    fn a_clock_that_is_put_back_does_not_keep_it_open() {
        let breaker = Breaker::default();
        (0..5).for_each(|_| breaker.failed(at(10_000)));
        assert_eq!(breaker.open_until(at(0)), None);
    }
}
