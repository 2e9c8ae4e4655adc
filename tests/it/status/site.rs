//! A page that is served from a store with a finished run, a dead letter and a running one.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use fleet::bundle::{Problem, Severity};
use fleet::clock::Clock;
use fleet::run::{
    Artifact, BootId, CommitId, Counters, DeadLetterClass, Event, EventKind, LoggedCall, NanoUsd,
    Outcome, OutcomeClass, RunId, RunState, TaskName, Trigger, Usage,
};
use fleet::schedule::Schedule;
use fleet::secrets::Redactor;
use fleet::status::{BundleView, Instance, StatusContext, TaskView, bind, serve};
use fleet::store::{
    AttemptFacts, AttemptFinish, ClaimRequest, ClaimedRun, Holder, NewOccurrence, Room, Store,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub(super) const FINISHED: &str = "0000000000000001";
pub(super) const DEAD: &str = "0000000000000002";
pub(super) const RUNNING: &str = "0000000000000003";
pub(super) const ATTACK: &str =
    "<script>document.title='owned'</script><img src=x onerror=alert(1)>";

pub(super) struct Site {
    pub address: SocketAddr,
    pub store: Store,
    pub bundle: watch::Sender<Arc<BundleView>>,
    pub stop: CancellationToken,
    pub server: JoinHandle<()>,
    _dir: tempfile::TempDir,
}

/// An answer, read to its end.
#[derive(Debug)]
pub(super) struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

impl Site {
    /// Serves a store with runs.
    pub(super) async fn with_runs() -> Self {
        let site = Site::empty(bundle()).await;
        let now = Timestamp::now();
        finished(&site.store, now - SignedDuration::from_mins(90)).await;
        dead(&site.store, now - SignedDuration::from_mins(30)).await;
        running(&site.store, now - SignedDuration::from_secs(40)).await;
        let copy = site._dir.path().join("artifacts").join(FINISHED).join("1");
        std::fs::create_dir_all(&copy).expect("directory");
        std::fs::write(copy.join("1"), "<script>alert('artifact')</script>").expect("copy");
        site
    }

    /// Serves an empty store.
    pub(super) async fn empty(bundle: BundleView) -> Self {
        let dir = tempfile::tempdir().expect("scratch directory");
        let store =
            Store::open(&dir.path().join("fleet.db"), Redactor::default()).expect("store opens");
        let bundle = watch::Sender::new(Arc::new(bundle));
        let listener = bind("127.0.0.1:0".parse().expect("address")).await.expect("a free port");
        let address = listener.local_addr().expect("address");
        let context = StatusContext {
            store: store.clone(),
            bundle: bundle.subscribe(),
            clock: Clock::System,
            instance: Instance {
                pid: 4711,
                started_at: Timestamp::now(),
                limits: "best_effort".into(),
                seal: Some(seal()),
            },
            heartbeat: Default::default(),
            alarms: fleet::run::Alarms::default(),
            artifacts: dir.path().join("artifacts"),
        };
        context.heartbeat.beat(Timestamp::now());
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let server = tokio::spawn(async move {
            serve(listener, context, stopped).await.expect("serving ends well");
        });
        Site { address, store, bundle, stop, server, _dir: dir }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(super) async fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &self.address.to_string()).await
    }

    pub(super) async fn ask(&self, method: &str, path: &str, host: &str) -> Answer {
        let mut stream = self.send(method, path, host).await;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.expect("an answer");
        let text = String::from_utf8_lossy(&bytes);
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).expect("a status").parse().expect("a number");
        Answer { status, head: head.to_owned(), body: body.to_owned() }
    }

    /// Sends a request and hands the connection back.
    pub(super) async fn send(&self, method: &str, path: &str, host: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.expect("connects");
        let request =
            format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("sends");
        stream
    }
}

