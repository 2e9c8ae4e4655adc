//! A run is carried out by one holder, and by that one alone.

use std::collections::BTreeMap;

use fleet::run::{OutcomeClass, RunState, Trigger};
use fleet::secrets::Redactor;
use fleet::store::{AttemptFacts, Store, StoreError};

use super::bench::{Bench, claim, finish, occurrence, stale, warned};

#[tokio::test]
async fn second_claim_of_one_occurrence_gets_nothing() {
    let bench = Bench::new();
    let due = vec![occurrence("report", 1, Trigger::Schedule)];
    bench.store.insert_occurrences(due, None).await.expect("recorded");
    let first = bench.store.claim_next(claim("a")).await.expect("claims").expect("one is due");
    assert_eq!((first.attempt, first.token.0), (1, 1));
    assert_eq!(bench.store.claim_next(claim("b")).await.expect("claims"), None);
}

#[tokio::test]
async fn a_stale_token_writes_nothing() {
    let bench = Bench::new();
    let claimed = bench.running("report", 1).await;
    let (run, old) = (claimed.run_id.clone(), stale(claimed.token));
    let before = bench.dump();
    let facts = AttemptFacts { branch: Some("stolen".into()), ..AttemptFacts::default() };
    let until = claim("a").lease_until;
    let refused = [
        bench.store.append_events(run.clone(), old, vec![warned("late")]).await,
        bench.store.set_attempt_facts(run.clone(), old, facts).await,
        bench.store.renew_lease(run.clone(), old, until).await,
        bench
            .store
            .finish_attempt(run.clone(), old, finish(OutcomeClass::Success, RunState::Success))
            .await,
    ];
    for result in refused {
        assert!(matches!(&result, Err(StoreError::LeaseLost(lost)) if *lost == run), "{result:?}");
    }
    assert_eq!(bench.dump(), before);
}

#[tokio::test]
async fn an_ended_run_takes_no_late_write_even_with_its_own_token() {
    let bench = Bench::new();
    let claimed = bench.running("report", 1).await;
    let run = claimed.run_id.clone();
    let end = finish(OutcomeClass::Success, RunState::Success);
    bench.store.finish_attempt(run.clone(), claimed.token, end.clone()).await.expect("ends");
    let before = bench.dump();
    let again = bench.store.finish_attempt(run.clone(), claimed.token, end).await;
    assert!(matches!(again, Err(StoreError::LeaseLost(_))), "{again:?}");
    assert_eq!(bench.dump(), before);
}

#[tokio::test]
async fn an_orphan_is_taken_over_once() {
    let bench = Bench::new();
    let claimed = bench.running("report", 1).await;
    let take = |instance: &str| {
        let request = claim(instance);
        bench.store.take_over(
            claimed.run_id.clone(),
            claimed.token,
            request.holder,
            request.lease_until,
        )
    };
    let (one, other) = tokio::join!(take("b"), take("c"));
    let taken = [one, other].into_iter().filter_map(Result::ok).collect::<Vec<_>>();
    assert_eq!(taken.iter().map(|token| token.0).collect::<Vec<_>>(), [claimed.token.0 + 1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn racing_claimers_of_two_processes_claim_each_run_once() {
    const RUNS: u32 = 200;
    let bench = Bench::new();
    let due = (0..RUNS).map(|n| occurrence("report", n, Trigger::Schedule)).collect();
    bench.store.insert_occurrences(due, None).await.expect("recorded");
    let other = Store::open(&bench.path(), Redactor::default()).expect("opens again");
    let claimers = (0..8).map(|n| {
        let store = if n % 2 == 0 { bench.store.clone() } else { other.clone() };
        tokio::spawn(async move {
            let mut mine = Vec::new();
            while let Some(run) =
                store.claim_next(claim(&format!("holder-{n}"))).await.expect("claims")
            {
                mine.push(run.run_id);
            }
            mine
        })
    });
    let mut claims = BTreeMap::new();
    for claimer in claimers.collect::<Vec<_>>() {
        for run in claimer.await.expect("joins") {
            *claims.entry(run).or_insert(0) += 1;
        }
    }
    let expected = (0..RUNS).map(|n| (super::bench::run_id(n), 1)).collect();
    assert_eq!(claims, expected);
}
