//! The matrix: a row for each point, and what must have become of the run.

use serde_json::json;

use super::stage::{Policy, Stage};
use crate::env::leftovers;

/// What must have become of the one occurrence.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    state: &'static str,
    outcome: &'static str,
    attempts: u32,
    /// How often the outside effect happened.
    effects: usize,
}

/// The run went on to its success.
const fn success(attempts: u32, effects: usize) -> Expected {
    Expected { state: "success", outcome: "success", attempts, effects }
}

/// The policy allowed no further attempt.
const fn dead(effects: usize) -> Expected {
    Expected { state: "dead_lettered", outcome: "interrupted", attempts: 1, effects }
}

/// A daemon that dies at these points, one after the other, each at a start of its own.
fn survives(policy: Policy, faults: &[&str], expected: Expected) {
    let stage = Stage::new(policy);
    stage.make_due();
    for fault in faults {
        stage.dies_at(fault);
    }
    stage.goes_on();
    check(&stage, expected);
}

/// One row for the due instant, as the policy says; the effect as often as it may; nothing left.
pub fn check(stage: &Stage, expected: Expected) {
    let runs = stage.world.runs();
    assert_eq!(runs.len(), 1, "one row for the due instant: {runs:#?}");
    let seen = json!([runs[0]["state"], runs[0]["outcome"], runs[0]["attempts"], stage.effects()]);
    let Expected { state, outcome, attempts, effects } = expected;
    assert_eq!(seen, json!([state, outcome, attempts, effects]), "{runs:#?}");
    leftovers::none(&stage.world);
}

macro_rules! matrix {
    ($($test:ident: $policy:ident, [$($fault:literal),+] => $expected:expr;)*) => {
        /// Every fault of a row, as it is named in `FLEET_FAULT`.
        pub const ROWS: &[&str] = &[$($($fault),+),*];
        $(
            #[test]
            fn $test() {
                survives(Policy::$policy, &[$($fault),+], $expected);
            }
        )*
    };
}

// The second tool call of the attempt is the one with an effect.
matrix! {
    after_the_occurrence_insert_it_runs_once: TriesAgain, ["after_occurrence_insert"] => success(1, 1);
    after_the_claim_it_is_tried_again: TriesAgain, ["after_claim"] => success(2, 1);
    after_the_claim_without_retries_it_is_a_dead_letter: GivesUp, ["after_claim"] => dead(0);
    after_the_worktree_it_is_tried_again: TriesAgain, ["after_worktree"] => success(2, 1);
    after_the_worktree_without_retries_it_is_a_dead_letter: GivesUp, ["after_worktree"] => dead(0);
    after_the_container_start_it_is_tried_again: TriesAgain, ["after_container_start"] => success(2, 1);
    after_the_container_start_without_retries_it_is_a_dead_letter: GivesUp, ["after_container_start"] => dead(0);
    before_the_call_the_next_attempt_is_told_that_it_may_have_happened: TriesAgain, ["before_tool_call:2"] => success(2, 0);
    mid_call_the_next_attempt_is_told_that_it_may_have_happened: TriesAgain, ["mid_tool_call"] => success(2, 1);
    mid_call_without_retries_it_is_a_dead_letter: GivesUp, ["mid_tool_call"] => dead(1);
    after_a_result_without_its_event_the_next_attempt_is_told: TriesAgain, ["after_tool_result:2"] => success(2, 1);
    while_git_reads_what_came_back_it_is_salvaged: TriesAgain, ["mid_git"] => success(2, 1);
    while_git_fetches_what_came_back_it_is_salvaged: TriesAgain, ["mid_git:2"] => success(2, 1);
    while_git_fetches_without_retries_it_is_a_dead_letter: GivesUp, ["mid_git:2"] => dead(1);
    before_the_terminal_transaction_the_next_attempt_is_told: TriesAgain, ["before_terminal"] => success(2, 1);
    before_the_terminal_transaction_without_retries_it_is_a_dead_letter: GivesUp, ["before_terminal"] => dead(1);
    after_the_terminal_transaction_it_is_final: TriesAgain, ["after_terminal"] => success(1, 1);
    before_the_clean_up_it_is_done_by_the_next_start: TriesAgain, ["before_cleanup_job"] => success(1, 1);
    mid_clean_up_it_is_gone_on_with: TriesAgain, ["mid_cleanup"] => success(1, 1);
    after_the_clean_up_it_is_done_again_without_harm: TriesAgain, ["after_cleanup_job"] => success(1, 1);
    during_the_recovery_the_next_start_recovers: TriesAgain, ["mid_tool_call", "after_take_over"] => success(2, 1);
    at_the_end_of_the_recovery_the_next_start_goes_on: TriesAgain, ["mid_tool_call", "after_terminal"] => success(2, 1);
}

/// Points that need a course of their own, in the tests below.
pub const OWN_COURSE: &[&str] = &["mid_migration", "mid_reload"];

#[test]
fn mid_migration_the_next_start_migrates_from_the_beginning() {
    let stage = Stage::new(Policy::TriesAgain);
    stage.dies_at("mid_migration");
    stage.dies_at("mid_migration:2");
    stage.make_due();
    stage.goes_on();
    check(&stage, success(1, 1));
}

#[test]
fn mid_reload_the_next_start_uses_the_new_commit_and_nothing_is_doubled() {
    let stage = Stage::new(Policy::TriesAgain);
    stage.make_due();
    let daemon = stage.start(Some("mid_reload"));
    daemon.wait_for("run succeeded");
    stage.world.commit(&[("texts/note.md", "A note.\n")], "change");
    let status = daemon.end();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9), "{status}");
    stage.goes_on();
    check(&stage, success(1, 1));
}
