//! Cells: state, values, errors, and the interpreter's ends.

use serde_json::{Value, json};

use super::driver::{Helper, exists};

fn cell(value: Option<&str>, error: Option<&str>, length: usize) -> Value {
    json!({
        "ok": true, "dropped_bytes": 0, "spill_path": null, "head_len": length, "value": value,
        "error": error, "vars": [], "timed_out": false, "kernel_lost": false, "oom_killed": false,
        "figures": []
    })
}

fn run(helper: &mut Helper, code: &str) -> (Value, String) {
    let (header, body) = helper.call(json!({"call": "python", "code": code}));
    (header, String::from_utf8(body).expect("text"))
}

#[test]
fn state_is_kept_and_the_last_expression_is_the_value() {
    let mut helper = Helper::start();
    assert_eq!(run(&mut helper, "x = 20"), (cell(None, None, 0), String::new()));
    let code = "print('seen'); import os; _ = os.system('echo child'); x * 2 + 2";
    assert_eq!(run(&mut helper, code), (cell(Some("42"), None, 11), "seen\nchild\n".to_owned()));
}

#[test]
fn a_cell_starts_in_the_workspace_and_may_import_from_it() {
    let mut helper = Helper::start();
    helper.bash("echo 'answer = 42' > mine.py");
    let workspace = helper.workspace.display().to_string();
    let code = "import os, mine; (os.getcwd(), mine.answer, 'SECRET_OF_THE_HOST' in os.environ, os.environ['MPLBACKEND'])";
    let expected = format!("('{workspace}', 42, False, 'Agg')");
    assert_eq!(run(&mut helper, code), (cell(Some(&expected), None, 0), String::new()));
}

#[test]
fn a_traceback_shows_the_cell_and_nothing_of_fleet() {
    let mut helper = Helper::start();
    let (header, _) = run(&mut helper, "def f():\n    return 1 / 0\n\nf()");
    let error = header["error"].as_str().expect("an error").replace("    ~~^~~\n", "");
    let expected = "Traceback (most recent call last):\n  File \"<cell 1>\", line 4, in <module>\n    f()\n  \
        File \"<cell 1>\", line 2, in f\n    return 1 / 0\n           \nZeroDivisionError: division by zero\n";
    let squeezed = |text: &str| {
        text.lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with(['~', '^']))
            .collect::<Vec<_>>()
            .join("\n")
    };
    assert_eq!(squeezed(&error), squeezed(expected));
    let (header, _) = run(&mut helper, "1 +");
    assert!(header["error"].as_str().expect("an error").contains("SyntaxError"), "{header}");
    assert!(!header["error"].as_str().expect("an error").contains("interpreter.py"), "{header}");
    let (header, _) = run(&mut helper, "raise SystemExit(3)");
    assert!(header["error"].as_str().expect("an error").ends_with("SystemExit: 3\n"), "{header}");
    assert_eq!(header["kernel_lost"], json!(false));
}

#[test]
fn a_cell_over_its_time_is_interrupted_and_state_survives() {
    let mut helper = Helper::start();
    let code = "x = 5\nimport time\ntime.sleep(600)";
    let (header, _) = helper.call(json!({"call": "python", "code": code, "timeout_ms": 700}));
    assert_eq!((&header["timed_out"], &header["kernel_lost"]), (&json!(true), &json!(false)));
    assert!(
        header["error"].as_str().expect("an error").ends_with("KeyboardInterrupt\n"),
        "{header}"
    );
    assert!(!header["error"].as_str().expect("an error").contains("interpreter.py"), "{header}");
    assert_eq!(run(&mut helper, "x").0, cell(Some("5"), None, 0));
}

#[test]
fn a_cell_that_ignores_the_interrupt_loses_the_interpreter_and_its_children() {
    let mut helper = Helper::start();
    let code = "import signal, subprocess\nx = 5\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n\
        p = subprocess.Popen(['setsid', 'sleep', '600'])\nopen('pid', 'w').write(str(p.pid))\n\
        while True: pass";
    let (header, _) = helper.call(json!({"call": "python", "code": code, "timeout_ms": 700}));
    assert_eq!((&header["timed_out"], &header["kernel_lost"]), (&json!(true), &json!(true)));
    let pid = std::fs::read_to_string(helper.workspace.join("pid")).expect("a file");
    assert!(!exists(&pid));
    let (header, _) = run(&mut helper, "'x' in globals()");
    assert_eq!(header, cell(Some("False"), None, 0));
}

#[test]
fn an_interpreter_that_dies_is_named_and_started_anew() {
    let mut helper = Helper::start();
    let (header, body) = run(&mut helper, "print('last words'); import os; os._exit(9)");
    let mut expected =
        cell(None, Some("the interpreter ended (exit status 9); its state is lost"), 11);
    expected["kernel_lost"] = json!(true);
    assert_eq!((header, body), (expected.clone(), "last words\n".to_owned()));
    let (header, _) = run(&mut helper, "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)");
    (expected["error"], expected["head_len"]) =
        (json!("the interpreter ended (signal 11); its state is lost"), json!(0));
    assert_eq!(header, expected);
    assert_eq!(run(&mut helper, "1 + 1").0, cell(Some("2"), None, 0));
}

#[test]
fn a_reset_forgets_and_is_no_loss() {
    let mut helper = Helper::start();
    run(&mut helper, "x = 1");
    let (header, _) =
        helper.call(json!({"call": "python", "code": "'x' in globals()", "reset_kernel": true}));
    assert_eq!(header, cell(Some("False"), None, 0));
}

