//! `fleet runs`.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use fleet::run::{EventKind, RunState};
use fleet::store::{AttemptFinish, ReplayTarget};
use serde_json::json;

use super::bench::{Bench, claim_again, dead, event, history, now, run_id, running, success};

async fn with_history() -> Bench {
    let bench = Bench::new();
    history(&bench.store()).await;
    bench
}

#[test]
fn reading_where_nothing_ran_makes_nothing() {
    let bench = Bench::new();
    let list = bench.fleet(&["runs", "list"]);
    assert_eq!((list.code, list.out.as_str()), (0, "no runs yet\n"));
    assert_eq!(bench.fleet(&["runs", "list", "--json"]).json(), json!([]));
    assert_eq!(bench.fleet(&["dlq", "list"]).out, "no dead letters\n");
    let show = bench.fleet(&["runs", "show", "01abc"]);
    assert_eq!(
        (show.code, show.err.as_str()),
        (
            2,
            "error: no run with id 01abc\n  hint: fleet runs list shows the runs of ~/state; another state directory: --state DIR\n"
        )
    );
    assert_eq!(bench.files(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn state_directory_that_is_named_and_not_there_is_refused_and_not_made() {
    let bench = Bench::new();
    for verb in [&["runs", "list"][..], &["dlq", "list"], &["worktree", "list"], &["status"]] {
        let refused = bench.fleet(&[verb, &["--state", "/nowhere/at-all"]].concat());
        let first = refused.err.lines().next().unwrap_or_default();
        assert_eq!(
            (refused.code, first),
            (2, "error: the state directory /nowhere/at-all does not exist"),
            "{verb:?}"
        );
    }
    assert_eq!(bench.files(), Vec::<std::path::PathBuf>::new());
}

#[tokio::test]
async fn the_list_has_its_documented_fields() {
    let bench = with_history().await;
    let rows = bench.fleet(&["runs", "list", "--json"]).json();
    assert_eq!(
        rows[1],
        json!({
            "run_id": run_id(1), "task": "report", "due": "2026-03-01T09:01:00Z",
            "state": "success", "outcome": "success", "reason": null, "attempts": 1,
            "cost_usd": 0.012, "tokens": 130, "started_at": "2026-03-01T09:00:00Z",
            "finished_at": "2026-03-01T09:01:30Z", "branch": "fleet/report-x",
            "commit": "0123456789abcdef0123456789abcdef01234567",
            "bundle_commit": "89abcdef0123456789abcdef0123456789abcdef",
            "trigger": "schedule", "limits": "best_effort", "retry_at": null,
        })
    );
    assert_eq!(rows.as_array().map(Vec::len), Some(2));
}

#[tokio::test]
async fn filters_narrow_the_list() {
    let bench = with_history().await;
    let tasks = |args: &[&str]| {
        let rows = bench.fleet(&[&["runs", "list", "--json"], args].concat()).json();
        let rows = rows.as_array().expect("a list").clone();
        rows.iter().map(|row| row["task"].as_str().expect("text").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(tasks(&["--task", "report"]), ["report"]);
    assert_eq!(tasks(&["--in-state", "dead_lettered"]), ["tidy"]);
    assert_eq!(tasks(&["--since", "2026-03-01T09:02:00Z"]), ["tidy"]);
    assert_eq!(tasks(&["--limit", "1"]), ["tidy"]);
    assert_eq!(tasks(&["--since", "9999h", "--task", "none"]), Vec::<String>::new());
}

#[test]
fn wrong_filters_are_wrong_usage() {
    let bench = Bench::new();
    let wrong = [["--in-state", "done"], ["--since", "soon"], ["--limit", "0"]];
    for args in wrong {
        let done = bench.fleet(&["runs", "list", args[0], args[1]]);
        assert_eq!((done.code, done.out.as_str()), (2, ""), "{args:?}");
    }
    let state = bench.fleet(&["runs", "list", "--in-state", "done"]);
    assert!(state.err.contains("the states are pending, running, scheduled"), "{}", state.err);
}

#[tokio::test]
async fn a_run_is_shown_whole_by_the_beginning_of_its_id() {
    let bench = with_history().await;
    let id = run_id(1).to_string();
    let done = bench.fleet(&["runs", "show", &id[..8]]);
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    insta::assert_snapshot!(done.out);
}

#[tokio::test]
async fn a_run_in_json_has_events_artifacts_usage_and_seal() {
    let bench = with_history().await;
    let shown = bench.fleet(&["runs", "show", run_id(1).as_str(), "--json"]).json();
    assert_eq!(shown["run_id"], json!(run_id(1)));
    assert_eq!(shown["events"][0]["type"], "attempt_finished");
    assert_eq!(shown["events"][0]["seq"], 1);
    assert_eq!(shown["artifacts"][0]["name"], "report.md");
    assert_eq!(shown["usage"]["cost_nano_usd"], 12_000_000);
    assert_eq!(shown["seal"]["lines"][1]["holds"], false);
}

#[tokio::test]
async fn an_ambiguous_beginning_is_refused() {
    let bench = with_history().await;
    let done = bench.fleet(&["runs", "show", "0"]);
    assert_eq!(
        (done.code, done.err.as_str()),
        (2, "error: 0 matches 2 runs: give more of the id\n")
    );
}

#[tokio::test]
async fn artifacts_are_saved_by_their_last_name_and_never_overwrite() {
    let bench = with_history().await;
    let id = run_id(1).to_string();
    let kept = bench.state().artifacts().join(&id).join("1");
    std::fs::create_dir_all(&kept).expect("made");
    std::fs::write(kept.join("1"), "first").expect("written");
    std::fs::write(kept.join("2"), "second").expect("written");
    let list = bench.fleet(&["runs", "artifacts", &id]);
    assert_eq!(
        list.out,
        "1 report.md (5 bytes): for the week\n2 ../../numbers.csv (5 bytes): for the week\n"
    );
    let save = || bench.fleet(&["runs", "artifacts", &id, "--save", "out"]);
    let saved = save();
    assert_eq!(
        (saved.code, saved.out.as_str()),
        (0, "saved out/report.md\nsaved out/numbers.csv\n")
    );
    let read = |name: &str| std::fs::read_to_string(bench.home.path().join("out").join(name));
    assert_eq!(read("numbers.csv").expect("saved"), "second");
    std::fs::write(bench.home.path().join("out/report.md"), "mine").expect("written");
    std::fs::remove_file(bench.home.path().join("out/numbers.csv")).expect("removed");
    let again = save();
    assert_eq!(
        (again.code, again.err.as_str()),
        (
            3,
            "error: out/report.md exists already; nothing was saved\n  hint: save into another directory\n"
        )
    );
    assert_eq!(read("report.md").expect("kept"), "mine");
    read("numbers.csv").expect_err("nothing was saved");
}

#[tokio::test]
async fn artifacts_whose_copy_is_missing_leave_nothing_behind() {
    let bench = with_history().await;
    let id = run_id(1).to_string();
    let kept = bench.state().artifacts().join(&id).join("1");
    std::fs::create_dir_all(&kept).expect("made");
    std::fs::write(kept.join("1"), "first").expect("written");
    let done = bench.fleet(&["runs", "artifacts", &id, "--save", "out"]);
    assert_eq!(done.code, 5, "{done:?}");
    let left = std::fs::read_dir(bench.home.path().join("out")).expect("made").count();
    assert_eq!(left, 0);
}

#[tokio::test]
async fn a_followed_log_ends_when_the_run_does() {
    let bench = Bench::new();
    let store = bench.store();
    let claimed = running(&store, "report", 1).await;
    let run = claimed.run_id.clone();
    let warned = |message: &str| vec![event(EventKind::Warned { message: message.into() })];
    store.append_events(run.clone(), claimed.token, warned("early")).await.expect("appended");
    let mut command = bench.command(&["runs", "logs", "-f", run.as_str()]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("fleet starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let mut line = || lines.next().map(|line| line.expect("a line"));
    assert_eq!(line().as_deref(), Some("attempt 1 (2026-03-01 09:00:00Z)"));
    assert_eq!(line().as_deref(), Some("09:00:00Z warning: early"));
    // It shows what comes while it watches, and then the end.
    store.append_events(run.clone(), claimed.token, warned("late")).await.expect("appended");
    assert_eq!(line().as_deref(), Some("09:00:00Z warning: late"));
    store.finish_attempt(run, claimed.token, success()).await.expect("ends");
    assert_eq!(
        line().as_deref(),
        Some("09:00:00Z attempt ended: success; $0.00, 0 tokens in (0 cached), 0 out")
    );
    assert_eq!(line(), None);
    assert!(child.wait().expect("ends").success());
}

#[tokio::test]
async fn a_log_in_json_is_one_event_a_line() {
    let bench = with_history().await;
    let done = bench.fleet(&["runs", "logs", run_id(1).as_str(), "--json"]);
    let lines: Vec<serde_json::Value> =
        done.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), 1);
    assert_eq!((&lines[0]["seq"], &lines[0]["type"]), (&json!(1), &json!("attempt_finished")));
}

#[test]
fn a_damaged_store_is_named_and_ends_with_5() {
    let bench = Bench::new();
    std::fs::create_dir(bench.state().root()).expect("made");
    std::fs::write(bench.state().database(), "no database. ".repeat(100)).expect("written");
    let done = bench.fleet(&["runs", "list"]);
    assert_eq!(
        (done.code, done.err.as_str()),
        (
            5,
            "error: the store ~/state/fleet.db is damaged: file is not a database\n  hint: put the newest sound backup in its place with `fleet restore FILE`; `fleet backup` keeps them in ~/state/backups\n"
        )
    );
}

#[tokio::test]
async fn a_running_attempt_does_not_show_what_ended_the_one_before_as_its_own() {
    let bench = Bench::new();
    let store = bench.store();
    let claimed = running(&store, "tidy", 2).await;
    let failed = AttemptFinish {
        state: RunState::Scheduled,
        retry_at: Some(now()),
        dead_letter: None,
        ..dead()
    };
    store.finish_attempt(claimed.run_id.clone(), claimed.token, failed).await.expect("ends");
    claim_again(&store).await;
    let list = bench.fleet(&["runs", "list"]).out;
    assert!(list.contains("(attempt before: $0.50 of $0.50 is spent)"), "{list}");
    let shown = bench.fleet(&["runs", "show", claimed.run_id.as_str()]).out;
    assert!(
        shown.contains("  state      running\n  before     $0.50 of $0.50 is spent\n"),
        "{shown}"
    );
}

#[tokio::test]
async fn after_a_replay_both_sums_of_spending_are_shown() {
    let bench = Bench::new();
    let store = bench.store();
    history(&store).await;
    store.replay(ReplayTarget::All, now()).await.expect("replays");
    let shown = bench.fleet(&["runs", "show", run_id(2).as_str()]).out;
    let sums = "  spent      $0.0120, 120 tokens in (20 cached), 30 out over all attempts\n             \
                $0.00, 0 tokens in (0 cached), 0 out spent since the replay\n";
    assert!(shown.contains(sums), "{shown}");
}
