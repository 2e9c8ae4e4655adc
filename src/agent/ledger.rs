//! The one account of a run's cost, tokens and rounds. Unknown usage is estimated and marked, never
//! counted as zero.

use crate::model::{Answer, Message, Request, WireUsage};
use crate::run::{NanoUsd, Outcome, OutcomeClass, Usage};

use super::{Limits, ModelChoice, Price};

/// Bytes of prompt text that are taken for one token where nobody counts.
const BYTES_PER_TOKEN: u64 = 4;

/// What was spent, against what may be.
#[derive(Debug)]
pub(super) struct Ledger {
    limits: Limits,
    before: Usage,
    spent: Usage,
    rounds: u32,
}

/// A ceiling that spending has come near.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NearCeiling {
    pub(super) ceiling: &'static str,
    pub(super) spent: String,
    pub(super) limit: String,
}

impl Ledger {
    pub(super) fn new(limits: Limits, spent_before: Usage) -> Self {
        Ledger { limits, before: spent_before, spent: Usage::default(), rounds: 0 }
    }

    /// What this attempt spent.
    pub(super) fn spent(&self) -> Usage {
        self.spent
    }

    /// The number of the round that is going on, from 1.
    pub(super) fn round(&self) -> u32 {
        self.rounds
    }

    fn total(&self) -> Usage {
        let mut total = self.before;
        total += self.spent;
        total
    }

    /// Begins a round, unless a ceiling has been reached.
    pub(super) fn begin_round(&mut self) -> Result<(), Outcome> {
        self.check_room()?;
        if let Some(max) = self.limits.max_iterations
            && self.rounds >= max
        {
            let reason = format!("the limit of {max} rounds (max_iterations) was reached");
            return Err(Outcome::failed(OutcomeClass::IterationCeiling, reason));
        }
        self.rounds += 1;
        Ok(())
    }

    /// Refuses another paid request when a ceiling has been reached.
    pub(super) fn check_room(&self) -> Result<(), Outcome> {
        let total = self.total();
        if let Some(max) = self.limits.max_cost.filter(|max| total.cost_nano_usd >= *max) {
            return Err(cost_reached(total, max));
        }
        match self.limits.max_total_tokens {
            Some(max) if total.counted_tokens() >= max => Err(tokens_reached(total, max)),
            _ => Ok(()),
        }
    }

    /// Enters what an answer consumed.
    pub(super) fn charge(&mut self, usage: Usage) {
        self.spent += usage;
    }

    /// Refuses to go on when spending went past a ceiling.
    pub(super) fn check_overspent(&self) -> Result<(), Outcome> {
        let total = self.total();
        if let Some(max) = self.limits.max_cost.filter(|max| total.cost_nano_usd > *max) {
            return Err(cost_reached(total, max));
        }
        match self.limits.max_total_tokens {
            Some(max) if total.counted_tokens() > max => Err(tokens_reached(total, max)),
            _ => Ok(()),
        }
    }

    /// The first ceiling of which `fraction` or more is spent, the round that goes on included.
    pub(super) fn near_ceiling(&self, fraction: f64) -> Option<NearCeiling> {
        let total = self.total();
        let near = |spent: u64, limit: u64| spent as f64 >= fraction * limit as f64;
        if let Some(max) = self.limits.max_cost.filter(|max| near(total.cost_nano_usd.0, max.0)) {
            return Some(NearCeiling {
                ceiling: "max_cost_usd",
                spent: total.cost_nano_usd.to_string(),
                limit: max.to_string(),
            });
        }
        let counts = [
            ("max_total_tokens", total.counted_tokens(), self.limits.max_total_tokens),
            ("max_iterations", self.rounds.into(), self.limits.max_iterations.map(u64::from)),
        ];
        counts.into_iter().find_map(|(ceiling, spent, limit)| {
            let limit = limit.filter(|limit| near(spent, *limit))?;
            Some(NearCeiling { ceiling, spent: spent.to_string(), limit: limit.to_string() })
        })
    }
}

fn cost_reached(total: Usage, max: NanoUsd) -> Outcome {
    let guess = if total.estimated { " (partly estimated)" } else { "" };
    let reason = format!("spent {}{guess} of max_cost_usd {max}", total.cost_nano_usd);
    Outcome::failed(OutcomeClass::CostCeiling, reason)
}

fn tokens_reached(total: Usage, max: u64) -> Outcome {
    let guess = if total.estimated { " (partly estimated)" } else { "" };
    let reason = format!("used {} tokens{guess} of max_total_tokens {max}", total.counted_tokens());
    Outcome::failed(OutcomeClass::TokenCeiling, reason)
}

/// What one answer consumed: the provider's word, else the price table, else an estimate.
pub(super) fn usage_of(answer: &Answer, prompt_estimate: u64, model: &ModelChoice) -> Usage {
    let wire = answer.usage.unwrap_or_default();
    let mut usage = tokens(wire, prompt_estimate, || answer_tokens(answer));
    let stated = wire.cost_usd.filter(|cost| cost.is_finite() && *cost >= 0.0);
    match stated {
        Some(cost) => usage.cost_nano_usd = NanoUsd::from_usd(cost),
        None => {
            usage.cost_nano_usd = cost(usage, model.price);
            usage.estimated |= model.price_is_estimate;
        }
    }
    usage
}

/// What a request that was never answered is taken to have consumed: its prompt.
pub(super) fn usage_of_unanswered(prompt_estimate: u64, model: &ModelChoice) -> Usage {
    let mut usage = Usage { input_tokens: prompt_estimate, estimated: true, ..Usage::default() };
    usage.cost_nano_usd = cost(usage, model.price);
    usage
}

