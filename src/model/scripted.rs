//! The embedded model: it says what a recorded session says, turn by turn. The tools that it calls
//! really run. Knows nothing of the bundle: the runner converts a recorded session into
//! [`ScriptTurns`].

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;

use super::fault::Fault;
use super::{
    Answer, CallRequest, Model, ModelError, ModelErrorClass, Request, StopReason, WireUsage,
};

/// A recorded session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScriptTurns {
    pub turns: Vec<ScriptedTurn>,
    /// After the last turn, go on from this index; absent: plain ends of turn without text.
    pub loop_from: Option<usize>,
}

/// One answer, or one fault.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScriptedTurn {
    pub text: String,
    pub calls: Vec<ScriptedCall>,
    /// Absent: as from a provider that reports no usage.
    pub usage: Option<WireUsage>,
    pub delay: Duration,
    /// Absent: by whether there are calls.
    pub stop: Option<StopReason>,
    /// Instead of the answer.
    pub fault: Option<ScriptedFault>,
}

/// One tool call of a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScriptedCall {
    /// Absent: a distinct one is made. Present: sent as it is, even empty or repeated.
    pub id: Option<String>,
    pub name: String,
    /// The arguments' text, perhaps malformed.
    pub arguments: String,
}

/// An HTTP-like fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptedFault {
    pub status: u16,
    pub message: String,
    pub retry_after: Option<Duration>,
    /// How many requests it answers before the script goes on; 0 counts as 1.
    pub times: u32,
}

/// Where a session stands. Clones share it, so a run whose attempts go on where the last one ended
/// gives each attempt's model the same cursor.
#[derive(Clone, Debug, Default)]
pub struct ScriptCursor {
    position: Arc<Mutex<Position>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Position {
    turn: usize,
    faults_served: u32,
    /// Requests answered so far: makes call ids distinct.
    requests: u64,
}

impl ScriptCursor {
    /// A cursor before the turn of that index.
    pub fn at_turn(turn: usize) -> Self {
        let position = Position { turn, ..Position::default() };
        ScriptCursor { position: Arc::new(Mutex::new(position)) }
    }

    /// The index of the turn that comes next.
    pub fn turn(&self) -> usize {
        self.position.lock().unwrap_or_else(PoisonError::into_inner).turn
    }

    /// The turn that answers the next request, and that request's number.
    fn advance(&self, script: &ScriptTurns) -> (Option<ScriptedTurn>, u64) {
        let mut position = self.position.lock().unwrap_or_else(PoisonError::into_inner);
        position.requests += 1;
        if position.turn >= script.turns.len()
            && let Some(start) = script.loop_from
        {
            position.turn = start;
        }
        let Some(turn) = script.turns.get(position.turn) else {
            return (None, position.requests);
        };
        position.faults_served += 1;
        let serves = turn.fault.as_ref().map_or(1, |fault| fault.times.max(1));
        if position.faults_served >= serves {
            position.turn += 1;
            position.faults_served = 0;
        }
        (Some(turn.clone()), position.requests)
    }
}

/// A model that answers from a recorded session.
#[derive(Clone, Debug)]
pub struct ScriptedModel {
    provider: String,
    script: Arc<ScriptTurns>,
    cursor: ScriptCursor,
    clock: Clock,
}

impl ScriptedModel {
    /// A model that goes through `script` from where `cursor` stands; delays pass on `clock`.
    pub fn new(
        provider: impl Into<String>,
        script: Arc<ScriptTurns>,
        cursor: ScriptCursor,
        clock: Clock,
    ) -> Self {
        ScriptedModel { provider: provider.into(), script, cursor, clock }
    }

    async fn answer(&self, cancel: &CancellationToken) -> Result<Answer, ModelError> {
        let (turn, number) = self.cursor.advance(&self.script);
        // Beyond the last turn nothing was recorded: the model has nothing to say and costs nothing.
        let turn = turn.unwrap_or_else(|| ScriptedTurn {
            usage: Some(WireUsage { prompt_tokens: 1, cost_usd: Some(0.0), ..Default::default() }),
            ..ScriptedTurn::default()
        });
        if !turn.delay.is_zero() {
            tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(self.cancelled()),
                () = self.clock.sleep(turn.delay) => {}
            }
        }
        match turn.fault {
            Some(fault) => Err(self.fault(fault)),
            None => Ok(recorded_answer(turn, number)),
        }
    }

