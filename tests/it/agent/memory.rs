//! `remember` and `recall` within one attempt.

use fleet::run::EventKind;
use fleet::tools::Memories;

use super::bench::{bench, call, say};

#[tokio::test]
async fn facts_that_are_too_long_are_refused_and_a_recall_reads_its_own_words() {
    let remember =
        |key: &str, value: String| serde_json::json!({"key": key, "value": value}).to_string();
    let (good, long, nameless) = (
        remember("new", "1".to_owned()),
        remember("long", "x".repeat(4097)),
        remember(" ", "x".to_owned()),
    );
    let turns = vec![
        call(&[("remember", &good), ("remember", &long), ("remember", &nameless)]),
        call(&[("recall", "{}"), ("recall", r#"{"key":"none"}"#)]),
        say("done"),
    ];
    let mut bench = bench(turns);
    bench.input.memories = Memories::new([("old".to_owned(), "0".to_owned())]);
    let done = bench.run().await;
    let told: Vec<_> = done.log.results().into_iter().map(|result| (result.2, result.3)).collect();
    assert_eq!(told[0], (false, "remembered".to_owned()));
    assert!(told[1].0 && told[1].1.contains("4097 bytes, more than 4096"), "{told:?}");
    assert!(told[2].0 && told[2].1.contains("1 to 128 bytes"), "{told:?}");
    assert!(!told[3].0 && told[3].1.contains(r#""old":"0""#), "{told:?}");
    assert!(told[3].1.contains(r#""new":"1""#), "{told:?}");
    assert!(told[4].0, "{told:?}");
    let events = done.log.events();
    let kept = events.iter().filter(|event| matches!(event, EventKind::MemoryChanged { .. }));
    assert_eq!(kept.count(), 1);
}
