//! Named points at which a test build ends its own process, as a power cut would. Owns the feature
//! `fault-injection`; without it every point is nothing. Refuses to be part of a release.

#[cfg(not(feature = "fault-injection"))]
use std::time::Duration;

#[cfg(all(feature = "fault-injection", not(debug_assertions)))]
compile_error!(
    "the feature fault-injection kills the process on request: it is never in a release"
);

/// Does nothing: this build cannot be told to fail.
#[cfg(not(feature = "fault-injection"))]
#[inline(always)]
pub fn point(_name: &'static str) {}

/// The duration as it is: this build cannot be told to be impatient.
#[cfg(not(feature = "fault-injection"))]
#[inline(always)]
pub fn shortened(_variable: &'static str, duration: Duration) -> Duration {
    duration
}

#[cfg(feature = "fault-injection")]
pub use injected::{point, shortened};

#[cfg(feature = "fault-injection")]
mod injected {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use rustix::process::{Signal, getpid, kill_process};

    /// `FLEET_FAULT=NAME` or `NAME:N`: the point, and at which of its passings.
    static WANTED: LazyLock<Option<(String, u32)>> =
        LazyLock::new(|| std::env::var("FLEET_FAULT").ok().map(|text| parse(&text)));

    /// Ends this process with SIGKILL when it is the wanted passing of the point.
    pub fn point(name: &'static str) {
        static PASSED: AtomicU32 = AtomicU32::new(0);
        let Some((wanted, at)) = &*WANTED else { return };
        if wanted != name || PASSED.fetch_add(1, Ordering::SeqCst) + 1 != *at {
            return;
        }
        kill_process(getpid(), Signal::KILL).expect("a process may kill itself");
        loop {
            std::thread::park();
        }
    }

    /// The duration, or the milliseconds that the variable names.
    pub fn shortened(variable: &'static str, duration: Duration) -> Duration {
        match std::env::var(variable) {
            Ok(text) => Duration::from_millis(text.parse().expect("a number of milliseconds")),
            Err(_) => duration,
        }
    }

    fn parse(text: &str) -> (String, u32) {
        match text.split_once(':') {
            None => (text.to_owned(), 1),
            Some((name, n)) => {
                (name.to_owned(), n.parse().expect("FLEET_FAULT is NAME or NAME:NUMBER"))
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_point_is_named_alone_or_with_its_passing() {
            assert_eq!(parse("after_claim"), ("after_claim".to_owned(), 1));
            assert_eq!(parse("after_claim:3"), ("after_claim".to_owned(), 3));
        }
    }
}
