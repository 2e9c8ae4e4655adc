//! The one transaction that ends an attempt.

use fleet::run::{CommitId, DeadLetterClass, OutcomeClass, RunState, TaskName};
use fleet::store::{AttemptFinish, TaskStats, Totals};

use super::bench::{Bench, artifact, claim, finish, now, warned};

#[tokio::test]
async fn the_end_writes_state_log_artifacts_counters_and_cleanup_together() {
    let bench = Bench::new();
    let claimed = bench.running("report", 1).await;
    let run = claimed.run_id.clone();
    let end = AttemptFinish {
        dead_letter: Some(DeadLetterClass::NonRetryable),
        ..finish(OutcomeClass::CostCeiling, RunState::DeadLettered)
    };
    bench.store.finish_attempt(run.clone(), claimed.token, end.clone()).await.expect("ends");
    let detail = bench.store.run_detail(run).await.expect("is there");
    assert_eq!(
        (detail.run.state, detail.run.outcome.as_deref()),
        (RunState::DeadLettered, Some("cost_ceiling"))
    );
    assert_eq!(detail.run.finished_at, Some(end.at));
    assert_eq!(detail.usage, end.usage);
    assert_eq!(detail.artifacts.iter().map(|a| a.name.as_str()).collect::<Vec<_>>(), ["report.md"]);
    assert_eq!(detail.events.iter().map(|row| &row.event).collect::<Vec<_>>(), [&end.events[0]]);
    let jobs = bench.store.pending_cleanup().await.expect("reads");
    assert_eq!(jobs.into_iter().map(|(_, job)| job).collect::<Vec<_>>(), end.cleanup);
    let totals = bench.store.totals().await.expect("reads");
    assert_eq!(
        totals,
        Totals {
            runs_by_outcome: vec![("cost_ceiling".into(), 1)],
            dead_letters_queued: vec![("non_retryable".into(), 1)],
            dead_letters_open: 1,
            tokens: 15,
            ..Totals::default()
        }
    );
}

#[tokio::test]
async fn a_retry_keeps_the_spending_and_only_the_last_artifacts() {
    let bench = Bench::new();
    let first = bench.running("report", 1).await;
    let retry = AttemptFinish {
        retry_at: Some(now()),
        commit: Some(CommitId::new("c0ffee")),
        diff_stat: Some("1 file changed".to_owned()),
        ..finish(OutcomeClass::Transient, RunState::Scheduled)
    };
    bench.store.finish_attempt(first.run_id.clone(), first.token, retry).await.expect("ends");
    let second = bench.store.claim_next(claim("b")).await.expect("claims").expect("its time came");
    assert_eq!((second.attempt, second.token.0, second.spent.input_tokens), (2, 2, 10));
    let end = AttemptFinish {
        artifacts: vec![artifact("second.md")],
        events: vec![warned("second")],
        ..finish(OutcomeClass::Success, RunState::Success)
    };
    bench.store.finish_attempt(second.run_id.clone(), second.token, end).await.expect("ends");
    let detail = bench.store.run_detail(first.run_id).await.expect("is there");
    // The first attempt's commit is not what the run ended with.
    assert_eq!(detail.run.commit, None);
    let named: Vec<_> = detail.artifacts.iter().map(|a| (a.attempt, a.name.as_str())).collect();
    assert_eq!(named, [(2, "second.md")]);
    assert_eq!(detail.usage.input_tokens, 20);
    assert_eq!(detail.events.iter().map(|row| row.seq).collect::<Vec<_>>(), [1, 2]);
    let stats = bench.store.task_stats().await.expect("reads");
    let expected = TaskStats {
        task: TaskName::new("report"),
        last: vec![detail.run],
        cost_usd: 0.0,
        tokens: 30,
        last_success: Some(finish(OutcomeClass::Success, RunState::Success).at),
    };
    assert_eq!(stats, [expected]);
}

#[tokio::test]
async fn a_failing_write_takes_the_whole_end_back() {
    let bench = Bench::new();
    let claimed = bench.running("report", 1).await;
    let connection = rusqlite::Connection::open(bench.path()).expect("opens");
    // The last write of the transaction fails.
    connection
        .execute_batch(
            "CREATE TRIGGER refuse BEFORE INSERT ON outbox BEGIN SELECT RAISE(ABORT, 'no'); END",
        )
        .expect("a trigger");
    let before = bench.dump();
    let end = finish(OutcomeClass::Success, RunState::Success);
    let refused =
        bench.store.finish_attempt(claimed.run_id.clone(), claimed.token, end.clone()).await;
    refused.expect_err("the trigger refuses");
    assert_eq!(bench.dump(), before);
    connection.execute_batch("DROP TRIGGER refuse").expect("dropped");
    bench.store.finish_attempt(claimed.run_id, claimed.token, end).await.expect("goes on");
}
