//! The tasks of the year, and how their runs go.

use std::time::Duration;

use fleet::run::{Outcome, OutcomeClass};
use fleet::store::ClaimedRun;

use crate::env::pretend::Course;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Misfire {
    Skip,
    Latest,
    All,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Overlap {
    Skip,
    Queue,
    Allow,
    CancelRunning,
}

/// How many of a run's attempts fail.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Failing {
    Never,
    /// From none to one more than there are.
    Some,
    Always,
}

#[derive(Clone, Copy)]
pub struct Policy {
    pub misfire: Misfire,
    pub max_delay_hours: i64,
    pub overlap: Overlap,
    /// The shortest and the longest attempt.
    pub minutes: (u64, u64),
    pub failing: Failing,
    pub has_key: bool,
    pub jitter_secs: u64,
    pub until: Option<&'static str>,
    pub count: Option<usize>,
    /// Other keys.
    pub keys: &'static str,
}

pub const PLAIN: Policy = Policy {
    misfire: Misfire::Latest,
    max_delay_hours: 24,
    overlap: Overlap::Skip,
    minutes: (5, 50),
    failing: Failing::Never,
    has_key: false,
    jitter_secs: 0,
    until: None,
    count: None,
    keys: "",
};

pub struct Task {
    pub name: String,
    pub schedule: &'static str,
    pub zone: &'static str,
    pub policy: Policy,
}

/// Retries that a task has.
pub const MAX_RETRIES: u32 = 2;

/// What every zone has.
const OF_A_ZONE: [(&str, &str, Policy); 6] = [
    ("nightly", "30 2 * * *", Policy { minutes: (10, 90), ..PLAIN }),
    (
        "steady",
        "0 */12 * * 1-5",
        Policy {
            misfire: Misfire::All,
            max_delay_hours: 12,
            overlap: Overlap::Queue,
            minutes: (100, 900),
            ..PLAIN
        },
    ),
    (
        "monthly",
        "15 4 13 * 1",
        Policy {
            misfire: Misfire::Skip,
            overlap: Overlap::Allow,
            minutes: (60, 12_000),
            jitter_secs: 600,
            ..PLAIN
        },
    ),
    (
        "office",
        "5 9,17 * * 1,3,5",
        Policy { minutes: (20, 100), has_key: true, keys: "priority: 10\n", ..PLAIN },
    ),
    (
        "upkeep",
        "0 9 * * *",
        Policy {
            minutes: (5, 500),
            failing: Failing::Some,
            has_key: true,
            keys: "priority: -10\n",
            ..PLAIN
        },
    ),
    (
        "burst",
        "*/20 * * * *",
        Policy { overlap: Overlap::CancelRunning, until: Some("2026-01-03"), ..PLAIN },
    ),
];

/// What there is once.
const ONCE: [(&str, &str, Policy); 6] = [
    ("counted", "10 */6 * * *", Policy { count: Some(50), ..PLAIN }),
    (
        "failing",
        "40 5 * * *",
        Policy { failing: Failing::Always, keys: "park_after: 3\n", ..PLAIN },
    ),
    ("paused", "0 12 * * *", PLAIN),
    ("rescheduled", BEFORE, PLAIN),
    ("disabled", "0 */2 * * *", Policy { overlap: Overlap::Queue, minutes: (130, 140), ..PLAIN }),
    (
        "seasonal",
        "50 23 31 3,10 *",
        Policy { misfire: Misfire::Skip, overlap: Overlap::Queue, jitter_secs: 3600, ..PLAIN },
    ),
];

/// The schedule of `rescheduled`, before and after a commit.
pub const BEFORE: &str = "20 6 * * *";
pub const AFTER: &str = "50 18 * * 2,4,6";

/// The tasks over these zones, the first of which has those that there are once.
pub fn tasks(zones: &[&'static str]) -> Vec<Task> {
    let once = ONCE.iter().map(|(name, schedule, policy)| Task {
        name: (*name).to_owned(),
        schedule,
        zone: zones[0],
        policy: *policy,
    });
    let each = zones.iter().flat_map(|zone| {
        OF_A_ZONE.iter().map(|(name, schedule, policy)| Task {
            name: format!("{name}-{}", place(zone)),
            schedule,
            zone,
            policy: *policy,
        })
    });
    once.chain(each).collect()
}

/// A zone as a part of a name.
fn place(zone: &str) -> String {
    zone.rsplit('/').next().unwrap_or(zone).to_lowercase().replace('_', "-")
}

impl Task {
    pub fn path(&self) -> String {
        format!("tasks/{}.yaml", self.name)
    }

    pub fn key(&self) -> Option<String> {
        self.policy.has_key.then(|| place(self.zone))
    }

    /// The task's file, with another schedule or keys besides.
    pub fn file(&self, schedule: &str, keys: &str) -> String {
        let Policy { misfire, max_delay_hours, overlap, jitter_secs, until, count, .. } =
            self.policy;
        let misfire = match misfire {
            Misfire::Skip => "policy: skip".to_owned(),
            Misfire::Latest => format!("policy: latest, max_delay: {max_delay_hours}h"),
            Misfire::All => format!("policy: all, max_delay: {max_delay_hours}h"),
        };
        let overlap = match overlap {
            Overlap::Skip => "skip",
            Overlap::Queue => "queue",
            Overlap::Allow => "allow",
            Overlap::CancelRunning => "cancel_running",
        };
        let mut text = format!(
            "schedule: '{schedule}'\ntimezone: {zone}\nprompt: x\ncompletion: {{shell: 'true'}}\n\
             misfire: {{{misfire}}}\noverlap: {overlap}\n\
             jitter: {jitter_secs}s\nmax_retries: {MAX_RETRIES}\n\
             retry_policy: {{backoff: exponential, initial_delay: 5m, max_delay: 10m}}\n{keys}{}",
            self.policy.keys,
            zone = self.zone,
        );
        if let Some(key) = self.key() {
            text += &format!("serialization_key: {key}\n");
        }
        if let Some(until) = until {
            text += &format!("schedule_until: {until}\n");
        }
        if let Some(count) = count {
            text += &format!("schedule_count: {count}\n");
        }
        text
    }

    /// How an attempt goes.
    pub fn course(&self, claimed: &ClaimedRun) -> Course {
        let (shortest, longest) = self.policy.minutes;
        let number =
            hash(&format!("{} {} {}", claimed.task, claimed.due, claimed.counters.retries));
        let fails = match self.policy.failing {
            Failing::Always => return Course { lasts: Duration::from_secs(60), ends: broken() },
            Failing::Never => false,
            Failing::Some => claimed.counters.retries < self.failures(claimed.due),
        };
        let lasts =
            Duration::from_secs(60 * (shortest + number % (longest - shortest)) + number % 60);
        let ends = if fails {
            Outcome::failed(OutcomeClass::Transient, "the model does not answer")
        } else {
            Outcome::success()
        };
        Course { lasts, ends }
    }

    /// How many attempts of the run due then fail.
    pub fn failures(&self, due: jiff::Timestamp) -> u32 {
        match self.policy.failing {
            Failing::Never => 0,
            Failing::Some => {
                u32::try_from(hash(&format!("{}{due}", self.name)) % 4).expect("small")
            }
            Failing::Always => u32::MAX,
        }
    }
}

fn broken() -> Outcome {
    Outcome::failed(OutcomeClass::Config, "no such model")
}

/// Numbers that look like chance and are the same each time (FNV-1a).
fn hash(text: &str) -> u64 {
    let mixed = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    mixed ^ (mixed >> 29)
}
