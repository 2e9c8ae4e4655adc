//! The binary in a scratch home, and a store that holds what it shows.

use std::path::PathBuf;
use std::process::{Command, Output};

use fleet::config::StateDir;
use fleet::run::{
    Artifact, BootId, CommitId, Counters, DeadLetterClass, Event, EventKind, NanoUsd, Outcome,
    OutcomeClass, RunId, RunState, TaskName, Trigger, Usage,
};
use fleet::secrets::Redactor;
use fleet::store::{
    AttemptFacts, AttemptFinish, ClaimRequest, ClaimedRun, Holder, NewOccurrence, Room, Store,
};
use jiff::{SignedDuration, Timestamp};
use tempfile::TempDir;

use crate::env::fleet_binary;

/// What a call of the binary did.
#[derive(Debug, PartialEq)]
pub struct Done {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Done {
    pub fn json(&self) -> serde_json::Value {
        assert_eq!(self.code, 0, "{self:?}");
        serde_json::from_str(&self.out).expect("standard output is JSON")
    }
}

/// A scratch home; its state directory is `state` in it.
pub struct Bench {
    pub home: TempDir,
}

impl Bench {
    pub fn new() -> Self {
        Bench { home: tempfile::tempdir().expect("scratch directory") }
    }

    pub fn state(&self) -> StateDir {
        StateDir::new(self.home.path().join("state"))
    }

    /// The binary with `HOME` and the state directory and nothing else.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(fleet_binary());
        command
            .args(args)
            .env_clear()
            .env("HOME", self.home.path())
            .env("FLEET_STATE_DIR", self.state().root())
            .current_dir(self.home.path());
        command
    }

    pub fn fleet(&self, args: &[&str]) -> Done {
        self.done(self.command(args).output().expect("fleet starts"))
    }

    /// Output with the home's path as `~`.
    pub fn done(&self, output: Output) -> Done {
        let text = |bytes: Vec<u8>| {
            let text = String::from_utf8(bytes).expect("fleet speaks UTF-8");
            text.replace(&self.home.path().display().to_string(), "~")
        };
        Done {
            code: output.status.code().expect("fleet is not killed"),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }

    pub fn store(&self) -> Store {
        Store::open(&self.state().database(), Redactor::default()).expect("store opens")
    }

    /// What lies in the home.
    pub fn files(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.home.path()).expect("the home is there");
        entries.map(|entry| entry.expect("entry").path()).collect()
    }
}

pub fn now() -> Timestamp {
    "2026-03-01T09:00:00Z".parse().expect("an instant")
}

pub fn run_id(number: u32) -> RunId {
    RunId::from_parts(1_700_000_000_000 + u64::from(number) * 40_000_000, number)
}

/// Records a run due at [`now`] plus minutes, and claims it.
pub async fn running(store: &Store, task: &str, number: u32) -> ClaimedRun {
    let occurrence = NewOccurrence {
        run_id: run_id(number),
        task: TaskName::new(task),
        due: now() + SignedDuration::from_mins(i64::from(number)),
        trigger: Trigger::Schedule,
        skip: None,
        tags: vec!["weekly".into()],
        queued_at: now(),
        priority: 0,
        room: Room::Shared,
        serialization_key: None,
    };
    store.insert_and_claim(occurrence, claim()).await.expect("claimed")
}

/// Claims what is pending or whose retry is due.
pub async fn claim_again(store: &Store) -> ClaimedRun {
    let request = ClaimRequest { now: now() + SignedDuration::from_mins(10), ..claim() };
    store.claim_next(request).await.expect("claims").expect("is due")
}

fn claim() -> ClaimRequest {
    let holder = Holder { instance: "a".into(), pid: 7, boot: BootId::new("boot") };
    let lease_until = now() + SignedDuration::from_hours(1);
    ClaimRequest { holder, now: now(), lease_until, only: None }
}

pub fn event(kind: EventKind) -> Event {
    Event { at: now(), attempt: 1, kind }
}

/// A success with a branch and two artifacts.
pub fn success() -> AttemptFinish {
    let artifact = |name: &str| Artifact {
        name: name.into(),
        path: format!("out/{name}"),
        description: Some("for the week".into()),
        size: 5,
        sha256: None,
    };
    AttemptFinish {
        at: now() + SignedDuration::from_secs(90),
        outcome: Outcome::success(),
        state: RunState::Success,
        retry_at: None,
        counters: Counters::default(),
        dead_letter: None,
        usage: Usage {
            input_tokens: 100,
            cached_tokens: 20,
            output_tokens: 30,
            cost_nano_usd: NanoUsd(12_000_000),
            estimated: false,
        },
        answer: Some("All is well.\u{1b}[2J".into()),
        output: None,
        artifacts: vec![artifact("report.md"), artifact("../../numbers.csv")],
        branch: Some("fleet/report-x".into()),
        commit: Some(CommitId::new("0123456789abcdef0123456789abcdef01234567")),
        diff_stat: Some(" out/report.md | 1 +\n 1 file changed, 1 insertion(+)".into()),
        events: vec![event(EventKind::AttemptFinished {
            outcome: Outcome::success(),
            usage: Usage::default(),
            retry_at: None,
        })],
        cleanup: Vec::new(),
        park_after: 0,
        notices: Vec::new(),
    }
}

pub fn dead() -> AttemptFinish {
    AttemptFinish {
        outcome: Outcome::failed(OutcomeClass::CostCeiling, "$0.50 of $0.50 is spent"),
        state: RunState::DeadLettered,
        dead_letter: Some(DeadLetterClass::NonRetryable),
        artifacts: Vec::new(),
        branch: None,
        commit: None,
        diff_stat: None,
        answer: None,
        ..success()
    }
}

pub fn facts() -> AttemptFacts {
    AttemptFacts {
        bundle_commit: Some(CommitId::new("89abcdef0123456789abcdef0123456789abcdef")),
        repo: Some("/srv/repo".into()),
        model: Some("scripted/report".into()),
        branch: Some("fleet/report-x".into()),
        limits: Some("best_effort".into()),
        seal: Some(serde_json::json!({
            "limits": "best_effort",
            "runtime": "runc",
            "lines": [
                {"property": "interfaces", "wanted": "lo", "seen": "lo", "holds": true},
                {"property": "memory.max", "wanted": "536870912", "seen": "none", "holds": false},
            ],
        })),
        ..AttemptFacts::default()
    }
}

/// A run of `report` that succeeded, and a dead one of `tidy`.
pub async fn history(store: &Store) {
    let claimed = running(store, "report", 1).await;
    let run = claimed.run_id.clone();
    store.set_attempt_facts(run.clone(), claimed.token, facts()).await.expect("recorded");
    store.finish_attempt(run, claimed.token, success()).await.expect("ends");
    let claimed = running(store, "tidy", 2).await;
    store.finish_attempt(claimed.run_id, claimed.token, dead()).await.expect("ends");
}