pub(super) fn bundle() -> BundleView {
    let task = |name: &str, cron: Option<&str>| TaskView {
        name: TaskName::new(name),
        description: Some(format!("What {name} does, in one line for the overview")),
        enabled: true,
        schedule: cron.map(|cron| Schedule::parse(cron, "Europe/Berlin").expect("a schedule")),
        timezone: "Europe/Berlin".into(),
        left: None,
        count: None,
        next_due: None,
        tags: vec!["daily".into()],
        paused: None,
    };
    BundleView {
        name: "demo".into(),
        commit: Some(CommitId::new("1f6e2d3c4b5a69788796a5b4c3d2e1f001234567")),
        loaded_at: Some(Timestamp::now()),
        tasks: vec![
            task("report", Some("0 7 * * *")),
            task("sweep", Some("*/15 * * * *")),
            task("by-hand", None),
        ],
        problems: vec![Problem {
            file: "tasks/report.yaml".into(),
            line: 14,
            column: 11,
            end_line: 14,
            end_column: 23,
            code: "bad-schedule",
            severity: Severity::Error,
            message: format!("schedule {ATTACK:?} has one field"),
            hint: Some("five fields: minute hour day month weekday".into()),
        }],
        problems_commit: Some(CommitId::new("f".repeat(40))),
    }
}

fn seal() -> serde_json::Value {
    json!({"runtime": "runc", "image_id": "e".repeat(64), "lines": [
        {"property": "cap_eff", "wanted": "0", "seen": "0", "holds": true},
        {"property": "pids.max", "wanted": "128", "seen": "max", "holds": false}]})
}

async fn claim(store: &Store, id: &str, task: &str, due: Timestamp) -> ClaimedRun {
    let occurrence = NewOccurrence {
        run_id: RunId::new(id),
        task: TaskName::new(task),
        due,
        trigger: Trigger::Schedule,
        skip: None,
        tags: vec!["daily".into()],
        queued_at: due,
        priority: 0,
        room: Room::Shared,
        serialization_key: None,
    };
    store.insert_occurrences(vec![occurrence], None).await.expect("inserted");
    let request = ClaimRequest {
        holder: Holder { instance: "i".into(), pid: 1, boot: BootId::new("b") },
        now: due,
        lease_until: due + SignedDuration::from_hours(1),
        only: Some(RunId::new(id)),
    };
    let claimed = store.claim_next(request).await.expect("a claim").expect("a run");
    let facts = AttemptFacts {
        bundle_commit: Some(CommitId::new("1f6e2d3c4b5a69788796a5b4c3d2e1f001234567")),
        branch: Some(format!("fleet/task-{task}-{id}")),
        container: Some("d".repeat(64)),
        model: Some("scripted/demo".into()),
        limits: Some("best_effort".into()),
        seal: Some(seal()),
        ..AttemptFacts::default()
    };
    store.set_attempt_facts(claimed.run_id.clone(), claimed.token, facts).await.expect("facts");
    store.append_events(claimed.run_id.clone(), claimed.token, log(due)).await.expect("events");
    claimed
}

fn usage() -> Usage {
    Usage {
        input_tokens: 1200,
        cached_tokens: 300,
        output_tokens: 240,
        cost_nano_usd: NanoUsd(12_400_000),
        estimated: false,
    }
}

