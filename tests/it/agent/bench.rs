//! What the tests of the loop share: an input that a test changes, and a log that it reads.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fleet::agent::{
    AgentEnd, AgentInput, Breaker, Completion, ContextPolicy, EventSink, Limits, LogRequest,
    ModelChoice, Price,
};
use fleet::clock::{Clock, SimulatedClock};
use fleet::model::{
    Answer, Model, ModelError, Request, ScriptCursor, ScriptTurns, ScriptedCall, ScriptedModel,
    ScriptedTurn, WireUsage,
};
use fleet::run::{Cancel, EventKind, NanoUsd, NativeTool, Usage};
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::env::sandbox_double::SandboxDouble;

/// One attempt in the making.
pub struct Bench {
    pub sandbox: SandboxDouble,
    pub clock: SimulatedClock,
    pub cancel: Cancel,
    pub log: Log,
    pub requests: Arc<Mutex<Vec<Request>>>,
    pub input: AgentInput,
    logging: JoinHandle<()>,
}

/// The events that were recorded; `flush` answers at once.
#[derive(Clone, Debug, Default)]
pub struct Log {
    events: watch::Sender<Vec<EventKind>>,
}

impl Log {
    pub fn events(&self) -> Vec<EventKind> {
        self.events.borrow().clone()
    }

    /// Returns once an event is recorded for which `wanted` holds.
    pub async fn wait_for(&self, wanted: impl Fn(&EventKind) -> bool) {
        let mut seen = self.events.subscribe();
        seen.wait_for(|events| events.iter().any(&wanted)).await.expect("the log lives");
    }

    /// The wait of the retry with that index, in milliseconds, once it is recorded.
    pub async fn nth_retry(&self, index: usize) -> u64 {
        let waits = |events: &Vec<EventKind>| -> Vec<u64> {
            let wait = |event: &EventKind| match event {
                EventKind::ModelFailed { retry_in_ms, .. } => *retry_in_ms,
                _ => None,
            };
            events.iter().filter_map(wait).collect()
        };
        let mut seen = self.events.subscribe();
        let events = seen.wait_for(|events| waits(events).len() > index).await;
        waits(&events.expect("the log lives"))[index]
    }

    /// (call id, tool, is error, output) of each result, in order.
    pub fn results(&self) -> Vec<(String, String, bool, String)> {
        let results = self.events().into_iter().filter_map(|event| match event {
            EventKind::ToolFinished { call_id, tool, is_error, output, .. } => {
                Some((call_id, tool, is_error, output))
            }
            _ => None,
        });
        results.collect()
    }

    /// The type names of the events, in order.
    pub fn kinds(&self) -> Vec<String> {
        let kind = |event: &EventKind| {
            let value = serde_json::to_value(event).expect("events are JSON");
            value["type"].as_str().expect("an event has a type").to_owned()
        };
        self.events().iter().map(kind).collect()
    }
}

/// Passes requests on and keeps them.
struct Listening<M> {
    model: M,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl<M: Model> Model for Listening<M> {
    fn complete<'a>(
        &'a self,
        request: &'a Request,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Answer, ModelError>> {
        self.requests.lock().expect("no test panics in here").push(request.clone());
        self.model.complete(request, cancel)
    }
}

/// A turn of words.
pub fn say(text: &str) -> ScriptedTurn {
    ScriptedTurn { text: text.to_owned(), usage: Some(usage(100, 10)), ..Default::default() }
}

/// A turn of calls.
pub fn call(calls: &[(&str, &str)]) -> ScriptedTurn {
    let calls = calls
        .iter()
        .map(|(name, arguments)| ScriptedCall {
            id: None,
            name: (*name).to_owned(),
            arguments: (*arguments).to_owned(),
        })
        .collect();
    ScriptedTurn { calls, usage: Some(usage(100, 10)), ..Default::default() }
}

pub fn usage(prompt_tokens: u64, completion_tokens: u64) -> WireUsage {
    WireUsage { prompt_tokens, completion_tokens, ..Default::default() }
}

/// An attempt that goes through `turns`.
pub fn bench(turns: Vec<ScriptedTurn>) -> Bench {
    bench_of(ScriptTurns { turns, loop_from: None })
}

