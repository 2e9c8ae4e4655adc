//! Newtypes for what identifies things.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Wraps text that is already known to be a valid id.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text_id! {
    /// A task's name: the basename of its file; `[a-z0-9][a-z0-9_-]*`, at most 64 characters.
    TaskName
}
text_id! {
    /// A run's id: 16 characters of Crockford base 32 in lower case, the first 10 of which are the
    /// millisecond of its making, so ids sort by age.
    RunId
}
text_id! {
    /// A git commit's object id in hexadecimal.
    CommitId
}
text_id! {
    /// The kernel's id of this boot (`/proc/sys/kernel/random/boot_id`).
    BootId
}

/// The number of an attempt within its run, from 1.
pub type AttemptNo = u32;

/// Grows with each claim of a run; every later write must carry the newest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FencingToken(pub i64);

impl RunId {
    /// Makes an id from the millisecond since 1970 and 30 random bits.
    pub fn from_parts(unix_millis: u64, random: u32) -> Self {
        const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
        let digit = |value: u64| char::from(ALPHABET[(value & 31) as usize]);
        let time = (0..10).rev().map(|i| digit(unix_millis >> (5 * i)));
        let chance = (0..6).rev().map(|i| digit(u64::from(random) >> (5 * i)));
        Self(time.chain(chance).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_ids_sort_by_the_time_of_their_making() {
        let early = RunId::from_parts(1_000_000, u32::MAX);
        let late = RunId::from_parts(1_000_001, 0);
        assert!(early < late);
        assert_eq!(early.as_str().len(), 16);
    }
}
