//! `misfire`, `overlap`, `run_if` and the other keys that say when occurrences run.

use std::time::Duration;

use fleet::bundle::{Misfire, MisfirePolicy, OnError, Overlap, RunIf};
use fleet::run::TaskName;

use super::{SCRIPT, check, check_task, hints, load_files};

const NONE: [&str; 0] = [];
const MANIFEST: &str = "version: 1\nname: test\nproviders: [{name: scripted, type: scripted}]\n\
                        defaults:\n  model: scripted/session\n";
const TASK: &str = "schedule: '@daily'\nprompt: x\ncompletion: {shell: 'true'}\n";

#[test]
fn each_key_has_its_bounds() {
    let task = |keys: &str| check_task(&format!("schedule: '@daily'\nprompt: x\n{keys}"));
    assert_eq!(
        task("priority: 101\npark_after: 1001\nschedule_count: 0\nserialization_key: ' '\n"),
        [
            "tasks/t.yaml:3:11 invalid-value: priority: 101 is out of range",
            "tasks/t.yaml:4:13 invalid-value: park_after: 1001 is out of range",
            "tasks/t.yaml:5:17 invalid-value: schedule_count: 0 is out of range",
            "tasks/t.yaml:6:20 invalid-value: the serialization key is empty",
        ]
    );
    assert_eq!(
        task("run_if: {command: '', exit_code: 256, timeout: 2h}\nmisfire: {max_delay: 10s}\n"),
        [
            "tasks/t.yaml:3:19 invalid-value: the command of run_if is empty",
            "tasks/t.yaml:3:34 invalid-value: run_if.exit_code: 256 is out of range",
            "tasks/t.yaml:3:48 invalid-value: the timeout of run_if is out of range",
            "tasks/t.yaml:4:22 invalid-value: max_delay is shorter than a minute",
        ]
    );
    let edges = "priority: -100\npark_after: 0\nschedule_count: 1\n\
                 run_if: {command: x, exit_code: 255, timeout: 1s}\nmisfire: {max_delay: 1m}\n";
    assert_eq!(task(edges), NONE);
}

#[test]
fn words_that_are_none_get_a_near_one() {
    let task = "schedule: '@daily'\nprompt: x\noverlap: cancel\nmisfire: {policy: last}\n\
                run_if: {comand: x}\n";
    assert_eq!(
        check_task(task),
        [
            "tasks/t.yaml:3:10 invalid-value: overlap: \"cancel\" is not known",
            "tasks/t.yaml:4:19 invalid-value: misfire.policy: \"last\" is not known",
            "tasks/t.yaml:5:10 unknown-key: unknown key \"comand\"",
        ]
    );
}

#[test]
fn keys_about_scheduled_runs_need_a_schedule() {
    let task = "prompt: x\nschedule_count: 3\nmisfire: {policy: all}\noverlap: allow\n\
                run_if: {command: x}\n";
    let about = |at: &str, key: &str| {
        format!(
            "tasks/t.yaml:{at} useless-key: {key}: the task has no schedule, it runs by hand only"
        )
    };
    assert_eq!(
        check_task(task),
        [
            about("2:1", "schedule_count"),
            about("3:1", "misfire"),
            about("4:1", "overlap"),
            about("5:1", "run_if"),
        ]
    );
    // By hand these still count.
    assert_eq!(check_task("prompt: x\npriority: 5\nserialization_key: db\npark_after: 2\n"), NONE);
    // A mistaken schedule is one mistake.
    assert_eq!(
        check_task("schedule: 5\nprompt: x\noverlap: allow\n"),
        ["tasks/t.yaml:1:11 wrong-type: schedule: the number 5 is not text"]
    );
}

#[test]
fn late_runs_that_never_happen_have_no_longest_delay() {
    let task = "schedule: '@daily'\nprompt: x\nmisfire: {policy: skip, max_delay: 2h}\n";
    assert_eq!(
        check_task(task),
        ["tasks/t.yaml:3:25 useless-key: with policy: skip nothing runs late"]
    );
    assert_eq!(
        hints(&[("tasks/t.yaml", task), ("scripted/t.yaml", SCRIPT)]),
        [Some("remove max_delay, or choose latest or all".to_owned())]
    );
}

#[test]
fn defaults_are_checked_where_they_stand() {
    let manifest = format!("{MANIFEST}  misfire: {{max_delay: soon}}\n  park_after: 1001\n");
    assert_eq!(
        check(&[("manifest.yaml", &manifest)]),
        [
            "manifest.yaml:6:24 invalid-duration: \"soon\" is not a duration",
            "manifest.yaml:7:15 invalid-value: defaults.park_after: 1001 is out of range",
        ]
    );
}

#[test]
fn tasks_inherit_key_by_key() {
    let manifest = format!(
        "{MANIFEST}  misfire: {{policy: all, max_delay: 2h}}\n  overlap: queue\n  park_after: 9\n"
    );
    let own = "misfire: {max_delay: 3h}\noverlap: allow\npark_after: 0\npriority: -5\n\
               serialization_key: db\nrun_if: {command: test -e go, exit_code: 3, on_error: skip}\n";
    let bundle = load_files(&[
        ("manifest.yaml", manifest.as_bytes()),
        ("tasks/a.yaml", TASK.as_bytes()),
        ("scripted/a.yaml", SCRIPT.as_bytes()),
        ("tasks/b.yaml", format!("{TASK}{own}").as_bytes()),
        ("scripted/b.yaml", SCRIPT.as_bytes()),
    ])
    .bundle
    .expect("a valid bundle");
    let hours = |hours: u64| Duration::from_secs(hours * 3600);
    let all = |hours_late| Misfire { policy: MisfirePolicy::All, max_delay: hours(hours_late) };
    let a = &bundle.tasks[&TaskName::new("a")];
    assert_eq!((a.misfire, a.overlap, a.park_after), (all(2), Overlap::Queue, 9));
    assert_eq!((a.priority, a.serialization_key.as_deref(), &a.run_if), (0, None, &None));
    let b = &bundle.tasks[&TaskName::new("b")];
    assert_eq!((b.misfire, b.overlap, b.park_after), (all(3), Overlap::Allow, 0));
    assert_eq!((b.priority, b.serialization_key.as_deref()), (-5, Some("db")));
    let run_if = RunIf {
        command: "test -e go".to_owned(),
        exit_code: 3,
        timeout: Duration::from_secs(60),
        on_error: OnError::Skip,
    };
    assert_eq!(b.run_if, Some(run_if));
}