/// An attempt that goes through a script.
pub fn bench_of(script: ScriptTurns) -> Bench {
    let clock = SimulatedClock::starting_at(Timestamp::UNIX_EPOCH);
    let scripted = ScriptedModel::new(
        "scripted",
        Arc::new(script),
        ScriptCursor::default(),
        Clock::Simulated(clock.clone()),
    );
    bench_with(scripted, clock)
}

/// An attempt with a model of the test's own.
pub fn bench_with(model: impl Model + 'static, clock: SimulatedClock) -> Bench {
    let requests = Arc::new(Mutex::new(Vec::new()));
    let sandbox = SandboxDouble::default();
    let cancel = Cancel::default();
    let (events, mut wanted) = EventSink::channel(4);
    let log = Log::default();
    let kept = log.clone();
    let logging = tokio::spawn(async move {
        while let Some(request) = wanted.recv().await {
            match request {
                LogRequest::Event(event) => kept.events.send_modify(|events| events.push(*event)),
                LogRequest::Flush(stored) => stored.send(()).expect("the loop waits"),
            }
        }
    });
    let input = AgentInput {
        model: ModelChoice {
            model: Arc::new(Listening { model, requests: requests.clone() }),
            name: "m".to_owned(),
            display_name: "scripted/m".to_owned(),
            price: Price {
                input_per_million: NanoUsd(1_000_000_000),
                cached_per_million: NanoUsd(100_000_000),
                output_per_million: NanoUsd(10_000_000_000),
            },
            price_is_estimate: false,
            temperature: None,
            window_tokens: 1_000_000,
            breaker: Breaker::default(),
        },
        fallback: None,
        system_prompt: "system".to_owned(),
        user_prompt: "do it".to_owned(),
        tools: NativeTool::ALL.to_vec(),
        repeat_guard: true,
        memories: fleet::tools::Memories::default(),
        limits: Limits {
            max_cost: None,
            max_total_tokens: None,
            max_iterations: None,
            wall_deadline: None,
        },
        spent_before: Usage::default(),
        wind_down_fraction: 0.8,
        completion: Completion::default(),
        context: ContextPolicy { warn_fraction: 0.75, compact_fraction: 0.9, auto_compact: false },
        sandbox: sandbox.started(),
        egress: None,
        workspace_path: "/w".to_owned(),
        tool_timeout: Duration::from_secs(60),
        python_cell_timeout: None,
        output_limit_bytes: 64 * 1024,
        redactor: fleet::secrets::Redactor::default(),
        events,
        clock: Clock::Simulated(clock.clone()),
        cancel: cancel.clone(),
    };
    Bench { sandbox, clock, cancel, log, requests, input, logging }
}

/// What is left after an attempt.
pub struct Finished {
    pub end: AgentEnd,
    pub log: Log,
    pub sandbox: SandboxDouble,
    pub requests: Vec<Request>,
}

impl Bench {
    /// Another model, which goes through `turns`; its requests are kept with those of the first.
    pub fn another(&self, name: &str, turns: Vec<ScriptedTurn>) -> ModelChoice {
        let script = ScriptTurns { turns, loop_from: None };
        let clock = Clock::Simulated(self.clock.clone());
        let model = ScriptedModel::new(name, Arc::new(script), ScriptCursor::default(), clock);
        ModelChoice {
            model: Arc::new(Listening { model, requests: self.requests.clone() }),
            name: name.to_owned(),
            display_name: format!("other/{name}"),
            breaker: Breaker::default(),
            ..self.input.model.clone()
        }
    }

    /// Runs the attempt to its end.
    pub async fn run(self) -> Finished {
        let Bench { sandbox, log, requests, input, logging, .. } = self;
        let end = fleet::agent::run(input).await;
        logging.await.expect("the log ends with the attempt");
        let requests = requests.lock().expect("no test panics in here").clone();
        Finished { end, log, sandbox, requests }
    }
}

impl Finished {
    /// The output of the only result.
    pub fn only_result(&self) -> String {
        let results = self.log.results();
        assert_eq!(results.len(), 1, "{results:?}");
        results[0].3.clone()
    }
}
