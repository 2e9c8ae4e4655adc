//! What tasks' runs remember.

use fleet::run::{Event, EventKind, TaskName};
use fleet::secrets::Redactor;
use fleet::store::StoreError;

use super::bench::{Bench, now, stale};

fn remembers(key: &str, value: &str, evicted: Option<&str>) -> Event {
    let (key, value) = (key.to_owned(), value.to_owned());
    let evicted = evicted.map(str::to_owned);
    Event { at: now(), attempt: 1, kind: EventKind::MemoryChanged { key, value, evicted } }
}

#[tokio::test]
async fn only_the_holder_of_the_claim_keeps_facts_and_secrets_are_masked() {
    let redactor = Redactor::default();
    redactor.register("planted-secret-4711");
    let bench = Bench::with(redactor);
    let claimed = bench.running("report", 1).await;
    let (run, token) = (claimed.run_id.clone(), claimed.token);
    let task = || TaskName::new("report");
    let late = vec![remembers("stolen", "1", None)];
    let refused = bench.store.append_events(run.clone(), stale(token), late).await;
    assert!(matches!(refused, Err(StoreError::LeaseLost(_))), "{refused:?}");
    assert_eq!(bench.store.memories(task()).await.expect("read"), []);

    let facts = [
        remembers("a", "it is planted-secret-4711", None),
        remembers("b", "1", None),
        remembers("b", "2", None),
        remembers("c", "3", Some("a")),
    ];
    bench.store.append_events(run, token, facts[..3].to_vec()).await.expect("kept");
    let kept = bench.store.memories(task()).await.expect("read");
    let seen: Vec<_> = kept.iter().map(|fact| (fact.key.as_str(), fact.value.as_str())).collect();
    assert_eq!(seen.len(), 2);
    assert!(seen[0].0 == "a" && !seen[0].1.contains("4711"), "{seen:?}");
    assert_eq!(seen[1], ("b", "2"));
    let other = bench.store.memories(TaskName::new("other")).await.expect("read");
    assert_eq!(other, []);

    bench.store.append_events(claimed.run_id, token, facts[3..].to_vec()).await.expect("kept");
    let kept = bench.store.memories(task()).await.expect("read");
    let keys: Vec<_> = kept.iter().map(|fact| fact.key.as_str()).collect();
    assert_eq!(keys, ["b", "c"]);
    assert_eq!(bench.store.forget_memories(task(), Some("b".to_owned())).await.expect("gone"), 1);
    assert_eq!(bench.store.forget_memories(task(), None).await.expect("gone"), 1);
}