    fn cancelled(&self) -> ModelError {
        ModelError {
            class: ModelErrorClass::Cancelled,
            provider: self.provider.clone(),
            message: "the request was cancelled".to_owned(),
            retry_after: None,
            perhaps_billed: false,
            window_tokens: None,
        }
    }

    fn fault(&self, fault: ScriptedFault) -> ModelError {
        let told = Fault {
            status: Some(fault.status),
            codes: Vec::new(),
            message: fault.message.clone(),
            bare: fault.message.is_empty(),
        };
        ModelError {
            class: told.class(),
            provider: self.provider.clone(),
            message: format!("status {}: {}", fault.status, fault.message),
            retry_after: fault.retry_after,
            perhaps_billed: false,
            window_tokens: told.window_tokens(),
        }
    }
}

fn recorded_answer(turn: ScriptedTurn, number: u64) -> Answer {
    let by_calls = if turn.calls.is_empty() { StopReason::EndTurn } else { StopReason::ToolCalls };
    let calls = turn
        .calls
        .into_iter()
        .enumerate()
        .map(|(index, call)| CallRequest {
            id: call.id.unwrap_or_else(|| format!("scripted_{number}_{index}")),
            name: call.name,
            arguments: call.arguments,
        })
        .collect();
    Answer {
        text: turn.text,
        calls,
        reasoning: None,
        stop: turn.stop.unwrap_or(by_calls),
        usage: turn.usage,
    }
}

impl Model for ScriptedModel {
    fn complete<'a>(
        &'a self,
        _request: &'a Request,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Answer, ModelError>> {
        self.answer(cancel).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn say(text: &str) -> ScriptedTurn {
        ScriptedTurn { text: text.to_owned(), ..ScriptedTurn::default() }
    }

    fn request() -> Request {
        Request {
            model: "m".to_owned(),
            system: "".into(),
            messages: Vec::new(),
            tools: Arc::new([]),
            temperature: None,
            max_output_tokens: None,
        }
    }

    async fn words(model: &ScriptedModel, requests: usize) -> Vec<String> {
        let mut words = Vec::new();
        for _ in 0..requests {
            let answer = model.complete(&request(), &CancellationToken::new()).await;
            words.push(answer.map_or_else(|error| error.to_string(), |answer| answer.text));
        }
        words
    }

    #[tokio::test]
    async fn turns_come_in_order_and_end_in_empty_ends_of_turn() {
        let script = ScriptTurns { turns: vec![say("one"), say("two")], loop_from: None };
        let model =
            ScriptedModel::new("s", Arc::new(script), ScriptCursor::default(), Clock::System);
        assert_eq!(words(&model, 4).await, ["one", "two", "", ""]);
    }

    #[tokio::test]
    async fn loop_from_repeats_the_tail_for_ever() {
        let script = ScriptTurns { turns: vec![say("a"), say("b"), say("c")], loop_from: Some(1) };
        let model =
            ScriptedModel::new("s", Arc::new(script), ScriptCursor::default(), Clock::System);
        assert_eq!(words(&model, 6).await, ["a", "b", "c", "b", "c", "b"]);
    }

    #[tokio::test]
    async fn a_shared_cursor_carries_a_session_over_to_the_next_attempt() {
        let script = Arc::new(ScriptTurns { turns: vec![say("a"), say("b")], loop_from: None });
        let cursor = ScriptCursor::default();
        let first = ScriptedModel::new("s", script.clone(), cursor.clone(), Clock::System);
        assert_eq!(words(&first, 1).await, ["a"]);
        let second = ScriptedModel::new("s", script, cursor, Clock::System);
        assert_eq!(words(&second, 1).await, ["b"]);
    }

    #[tokio::test]
    async fn a_fault_answers_as_often_as_it_says() {
        let fault =
            ScriptedFault { status: 503, message: "busy".to_owned(), retry_after: None, times: 2 };
        let turn = ScriptedTurn { fault: Some(fault), ..ScriptedTurn::default() };
        let script = ScriptTurns { turns: vec![turn, say("done")], loop_from: None };
        let model =
            ScriptedModel::new("s", Arc::new(script), ScriptCursor::default(), Clock::System);
        let busy = "model s: status 503: busy";
        assert_eq!(words(&model, 3).await, [busy, busy, "done"]);
    }
}
