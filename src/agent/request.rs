//! One request to the model, sent again a few times when the provider falters.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use jiff::Timestamp;

use crate::model::{Answer, CallRequest, ModelError, ModelErrorClass, Request};
use crate::run::{EventKind, LoggedCall, Outcome, OutcomeClass};
use crate::sandbox::{Sandbox, StartError};

use super::attempt::Attempt;
use super::pressure::Pressure;
use super::{history, ledger};

/// The waits before a request is sent again. After the last one fails, the attempt ends.
const BACKOFF: [Duration; 3] =
    [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4)];

/// Why a provider whose breaker is open is not asked.
const LEFT_ALONE: &str = "its provider failed requests in a row";

/// What the model wants next.
pub(super) struct Turn {
    pub(super) answer: Answer,
    /// The answer's calls, with distinct ids.
    pub(super) calls: Vec<CallRequest>,
}

impl Attempt {
    /// Asks the model for its next step. The answer is charged and recorded.
    pub(super) async fn ask(&mut self) -> Result<Turn, Outcome> {
        if self.sandbox.is_none()
            && let Some(started) = self.pending_sandbox.clone().now_or_never()
        {
            // Nothing is paid for when it is known already that nothing can run.
            self.keep_sandbox(started)?;
        }
        self.ledger.begin_round()?;
        self.wait_for_breaker().await?;
        self.relieve_pressure().await?;
        let notice = self.wind_down().await?;
        let mut request = self.request(notice.clone());
        let mut estimate = ledger::prompt_tokens(&request);
        let mut waits = BACKOFF.into_iter();
        loop {
            let error = match self.send(&request, estimate).await? {
                Ok(turn) => return Ok(turn),
                Err(error) => error,
            };
            let wait = match error.class {
                ModelErrorClass::Transient => waits.next(),
                _ => None,
            };
            // A provider may ask for a longer wait, never for a shorter one.
            let wait = wait.map(|wait| error.retry_after.map_or(wait, |asked| asked.max(wait)));
            self.record_failure(&error, wait).await?;
            if error.class == ModelErrorClass::ContextOverflow {
                self.pressure.refused(&error, estimate);
                if !self.recover_from_overflow().await? {
                    return Err(outcome(&error));
                }
                request = self.request(notice.clone());
                estimate = ledger::prompt_tokens(&request);
                waits = BACKOFF.into_iter();
                self.ledger.check_room()?;
                continue;
            }
            match wait {
                Some(wait) => {
                    let clock = self.guard.clock.clone();
                    self.guard.or_drop(clock.sleep(wait)).await?;
                    // Its own few retries do not wait for the breaker that they opened.
                    if self.is_left_alone() && self.switch_model(LEFT_ALONE).await? {
                        request = self.request_again(&request);
                        waits = BACKOFF.into_iter();
                    }
                }
                None if error.class == ModelErrorClass::Transient
                    && self.switch_model("it failed again and again").await? =>
                {
                    request = self.request_again(&request);
                    waits = BACKOFF.into_iter();
                }
                None => return Err(outcome(&error)),
            }
            self.ledger.check_room()?;
        }
    }

    /// The next request, with `notice` in it alone.
    pub(super) fn request(&self, notice: Option<String>) -> Request {
        Request {
            model: self.model.name.clone(),
            system: self.system.clone(),
            messages: self.history.messages_with(notice),
            tools: self.offered.clone(),
            temperature: self.model.temperature,
            max_output_tokens: None,
        }
    }

    /// The same request for the model that answers now: what one provider thought is nothing to
    /// another.
    fn request_again(&self, request: &Request) -> Request {
        Request {
            model: self.model.name.clone(),
            messages: request.messages.iter().map(history::without_reasoning).collect(),
            temperature: self.model.temperature,
            ..request.clone()
        }
    }

    /// Goes over to the fallback model for the rest of the attempt. False when there is none.
    async fn switch_model(&mut self, why: &str) -> Result<bool, Outcome> {
        let Some(fallback) = self.fallback.take() else { return Ok(false) };
        let failed = std::mem::replace(&mut self.model, fallback);
        self.history.forget_reasoning();
        self.pressure = Pressure::default();
        self.record(EventKind::ModelSwitched {
            from: failed.display_name,
            to: self.model.display_name.clone(),
            reason: why.to_owned(),
        })
        .await?;
        Ok(true)
    }

    /// Whether the model's provider failed requests in a row, so that it is left alone.
    fn is_left_alone(&self) -> bool {
        self.model.breaker.open_until(self.guard.clock.now()).is_some()
    }

    /// Does not ask a provider that failed other requests in a row: goes over to the fallback model, or
    /// waits.
    async fn wait_for_breaker(&mut self) -> Result<(), Outcome> {
        while let Some(until) = self.model.breaker.open_until(self.guard.clock.now()) {
            if self.switch_model(LEFT_ALONE).await? {
                continue;
            }
            let message = format!(
                "{} failed requests in a row, of other runs too: the next one waits until {until:.0}",
                self.model.display_name
            );
            self.record(EventKind::Warned { message }).await?;
            let clock = self.guard.clock.clone();
            self.guard.or_drop(clock.sleep_until(until)).await?;
        }
        Ok(())
    }

