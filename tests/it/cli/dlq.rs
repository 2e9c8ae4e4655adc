//! `fleet dlq`.

use fleet::run::RunState;
use serde_json::json;

use super::bench::{Bench, dead, history, run_id, running};

#[tokio::test]
async fn dead_letters_have_their_documented_fields() {
    let bench = Bench::new();
    history(&bench.store()).await;
    let listed = json!([{
        "run_id": run_id(2), "task": "tidy", "dead_lettered_at": "2026-03-01T09:01:30Z",
        "dead_letter_reason": "$0.50 of $0.50 is spent", "dead_letter_attempts": 1,
        "tags": ["weekly"],
    }]);
    assert_eq!(bench.fleet(&["dlq", "list", "--json"]).json(), listed);
    assert_eq!(bench.fleet(&["dlq", "list", "--json", "--tag", "weekly"]).json(), listed);
    assert_eq!(bench.fleet(&["dlq", "list", "--json", "--tag", "daily"]).json(), json!([]));
    assert_eq!(bench.fleet(&["dlq", "list", "--json", "--offset", "1"]).json(), json!([]));
}

#[tokio::test]
async fn a_replay_by_task_makes_the_run_pending_and_wakes_the_daemon() {
    let bench = Bench::new();
    let store = bench.store();
    history(&store).await;
    let dry = bench.fleet(&["dlq", "replay", "tidy", "--dry-run"]);
    assert_eq!((dry.code, dry.out), (0, format!("would replay {}\n", run_id(2))));
    assert_eq!(store.run(run_id(2)).await.expect("is there").state, RunState::DeadLettered);
    assert!(!bench.state().wake_file().exists());
    let done = bench.fleet(&["dlq", "replay", "tidy"]);
    assert_eq!((done.code, done.out), (0, format!("replayed {}: it is pending\n", run_id(2))));
    assert_eq!(store.run(run_id(2)).await.expect("is there").state, RunState::Pending);
    assert!(bench.state().wake_file().exists());
}

#[tokio::test]
async fn a_replay_of_all_takes_every_dead_letter() {
    let bench = Bench::new();
    let store = bench.store();
    for number in [3, 4] {
        let claimed = running(&store, "tidy", number).await;
        store.finish_attempt(claimed.run_id, claimed.token, dead()).await.expect("ends");
    }
    let done = bench.fleet(&["dlq", "replay", "--all"]);
    let said = [3, 4].map(|n| format!("replayed {}: it is pending\n", run_id(n))).concat();
    assert_eq!((done.code, done.out), (0, said));
}

#[tokio::test]
async fn a_run_that_is_not_dead_is_not_replayed() {
    let bench = Bench::new();
    let store = bench.store();
    let claimed = running(&store, "report", 1).await;
    let done = bench.fleet(&["dlq", "replay", claimed.run_id.as_str()]);
    assert_eq!(
        (done.code, done.err),
        (
            4,
            format!(
                "error: run {} is running, not dead_lettered\n  hint: runs that are dead_lettered or error \
                 can be replayed; to run the task afresh: fleet task run\n",
                claimed.run_id
            )
        )
    );
    assert_eq!(store.run(claimed.run_id).await.expect("is there").state, RunState::Running);
}

#[tokio::test]
async fn nothing_to_replay_tells_what_to_do() {
    let bench = Bench::new();
    bench.store();
    let hint = "  hint: fleet dlq list shows what can be replayed\n";
    let replay = |args: &[&str]| {
        let done = bench.fleet(&[&["dlq", "replay"], args].concat());
        (done.code, done.err)
    };
    let all = bench.fleet(&["dlq", "replay", "--all"]);
    assert_eq!(
        (all.code, all.out),
        (0, "there are no dead letters: nothing to replay\n".to_owned())
    );
    assert_eq!(
        replay(&["--tag", "x"]),
        (2, format!("error: no dead letter has the tag x\n{hint}"))
    );
    assert_eq!(
        replay(&["tidy"]),
        (2, format!("error: no run begins with tidy, and no task tidy has a dead letter\n{hint}"))
    );
    assert_eq!(replay(&[]).0, 2);
    assert_eq!(replay(&["tidy", "--all"]).0, 2);
}

#[tokio::test]
async fn a_dropped_dead_letter_is_cancelled_and_tells_why() {
    let bench = Bench::new();
    let store = bench.store();
    history(&store).await;
    let id = run_id(2);
    let done = bench.fleet(&["dlq", "drop", id.as_str(), "--reason", "done by hand"]);
    assert_eq!((done.code, done.out), (0, format!("dropped {id}: it is cancelled\n")));
    let row = store.run(id.clone()).await.expect("is there");
    assert_eq!(
        (row.state, row.outcome.as_deref(), row.reason.as_deref()),
        (
            RunState::Cancelled,
            Some("cost_ceiling"),
            Some("dropped by an operator: done by hand (was: $0.50 of $0.50 is spent)")
        )
    );
    assert_eq!(bench.fleet(&["dlq", "list"]).out, "no dead letters\n");
    let again = bench.fleet(&["dlq", "drop", id.as_str()]);
    let refused = format!(
        "error: run {id} is cancelled, not dead_lettered\n  hint: only a dead letter can be dropped: \
         fleet dlq list shows them\n"
    );
    assert_eq!((again.code, again.err), (4, refused));
    assert_eq!(bench.fleet(&["dlq", "drop", "nothing"]).code, 2);
}
