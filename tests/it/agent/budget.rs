//! What is spent is counted, and what may be spent ends.

use fleet::model::{Message, ScriptTurns, ScriptedTurn, WireUsage};
use fleet::run::{EventKind, NanoUsd, Outcome, OutcomeClass, Usage};

use super::bench::{Finished, bench, bench_of, call, say, usage};

/// A session that never stops, each answer with this usage.
fn runaway(usage: Option<WireUsage>) -> ScriptTurns {
    let turn = ScriptedTurn { usage, ..call(&[("bash", r#"{"command":"ls"}"#)]) };
    ScriptTurns { turns: vec![turn], loop_from: Some(0) }
}

fn wind_downs(done: &Finished) -> Vec<EventKind> {
    let is_one = |event: &EventKind| matches!(event, EventKind::BudgetWindDown { .. });
    done.log.events().into_iter().filter(is_one).collect()
}

#[tokio::test]
async fn cost_comes_from_tokens_and_prices_where_the_provider_does_not_say() {
    let told = WireUsage { cached_tokens: 60, ..usage(100, 10) };
    let done = bench(vec![ScriptedTurn { usage: Some(told), ..say("x") }]).run().await;
    // $1 per million fresh, $0.1 cached, $10 out: 40 + 6 + 100 millionths of a dollar.
    assert_eq!(
        done.end.usage,
        Usage {
            input_tokens: 40,
            cached_tokens: 60,
            output_tokens: 10,
            cost_nano_usd: NanoUsd(146_000),
            estimated: false,
        }
    );
}

#[tokio::test]
async fn the_providers_cost_wins_over_the_price_table() {
    let told = WireUsage { cost_usd: Some(0.5), ..usage(100, 10) };
    let mut bench = bench(vec![ScriptedTurn { usage: Some(told), ..say("x") }]);
    bench.input.model.price_is_estimate = true;
    let usage = bench.run().await.end.usage;
    assert_eq!((usage.cost_nano_usd, usage.estimated), (NanoUsd::from_usd(0.5), false));
}

#[tokio::test]
async fn a_guessed_price_marks_the_cost() {
    let mut bench = bench(vec![say("x")]);
    bench.input.model.price_is_estimate = true;
    assert!(bench.run().await.end.usage.estimated);
}

#[tokio::test]
async fn missing_and_zero_usage_are_estimated_and_still_reach_the_ceiling() {
    for unknown in [None, Some(WireUsage::default())] {
        let mut bench = bench_of(runaway(unknown));
        bench.input.limits.max_total_tokens = Some(20_000);
        let done = bench.run().await;
        assert_eq!(done.end.outcome.class, OutcomeClass::TokenCeiling);
        assert!(done.end.usage.estimated && done.end.usage.counted_tokens() > 20_000);
    }
}

#[tokio::test]
async fn a_runaway_session_stops_at_each_ceiling() {
    let mut cost = bench_of(runaway(Some(usage(1000, 1))));
    cost.input.limits.max_cost = Some(NanoUsd::from_usd(0.0035));
    let end = cost.run().await.end;
    assert_eq!(
        end.outcome,
        Outcome::failed(OutcomeClass::CostCeiling, "spent $0.0040 of max_cost_usd $0.0035")
    );

    let mut tokens = bench_of(runaway(Some(usage(1000, 1))));
    tokens.input.limits.max_total_tokens = Some(3003);
    let end = tokens.run().await.end;
    assert_eq!(
        end.outcome,
        Outcome::failed(OutcomeClass::TokenCeiling, "used 3003 tokens of max_total_tokens 3003")
    );

    let mut rounds = bench_of(runaway(Some(usage(1, 1))));
    rounds.input.limits.max_iterations = Some(5);
    let done = rounds.run().await;
    assert_eq!(
        done.end.outcome,
        Outcome::failed(
            OutcomeClass::IterationCeiling,
            "the limit of 5 rounds (max_iterations) was reached"
        )
    );
    assert_eq!(done.requests.len(), 5);
}

#[tokio::test]
async fn what_earlier_attempts_spent_counts() {
    let mut bench = bench(vec![say("x")]);
    bench.input.limits.max_cost = Some(NanoUsd(1000));
    bench.input.spent_before =
        Usage { cost_nano_usd: NanoUsd(1000), input_tokens: 1, ..Usage::default() };
    let done = bench.run().await;
    assert_eq!(done.end.outcome.class, OutcomeClass::CostCeiling);
    assert_eq!(done.requests.len(), 0);
    assert_eq!(done.end.usage, Usage::default());
}

#[tokio::test]
async fn an_answer_that_overspends_has_none_of_its_calls_executed() {
    let mut bench = bench_of(runaway(Some(usage(1000, 1))));
    bench.input.limits.max_total_tokens = Some(1000);
    let done = bench.run().await;
    assert_eq!(done.end.outcome.class, OutcomeClass::TokenCeiling);
    assert_eq!(done.only_result(), "not executed: used 1001 tokens of max_total_tokens 1000");
    assert_eq!(done.sandbox.calls(), []);
}

#[tokio::test]
async fn near_a_ceiling_every_request_says_so_and_the_history_does_not() {
    let mut bench = bench_of(runaway(Some(usage(100, 1))));
    bench.input.limits.max_total_tokens = Some(505);
    let done = bench.run().await;
    assert_eq!(
        wind_downs(&done),
        [EventKind::BudgetWindDown {
            ceiling: "max_total_tokens".to_owned(),
            spent: "404".to_owned(),
            limit: "505".to_owned(),
        }]
    );
    let notices = |request: usize| {
        let of = |message: &&std::sync::Arc<Message>| matches!(&***message, Message::User(text) if text.starts_with("BUDGET WIND-DOWN"));
        done.requests[request].messages.iter().filter(of).count()
    };
    assert_eq!((0..done.requests.len()).map(notices).collect::<Vec<_>>(), [0, 0, 0, 0, 1]);
}

#[tokio::test]
async fn a_fraction_of_one_never_winds_down_before_the_ceiling() {
    let mut bench = bench_of(runaway(Some(usage(100, 1))));
    bench.input.limits.max_total_tokens = Some(505);
    bench.input.wind_down_fraction = 1.0;
    assert_eq!(wind_downs(&bench.run().await), []);
}
