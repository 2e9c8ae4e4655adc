//! A store in a scratch directory, and what tests put into it.

use std::path::{Path, PathBuf};

use fleet::run::{
    Artifact, BootId, Counters, Event, EventKind, FencingToken, Outcome, OutcomeClass, RunId,
    RunState, TaskName, Trigger, Usage,
};
use fleet::secrets::Redactor;
use fleet::store::{AttemptFinish, ClaimRequest, ClaimedRun, Holder, NewOccurrence, Room, Store};
use jiff::{SignedDuration, Timestamp};
use tempfile::TempDir;

/// A store that is removed with the test.
pub struct Bench {
    pub dir: TempDir,
    pub store: Store,
}

impl Bench {
    pub fn new() -> Self {
        Self::with(Redactor::default())
    }

    pub fn with(redactor: Redactor) -> Self {
        let dir = tempfile::tempdir().expect("scratch directory");
        let store = Store::open(&dir.path().join("fleet.db"), redactor).expect("store opens");
        Bench { dir, store }
    }

    pub fn path(&self) -> PathBuf {
        self.dir.path().join("fleet.db")
    }

    /// Records a run due now and claims it.
    pub async fn running(&self, task: &str, number: u32) -> ClaimedRun {
        let occurrence = occurrence(task, number, Trigger::Schedule);
        self.store.insert_and_claim(occurrence, claim("a")).await.expect("claimed")
    }

    /// Records a run that is dead at once.
    pub async fn dead(&self, task: &str, number: u32) -> RunId {
        let claimed = self.running(task, number).await;
        let finish = AttemptFinish {
            dead_letter: Some(fleet::run::DeadLetterClass::NonRetryable),
            ..finish(OutcomeClass::CostCeiling, RunState::DeadLettered)
        };
        let done = self.store.finish_attempt(claimed.run_id.clone(), claimed.token, finish).await;
        done.expect("finished");
        claimed.run_id
    }

    /// Every row of every table, as text.
    pub fn dump(&self) -> String {
        dump(&self.path())
    }
}

/// Every row of every table of a store, as text.
pub fn dump(database: &Path) -> String {
    let connection = rusqlite::Connection::open(database).expect("opens");
    let tables = ["runs", "attempts", "events", "artifacts", "outbox", "counters", "task_totals"];
    let mut text = String::new();
    for table in tables {
        let mut query = connection.prepare(&format!("SELECT * FROM {table}")).expect("a table");
        let columns = query.column_count();
        let mut rows = query.query([]).expect("rows");
        while let Some(row) = rows.next().expect("a row") {
            let values: Vec<String> =
                (0..columns).map(|i| format!("{:?}", row.get_ref(i).expect("a value"))).collect();
            text.push_str(&format!("{table}: {}\n", values.join("|")));
        }
    }
    text
}

pub fn now() -> Timestamp {
    "2026-03-01T09:00:00Z".parse().expect("an instant")
}

pub fn run_id(number: u32) -> RunId {
    RunId::from_parts(1_700_000_000_000 + u64::from(number), number)
}

/// An occurrence, `number` minutes after [`now`].
pub fn occurrence(task: &str, number: u32, trigger: Trigger) -> NewOccurrence {
    NewOccurrence {
        run_id: run_id(number),
        task: TaskName::new(task),
        due: now() + SignedDuration::from_mins(i64::from(number)),
        trigger,
        skip: None,
        tags: vec![format!("tag-{task}")],
        queued_at: now() + SignedDuration::from_mins(i64::from(number)),
        priority: 0,
        room: Room::Shared,
        serialization_key: None,
    }
}

pub fn claim(instance: &str) -> ClaimRequest {
    ClaimRequest {
        holder: Holder { instance: instance.into(), pid: 1, boot: BootId::new("boot") },
        now: now() + SignedDuration::from_hours(24),
        lease_until: now() + SignedDuration::from_hours(25),
        only: None,
    }
}

/// The end of an attempt that published and spent something.
pub fn finish(class: OutcomeClass, state: RunState) -> AttemptFinish {
    AttemptFinish {
        at: now() + SignedDuration::from_hours(24),
        outcome: Outcome::failed(class, "as the test wants"),
        state,
        retry_at: None,
        counters: Counters::default(),
        dead_letter: None,
        usage: Usage { input_tokens: 10, output_tokens: 5, ..Usage::default() },
        answer: Some("done".into()),
        output: None,
        artifacts: vec![artifact("report.md")],
        branch: Some("fleet/branch".into()),
        commit: None,
        diff_stat: None,
        events: vec![warned("the end")],
        cleanup: vec![serde_json::json!({"remove": "x"})],
        park_after: 0,
        notices: Vec::new(),
    }
}

pub fn artifact(name: &str) -> Artifact {
    Artifact { name: name.into(), path: name.into(), description: None, size: 3, sha256: None }
}

pub fn warned(message: &str) -> Event {
    Event { at: now(), attempt: 1, kind: EventKind::Warned { message: message.into() } }
}

/// The token before this one.
pub fn stale(token: FencingToken) -> FencingToken {
    FencingToken(token.0 - 1)
}