fn log(start: Timestamp) -> Vec<Event> {
    let call = |id: &str, tool: &str, arguments: &str| LoggedCall {
        call_id: id.into(),
        tool: tool.into(),
        arguments: arguments.into(),
    };
    let kinds = vec![
        EventKind::AttemptStarted { bundle_commit: "1f6e2d3c4b5a".into(), holder_pid: 4711 },
        EventKind::WorktreeReady {
            path: "w".into(),
            branch: Some("fleet/task-report-1".into()),
            base_commit: "c".repeat(40),
            duration_ms: 6,
        },
        EventKind::SandboxReady {
            container: "d".repeat(64),
            image_id: "e".repeat(64),
            runtime: "runc".into(),
            limits: "best_effort".into(),
            duration_ms: 121,
        },
        EventKind::ModelAnswered {
            model: "scripted/demo".into(),
            round: 1,
            text: format!("I look at the repository first. {ATTACK}"),
            tool_calls: vec![
                call(
                    "c1",
                    "bash",
                    r#"{"command":"git log --oneline | head -20 && wc -l $(git ls-files) | sort -rn | head -40"}"#,
                ),
                call("c2", "bash", r#"{"command":"make test"}"#),
            ],
            stop: "tool_calls".into(),
            usage: usage(),
            duration_ms: 1240,
        },
        EventKind::ToolFinished {
            call_id: "c1".into(),
            tool: "bash".into(),
            is_error: false,
            output: format!("1f6e2d3 start\n{ATTACK}\n{}", "x".repeat(300)),
            exit_code: Some(0),
            duration_ms: 14,
            effects: false,
        },
        EventKind::ToolFinished {
            call_id: "c2".into(),
            tool: "bash".into(),
            is_error: true,
            output: "make: *** No rule to make target 'test'.  Stop.".into(),
            exit_code: Some(2),
            duration_ms: 9,
            effects: false,
        },
        EventKind::ModelRequested {
            model: "scripted/demo".into(),
            round: 2,
            messages: 6,
            estimated_tokens: 1600,
            estimated_cost: NanoUsd(0),
        },
    ];
    (0..).zip(kinds).map(|(step, kind)| event(start, step, kind)).collect()
}

fn event(start: Timestamp, step: u64, kind: EventKind) -> Event {
    Event { at: start + Duration::from_millis(step * 350), attempt: 1, kind }
}

fn finish(at: Timestamp, outcome: Outcome, state: RunState) -> AttemptFinish {
    AttemptFinish {
        at,
        outcome,
        state,
        retry_at: None,
        counters: Counters::default(),
        dead_letter: None,
        usage: usage(),
        answer: None,
        output: None,
        artifacts: Vec::new(),
        branch: None,
        commit: None,
        diff_stat: None,
        events: Vec::new(),
        cleanup: Vec::new(),
        park_after: 0,
        notices: Vec::new(),
    }
}

async fn finished(store: &Store, due: Timestamp) {
    let claimed = claim(store, FINISHED, "report", due).await;
    let file = Artifact {
        name: "report.html".into(),
        path: "out/report.html".into(),
        description: Some("The morning report".into()),
        size: 34,
        sha256: Some("9".repeat(64)),
    };
    let last = vec![
        EventKind::ModelAnswered {
            model: "scripted/demo".into(),
            round: 2,
            text: "The report is written.".into(),
            tool_calls: Vec::new(),
            stop: "end_turn".into(),
            usage: usage(),
            duration_ms: 900,
        },
        EventKind::GateChecked {
            gate: "artifacts".into(),
            passed: true,
            message: "out/report.html is published".into(),
        },
        EventKind::ArtifactPublished { artifact: file.clone() },
        EventKind::AttemptFinished { outcome: Outcome::success(), usage: usage(), retry_at: None },
    ];
    let ended = AttemptFinish {
        answer: Some(format!("The report is written.\n{ATTACK}")),
        artifacts: vec![file],
        branch: Some(format!("fleet/task-report-{FINISHED}")),
        commit: Some(CommitId::new("a".repeat(40))),
        diff_stat: Some(
            " out/report.html | 12 ++++++++++++\n 1 file changed, 12 insertions(+)".into(),
        ),
        events: (7..).zip(last).map(|(step, kind)| event(due, step, kind)).collect(),
        ..finish(due + SignedDuration::from_secs(65), Outcome::success(), RunState::Success)
    };
    store.finish_attempt(claimed.run_id, claimed.token, ended).await.expect("finished");
}

async fn dead(store: &Store, due: Timestamp) {
    let claimed = claim(store, DEAD, "sweep", due).await;
    let outcome =
        Outcome::failed(OutcomeClass::CompletionFailed, format!("make test ended with 2 {ATTACK}"));
    let ended = AttemptFinish {
        dead_letter: Some(DeadLetterClass::NonRetryable),
        ..finish(due + SignedDuration::from_secs(12), outcome, RunState::DeadLettered)
    };
    store.finish_attempt(claimed.run_id, claimed.token, ended).await.expect("finished");
}

async fn running(store: &Store, due: Timestamp) {
    claim(store, RUNNING, "report", due).await;
}
