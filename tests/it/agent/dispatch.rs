//! The gates between a call and its tool.

use super::bench::{bench, call, say};
use crate::env::sandbox_double::exits;

#[tokio::test]
async fn the_repeat_guard_refuses_the_fourth_identical_call_unless_it_is_off() {
    for (guard, ran) in [(true, 3), (false, 5)] {
        let make = ("bash", r#"{"command":"make"}"#);
        let mut turns: Vec<_> = (0..5).map(|_| call(&[make])).collect();
        turns.push(say("done"));
        let mut bench = bench(turns);
        bench.input.repeat_guard = guard;
        bench.sandbox.on_command("make", exits(0, ""));
        let done = bench.run().await;
        assert_eq!(done.sandbox.calls().len(), ran, "guard {guard}");
        let refused = done.log.results().into_iter().filter(|(_, _, _, output)| {
            output.starts_with("not executed: this very call was made 3 times already")
        });
        assert_eq!(refused.count(), 5 - ran, "guard {guard}");
    }
}