/// Tokens by the uncached convention. No prompt has no tokens, and no answer with words has none:
/// such zeros are estimated like a missing count.
fn tokens(wire: WireUsage, prompt_estimate: u64, answer: impl Fn() -> u64) -> Usage {
    let prompt_known = wire.prompt_tokens > 0;
    let prompt = if prompt_known { wire.prompt_tokens } else { prompt_estimate };
    let cached = wire.cached_tokens.min(prompt);
    let output = if wire.completion_tokens > 0 { wire.completion_tokens } else { answer() };
    Usage {
        input_tokens: prompt - cached,
        cached_tokens: cached,
        output_tokens: output,
        cost_nano_usd: NanoUsd(0),
        estimated: !prompt_known || output != wire.completion_tokens,
    }
}

/// Rounds up, so that a cost is never understated.
fn cost(usage: Usage, price: Price) -> NanoUsd {
    let part = |tokens: u64, per_million: NanoUsd| u128::from(tokens) * u128::from(per_million.0);
    let total = part(usage.input_tokens, price.input_per_million)
        + part(usage.cached_tokens, price.cached_per_million)
        + part(usage.output_tokens, price.output_per_million);
    NanoUsd(u64::try_from(total.div_ceil(1_000_000)).unwrap_or(u64::MAX))
}

fn answer_tokens(answer: &Answer) -> u64 {
    let calls: usize = answer.calls.iter().map(|call| call.name.len() + call.arguments.len()).sum();
    let reasoning = answer.reasoning.as_ref().map_or(0, |value| value.to_string().len());
    estimate(answer.text.len() + calls + reasoning)
}

/// The tokens of a request where nobody counts: a quarter of its bytes.
pub(super) fn prompt_tokens(request: &Request) -> u64 {
    let tools: usize = request
        .tools
        .iter()
        .map(|tool| tool.description.len() + tool.parameters.to_string().len())
        .sum();
    let messages: usize = request.messages.iter().map(|message| message_bytes(message)).sum();
    estimate(request.system.len() + tools + messages)
}

fn message_bytes(message: &Message) -> usize {
    match message {
        Message::User(text) => text.len(),
        Message::Assistant { text, calls, .. } => {
            let calls: usize = calls.iter().map(|c| c.name.len() + c.arguments.len()).sum();
            text.len() + calls
        }
        Message::Tools(results) => results.iter().map(|result| result.content.len()).sum(),
    }
}

fn estimate(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(BYTES_PER_TOKEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_LIMITS: Limits = Limits {
        max_cost: None,
        max_total_tokens: None,
        max_iterations: None,
        wall_deadline: None,
    };

    fn spent(tokens: u64, cost: u64) -> Usage {
        Usage { input_tokens: tokens, cost_nano_usd: NanoUsd(cost), ..Usage::default() }
    }

    #[test]
    fn the_last_unit_may_be_spent_and_nothing_after_it() {
        let limits = Limits { max_total_tokens: Some(10), ..NO_LIMITS };
        let mut ledger = Ledger::new(limits, Usage::default());
        ledger.charge(spent(10, 0));
        assert_eq!(ledger.check_overspent(), Ok(()));
        assert_eq!(
            ledger.begin_round(),
            Err(Outcome::failed(
                OutcomeClass::TokenCeiling,
                "used 10 tokens of max_total_tokens 10"
            ))
        );
        ledger.charge(spent(1, 0));
        assert_eq!(
            ledger.check_overspent().map_err(|outcome| outcome.class),
            Err(OutcomeClass::TokenCeiling)
        );
    }

    #[test]
    fn without_ceilings_nothing_ends_and_nothing_is_near() {
        let mut ledger = Ledger::new(NO_LIMITS, spent(u64::MAX, u64::MAX));
        ledger.charge(spent(u64::MAX, u64::MAX));
        assert_eq!(ledger.begin_round(), Ok(()));
        assert_eq!(ledger.check_overspent(), Ok(()));
        assert_eq!(ledger.near_ceiling(0.8), None);
    }

    #[test]
    fn nearness_counts_earlier_attempts_and_begins_at_the_fraction() {
        let limits = Limits { max_cost: Some(NanoUsd(1_000_000_000)), ..NO_LIMITS };
        let mut ledger = Ledger::new(limits, spent(0, 700_000_000));
        ledger.charge(spent(0, 99_999_999));
        assert_eq!(ledger.near_ceiling(0.8), None);
        ledger.charge(spent(0, 1));
        assert_eq!(
            ledger.near_ceiling(0.8),
            Some(NearCeiling {
                ceiling: "max_cost_usd",
                spent: "$0.8000".to_owned(),
                limit: "$1.0000".to_owned(),
            })
        );
    }

    #[test]
    fn cost_is_rounded_up_and_does_not_overflow() {
        let price = |nano: u64| Price {
            input_per_million: NanoUsd(nano),
            cached_per_million: NanoUsd(0),
            output_per_million: NanoUsd(0),
        };
        assert_eq!(cost(spent(1, 0), price(1)), NanoUsd(1));
        assert_eq!(cost(spent(3, 0), price(1_000_000)), NanoUsd(3));
        assert_eq!(cost(spent(u64::MAX, 0), price(u64::MAX)), NanoUsd(u64::MAX));
    }

    #[test]
    fn more_cached_than_prompt_tokens_is_no_negative_number() {
        let wire = WireUsage { prompt_tokens: 5, cached_tokens: 9, ..WireUsage::default() };
        let usage = tokens(wire, 100, || 0);
        assert_eq!((usage.input_tokens, usage.cached_tokens, usage.estimated), (0, 5, false));
    }
}
