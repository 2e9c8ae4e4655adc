//! Turns a bundle's recorded session into what the scripted model plays.

use crate::bundle::{Script, ScriptTurn};
use crate::model::{ScriptTurns, ScriptedCall, ScriptedFault, ScriptedTurn, StopReason, WireUsage};

/// The session for an attempt. An attempt starts the session anew, but a fault is served `times` times
/// in a run and no more: `served` faults of earlier attempts are taken off, in order.
pub fn turns(script: &Script, mut served: u32) -> ScriptTurns {
    let mut turns = Vec::with_capacity(script.turns.len());
    let mut loop_from = script.loop_from;
    for (index, turn) in script.turns.iter().enumerate() {
        let Some(times) = turn.fault.as_ref().map(|fault| fault.times.max(1)) else {
            turns.push(converted(turn, None));
            continue;
        };
        let taken = served.min(times);
        served -= taken;
        if taken < times {
            turns.push(converted(turn, Some(times - taken)));
        } else if script.loop_from.is_some_and(|from| index < from) {
            loop_from = loop_from.map(|from| from - 1);
        }
    }
    ScriptTurns { turns, loop_from }
}

fn converted(turn: &ScriptTurn, times: Option<u32>) -> ScriptedTurn {
    let call = |(name, arguments): &(String, String)| ScriptedCall {
        id: None,
        name: name.clone(),
        arguments: arguments.clone(),
    };
    ScriptedTurn {
        text: turn.text.clone(),
        calls: turn.tool_calls.iter().map(call).collect(),
        usage: Some(WireUsage {
            prompt_tokens: turn.prompt_tokens,
            cached_tokens: turn.cached_tokens,
            completion_tokens: turn.completion_tokens,
            cost_usd: turn.cost_usd,
        }),
        delay: turn.delay,
        stop: turn.stop.as_deref().and_then(StopReason::parse),
        fault: turn.fault.as_ref().zip(times).map(|(fault, times)| ScriptedFault {
            status: fault.status,
            message: fault.message.clone(),
            retry_after: fault.retry_after,
            times,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::ScriptFault;

    fn says(text: &str) -> ScriptTurn {
        ScriptTurn { text: text.to_owned(), ..ScriptTurn::default() }
    }

    fn fails(times: u32) -> ScriptTurn {
        let fault =
            ScriptFault { status: 503, message: "busy".to_owned(), retry_after: None, times };
        ScriptTurn { fault: Some(fault), ..ScriptTurn::default() }
    }

    #[test]
    fn fault_that_earlier_attempts_met_is_not_met_again() {
        let script = Script { turns: vec![says("a"), fails(4), says("b")], loop_from: Some(2) };
        let fresh = turns(&script, 0);
        assert_eq!(fresh.turns[1].fault.as_ref().map(|fault| fault.times), Some(4));
        let partly = turns(&script, 3);
        assert_eq!(partly.turns[1].fault.as_ref().map(|fault| fault.times), Some(1));
        let after = turns(&script, 4);
        let texts: Vec<_> = after.turns.iter().map(|turn| turn.text.as_str()).collect();
        assert_eq!((texts, after.loop_from), (vec!["a", "b"], Some(1)));
    }
}
