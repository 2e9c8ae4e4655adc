//! Requests beside the conversation, such as for a summary. They are paid for like all others and
//! recorded as auxiliary usage.

use std::sync::Arc;

use crate::model::{Answer, ModelError, Request};
use crate::run::{EventKind, Outcome};

use super::attempt::Attempt;
use super::ledger;

impl Attempt {
    /// Asks the attempt's own model once, without the conversation. Charged to the run's account.
    pub(super) async fn ask_aside(
        &mut self,
        purpose: &str,
        request: &Request,
    ) -> Result<Result<Answer, ModelError>, Outcome> {
        let estimate = ledger::prompt_tokens(request);
        let unanswered = ledger::usage_of_unanswered(estimate, &self.model);
        self.record(EventKind::AuxRequested {
            purpose: purpose.to_owned(),
            model: self.model.display_name.clone(),
            estimated_tokens: estimate,
            estimated_cost: unanswered.cost_nano_usd,
        })
        .await?;
        self.flush().await?;
        let began = self.guard.clock.now();
        let model = Arc::clone(&self.model.model);
        let token = self.guard.cancel.token().clone();
        let answered = match self.guard.or_drop(model.complete(request, &token)).await {
            Ok(answered) => answered,
            Err(outcome) => {
                // It was on its way: it may have been paid for.
                self.ledger.charge(unanswered);
                return Err(outcome);
            }
        };
        let usage = match &answered {
            Ok(answer) => ledger::usage_of(answer, estimate, &self.model),
            Err(error) if error.perhaps_billed => unanswered,
            Err(_) => Default::default(),
        };
        self.ledger.charge(usage);
        self.record(EventKind::AuxAnswered {
            purpose: purpose.to_owned(),
            model: self.model.display_name.clone(),
            usage,
            duration_ms: self.millis_since(began),
        })
        .await?;
        Ok(answered)
    }
}