#[test]
fn a_cancelled_cell_is_interrupted_and_answered() {
    let mut helper = Helper::start();
    let id = helper.ask(json!({"call": "python", "code": "import os\nx = 1\nos.mkfifo('up')\nopen('up', 'w').close()\nimport time\ntime.sleep(600)"}), &[]);
    helper.bash("until [ -p up ]; do sleep 0.01; done; cat up");
    helper.cancel(id);
    assert_eq!(helper.wait(id).0["kind"], json!("cancelled"));
    assert_eq!(run(&mut helper, "x").0, cell(Some("1"), None, 0));
}

#[test]
fn variables_come_back_as_json_or_as_repr_and_bounded() {
    let mut helper = Helper::start();
    let code = "a = {'k': [1, None]}\nb = {1, 2}\nc = 'ä' * 100000\nd = '\\ud800'";
    let names = ["a", "b", "c", "d", "missing"];
    let (header, _) = helper.call(json!({"call": "python", "code": code, "return_vars": names}));
    let vars = header["vars"].as_array().expect("a list").clone();
    assert_eq!(vars[..2], [json!(["a", "{\"k\": [1, null]}"]), json!(["b", "{1, 2}"])]);
    assert_eq!((vars.len(), &vars[3]), (4, &json!(["d", "\"\\ud800\""])));
    let long = vars[2][1].as_str().expect("a text");
    assert!(long.len() <= 16 * 1024 && long.contains("characters left out"), "{}", long.len());
}

#[test]
fn a_loud_cell_is_bounded_and_spilled() {
    let mut helper = Helper::start();
    let code = "import sys\nfor _ in range(20): print('y' * 99999)\n1";
    let (header, body) = helper.call(json!({"call": "python", "code": code, "output_limit": 100}));
    assert_eq!((&header["dropped_bytes"], &header["value"]), (&json!(1_999_900), &json!("1")));
    assert_eq!((header["spill_path"].as_str(), body.len()), (Some(".fleet/spill/1.txt"), 100));
}

#[test]
fn a_forked_interpreter_does_not_answer() {
    let mut helper = Helper::start();
    let code =
        "import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\n'parent' if pid else 'child'";
    assert_eq!(run(&mut helper, code).0, cell(Some("'parent'"), None, 0));
    assert_eq!(run(&mut helper, "2").0, cell(Some("2"), None, 0));
}

#[test]
fn a_command_leaves_the_interpreter_and_its_children_alone() {
    let mut helper = Helper::start();
    run(&mut helper, "import subprocess; p = subprocess.Popen(['sleep', '600'])");
    helper.bash("true");
    assert_eq!(run(&mut helper, "p.poll()").0, cell(None, None, 0));
}

#[test]
fn the_interpreters_mark_keeps_no_command_alive() {
    let mut helper = Helper::start();
    let (header, _) = run(&mut helper, "import os; os.getpid()");
    let kernel = header["value"].as_str().expect("a number").to_owned();
    let command = format!(
        "mark=$(tr '\\0' '\\n' < /proc/{kernel}/environ | grep ^FLEET_CALL=); \
        (env -i \"$mark\" setsid bash -c 'echo $$ > pid; exec sleep 600' &); \
        until [ -s pid ]; do sleep 0.01; done; echo $mark"
    );
    assert_eq!(helper.bash(&command), "FLEET_CALL=kernel\n");
    let pid = std::fs::read_to_string(helper.workspace.join("pid")).expect("a file");
    assert!(!exists(&pid));
    assert_eq!(run(&mut helper, "os.getpid()").0, cell(Some(&kernel), None, 0));
}

#[test]
fn a_cell_and_a_command_in_which_memory_ran_out_say_so_and_the_next_ones_do_not() {
    let mut helper = Helper::start_in_cgroup();
    // What the kernel does when it kills, of which this host may do nothing.
    let killed = "echo oom_kill $(($(cut -d' ' -f2 cgroup/memory.events 2>/dev/null) + 1)) > cgroup/memory.events";
    let (header, _) = helper.call(json!({"call": "bash", "command": killed}));
    assert_eq!((&header["oom_killed"], &header["exit_code"]), (&json!(true), &json!(0)));
    let code = format!("import os; os.system({killed:?}); os.kill(os.getpid(), 9)");
    let (header, _) = run(&mut helper, &code);
    assert_eq!((&header["oom_killed"], &header["kernel_lost"]), (&json!(true), &json!(true)));
    let (header, _) = run(&mut helper, "1");
    assert_eq!(header["oom_killed"], json!(false));
    let (header, _) = helper.call(json!({"call": "bash", "command": "true"}));
    assert_eq!(header["oom_killed"], json!(false));
}

#[test]
fn what_runs_for_the_model_is_ended_before_the_helper_where_memory_runs_out() {
    let mut helper = Helper::start();
    assert_eq!(helper.bash("cat /proc/self/oom_score_adj"), "500\n");
    let (header, _) = run(&mut helper, "open('/proc/self/oom_score_adj').read()");
    assert_eq!(header["value"], json!("'500\\n'"));
    let own = std::fs::read_to_string(format!("/proc/{}/oom_score_adj", helper.pid()));
    assert!(own.expect("it lives").trim().parse::<i32>().expect("a number") < 500);
}