    /// Sends the request once.
    async fn send(
        &mut self,
        request: &Request,
        estimate: u64,
    ) -> Result<Result<Turn, ModelError>, Outcome> {
        self.record(EventKind::ModelRequested {
            model: self.model.display_name.clone(),
            round: self.ledger.round(),
            messages: u32::try_from(request.messages.len()).unwrap_or(u32::MAX),
            estimated_tokens: estimate,
            estimated_cost: ledger::usage_of_unanswered(estimate, &self.model).cost_nano_usd,
        })
        .await?;
        self.flush().await?;

        let began = self.guard.clock.now();
        let answered = self.answered_or_ended(request).await;
        if let Ok(answered) = &answered {
            self.tell_breaker(answered);
        }
        match answered {
            Ok(Ok(answer)) => self.keep_answer(answer, estimate, began).await.map(Ok),
            Ok(Err(error)) => {
                if error.perhaps_billed {
                    self.ledger.charge(ledger::usage_of_unanswered(estimate, &self.model));
                }
                Ok(Err(error))
            }
            Err(outcome) => {
                // The request was on its way: it may have been paid for.
                self.ledger.charge(ledger::usage_of_unanswered(estimate, &self.model));
                Err(outcome)
            }
        }
    }

    fn tell_breaker(&self, answered: &Result<Answer, ModelError>) {
        match answered {
            Err(error) if error.class == ModelErrorClass::Transient => {
                self.model.breaker.failed(self.guard.clock.now());
            }
            // A cut-off wait tells nothing.
            Err(error) if error.class == ModelErrorClass::Cancelled => {}
            Ok(_) | Err(_) => self.model.breaker.answered(),
        }
    }

    async fn keep_answer(
        &mut self,
        answer: Answer,
        estimate: u64,
        began: Timestamp,
    ) -> Result<Turn, Outcome> {
        let usage = ledger::usage_of(&answer, estimate, &self.model);
        self.ledger.charge(usage);
        self.pressure.answered(answer.usage.map(|wire| wire.prompt_tokens), estimate);
        let calls = self.history.distinct_calls(&answer);
        self.record(EventKind::ModelAnswered {
            model: self.model.display_name.clone(),
            round: self.ledger.round(),
            text: answer.text.clone(),
            tool_calls: calls.iter().map(logged).collect(),
            stop: answer.stop.as_str().to_owned(),
            usage,
            duration_ms: self.millis_since(began),
        })
        .await?;
        Ok(Turn { answer, calls })
    }

    /// Waits for the answer while the sandbox starts. A sandbox that does not start ends the attempt
    /// at once: there is nothing that the answer could be used for.
    async fn answered_or_ended(
        &mut self,
        request: &Request,
    ) -> Result<Result<Answer, ModelError>, Outcome> {
        let model = Arc::clone(&self.model.model);
        let token = self.guard.cancel.token().clone();
        let answer = model.complete(request, &token);
        let mut answer = std::pin::pin!(answer);
        if self.sandbox.is_none() {
            let pending = self.pending_sandbox.clone();
            let first = self
                .guard
                .or_drop(async {
                    tokio::select! {
                        biased;
                        answer = &mut answer => Started::Answer(answer),
                        sandbox = pending => Started::Sandbox(sandbox),
                    }
                })
                .await?;
            match first {
                Started::Answer(answer) => return Ok(answer),
                Started::Sandbox(sandbox) => {
                    self.keep_sandbox(sandbox)?;
                }
            }
        }
        self.guard.or_drop(answer).await
    }

    async fn record_failure(
        &mut self,
        error: &ModelError,
        wait: Option<Duration>,
    ) -> Result<(), Outcome> {
        self.record(EventKind::ModelFailed {
            model: self.model.display_name.clone(),
            round: self.ledger.round(),
            class: error.class.as_str().to_owned(),
            message: error.message.clone(),
            retry_in_ms: wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
        })
        .await
    }

    /// The notice for this request when spending is near a ceiling; the first one is an event.
    async fn wind_down(&mut self) -> Result<Option<String>, Outcome> {
        let Some(near) = self.ledger.near_ceiling(self.wind_down_fraction) else {
            return Ok(None);
        };
        let notice = format!(
            "BUDGET WIND-DOWN: {} of {} {} is spent. Start no substantial new work. Finish what is \
             nearly done, then end with: what is done, what remains, what blocks it, and the next \
             step.",
            near.spent, near.limit, near.ceiling
        );
        if !std::mem::replace(&mut self.wound_down, true) {
            self.record(EventKind::BudgetWindDown {
                ceiling: near.ceiling.to_owned(),
                spent: near.spent,
                limit: near.limit,
            })
            .await?;
        }
        Ok(Some(notice))
    }
}

enum Started {
    Answer(Result<Answer, ModelError>),
    Sandbox(Result<Arc<dyn Sandbox>, StartError>),
}

/// A call as it is logged.
fn logged(call: &CallRequest) -> LoggedCall {
    LoggedCall {
        call_id: call.id.clone(),
        tool: history::stored_name(&call.name),
        arguments: history::stored_arguments(&call.arguments),
    }
}

fn outcome(error: &ModelError) -> Outcome {
    let class = match error.class {
        ModelErrorClass::Transient => OutcomeClass::Transient,
        ModelErrorClass::ContextOverflow => OutcomeClass::ContextBudget,
        ModelErrorClass::Config => OutcomeClass::Config,
        ModelErrorClass::Cancelled => OutcomeClass::Interrupted,
    };
    Outcome::failed(class, error.to_string())
}
