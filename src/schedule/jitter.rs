//! A task's own part of its jitter. Decided by its name alone, so that runs spread out and each stays
//! where it is: the same on every machine, after every restart and in every build.

use std::time::Duration;

use jiff::SignedDuration;
use sha2::{Digest, Sha256};

/// Whole seconds from 0 to below `jitter`: the first eight bytes of the SHA-256 of the name, read as
/// a big-endian number, modulo the whole seconds of `jitter`. Another rule would move every task.
pub(super) fn offset(name: &str, jitter: Duration) -> SignedDuration {
    let digest = Sha256::digest(name.as_bytes());
    let number = digest.iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    let seconds = number.checked_rem(jitter.as_secs()).unwrap_or_default();
    SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_of_a_name_never_changes() {
        // Each is `printf NAME | sha256sum`, its first 16 digits modulo the seconds.
        let pinned = [
            ("report", 300, 64),
            ("nightly", 300, 226),
            ("nightly", 3600, 1126),
            ("stock-count", 86400, 54568),
            ("a", 1, 0),
            ("hello-report", 7, 2),
        ];
        for (name, jitter, seconds) in pinned {
            let found = offset(name, Duration::from_secs(jitter));
            assert_eq!(found, SignedDuration::from_secs(seconds), "{name} {jitter}");
        }
    }

    #[test]
    fn less_than_a_second_of_jitter_is_none() {
        assert_eq!(offset("a", Duration::ZERO), SignedDuration::ZERO);
        assert_eq!(offset("a", Duration::from_millis(999)), SignedDuration::ZERO);
    }

    #[test]
    fn names_spread_over_the_whole_jitter() {
        let mut minutes = [0_u32; 5];
        for number in 0..1000 {
            let offset = offset(&format!("task-{number}"), Duration::from_secs(300));
            minutes[usize::try_from(offset.as_secs() / 60).expect("below five")] += 1;
        }
        assert!(minutes.iter().all(|tasks| (150..250).contains(tasks)), "{minutes:?}");
    }
}
