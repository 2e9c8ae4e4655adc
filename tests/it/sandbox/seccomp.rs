//! The filter, call by call: a static program inside the real container tries what is denied and what
//! is needed. Which runtime applies the filter is the host's choice, or `FLEET_TEST_RUNTIME`'s.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use fleet::sandbox::{PodmanSandbox, Sandbox, denied_calls};
use serde_json::{Value, json};

use super::{ended, run, told};
use crate::env::sandbox::Cell;
use crate::env::source_root;

/// An error that no kernel answers these calls with.
const MARK: u64 = 200;
/// The filter has no rule for them, and must not: the profile allows them with a capability only.
const DENIED_BY_DEFAULT: [&str; 8] = [
    "acct",
    "clock_settime",
    "ioperm",
    "iopl",
    "setdomainname",
    "sethostname",
    "settimeofday",
    "uselib",
];

/// The workspace of a test with the probe in it. `FLEET_TEST_SECCOMP_PROBE` names one that was built
/// before, for hosts without a compiler.
fn with_probe(cell: &Cell) -> PathBuf {
    let workspace = cell.path("ws");
    std::fs::create_dir_all(&workspace).expect("workspace");
    let probe = workspace.join("probe");
    if let Some(built) = std::env::var_os("FLEET_TEST_SECCOMP_PROBE") {
        std::fs::copy(built, &probe).expect("the probe that was built before");
        return workspace;
    }
    let compiled = Command::new("gcc")
        .args(["-static", "-O1", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&probe)
        .arg(source_root().join("tests/it/sandbox/seccomp_probe.c"))
        .output()
        .expect("gcc is installed");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    workspace
}

/// What the probe tells: name and what became of the call.
async fn probed(sandbox: &PodmanSandbox, arguments: &str) -> BTreeMap<String, String> {
    let output = run(sandbox, &format!("./probe {arguments}")).await;
    let text = String::from_utf8_lossy(&output.output).into_owned();
    assert_eq!(output.exit_code, Some(0), "{text}");
    let told = text.lines().filter_map(|line| line.split_once(' '));
    told.map(|(name, answer)| (name.to_owned(), answer.to_owned())).collect()
}

/// The names whose answer is not one of these.
fn others(told: &BTreeMap<String, String>, expected: &[&str]) -> Vec<String> {
    let other = told.iter().filter(|(_, answer)| !expected.contains(&answer.as_str()));
    other.map(|(name, answer)| format!("{name} {answer}")).collect()
}

/// EPERM where a rule says so, ENOSYS where no rule does or this libseccomp does not know the call.
const DENIED: [&str; 3] = ["errno 1", "errno 38", "absent"];

#[tokio::test]
async fn every_denied_call_is_denied() {
    let cell = Cell::new().await;
    with_probe(&cell);
    let sandbox = cell.start("run-denied").await;
    let names = [denied_calls(), &DENIED_BY_DEFAULT].concat();
    let told = probed(&sandbox, &names.join(" ")).await;
    sandbox.close().await;
    assert_eq!(told.len(), names.len());
    assert_eq!(others(&told, &DENIED), Vec::<String>::new());
    // Only what this architecture never had may go untried.
    let untried: Vec<&String> =
        told.iter().filter(|(_, answer)| *answer == "absent").map(|(name, _)| name).collect();
    let old = ["ioperm", "iopl", "modify_ldt", "umount", "uselib"];
    assert!(untried.iter().all(|name| old.contains(&name.as_str())), "{untried:?}");
}

/// A kernel refuses many of these calls by itself, with the same error. So the same filter runs once
/// more with an error of its own: whatever answers with it was denied by the filter.
#[tokio::test]
async fn it_is_the_filter_that_denies() {
    let cell = Cell::new().await;
    let workspace = with_probe(&cell);
    let text = std::fs::read(&cell.seal.seccomp).expect("the installed filter");
    let mut filter: Value = serde_json::from_slice(&text).expect("JSON");
    let rules = filter["syscalls"].as_array_mut().expect("rules");
    let ours = rules.iter_mut().filter(|rule| rule["errnoRet"] == json!(1));
    let mark = |rule: &mut Value| {
        rule["errnoRet"] = json!(MARK);
        // Newer profiles name the error too, and the name goes before the number.
        rule.as_object_mut().expect("a rule").remove("errno");
    };
    let marked = ours.map(mark).count();
    assert_eq!(marked, 1, "one rule denies by name");
    // crun keeps filters by a checksum that leaves errors out: only another name gives a new one.
    rules.push(json!({ "names": ["getpid"], "action": "SCMP_ACT_ALLOW" }));
    let mut seal = cell.seal.clone();
    seal.seccomp = cell.path("marked.json");
    std::fs::write(&seal.seccomp, filter.to_string()).expect("the marked filter");
    let spec = cell.spec("run-marked");
    assert_eq!(spec.workspace, workspace);
    let sandbox = PodmanSandbox::start(&cell.podman, &seal, spec).await.expect("it starts");
    let told = probed(&sandbox, &denied_calls().join(" ")).await;
    sandbox.close().await;
    let mark = format!("errno {MARK}");
    // A libseccomp that does not know a call leaves it to the default action.
    assert_eq!(others(&told, &[&mark, "errno 38", "absent"]), Vec::<String>::new());
    let by_rule = told.values().filter(|answer| **answer == mark).count();
    assert!(by_rule + 6 >= told.len(), "{told:?}");
}

#[tokio::test]
async fn no_namespace_no_strange_socket_and_no_other_architecture() {
    let cell = Cell::new().await;
    with_probe(&cell);
    let sandbox = cell.start("run-special").await;
    let told = probed(&sandbox, "--special").await;
    sandbox.close().await;
    // The kernel's own answer to an entry that it was built without is a signal, too.
    let denied = ["errno 1", "errno 38", "signal 31", "signal 11"];
    let through = others(&told, &denied);
    let expected = [
        "clone:VFORK ok",
        "clone:nothing ok",
        "netlink:0 ok",
        "socket:1 ok",
        "socket:10 ok",
        "socket:2 ok",
        // The probe gave it no place for the pair.
        "socketpair:1 errno 14",
    ];
    assert_eq!(through, expected);
    assert!(told.len() > 120, "{} were tried", told.len());
}

#[tokio::test]
async fn what_programs_need_is_allowed() {
    let cell = Cell::new().await;
    with_probe(&cell);
    let sandbox = cell.start("run-needed").await;
    let told = probed(&sandbox, "--needed").await;
    sandbox.close().await;
    let denied: Vec<_> =
        told.iter().filter(|(_, answer)| DENIED.contains(&answer.as_str())).collect();
    assert_eq!(denied, Vec::<(&String, &String)>::new());
    assert!(told.len() > 90, "{} were tried", told.len());
}

const GIT: &str = "set -e; export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.invalid \
    GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.invalid; git init -q -b main r; cd r; \
    echo 1 > a; git add a; git commit -qm one; git checkout -qb side; echo 2 > b; git add b; git commit -qm two; \
    git checkout -q main; echo 3 > c; git add c; git commit -qm three; git rebase -q side; git stash -q -u 2>/dev/null || true; \
    git tag t; git gc -q; git fsck --no-progress; git log --format=%s | tr '\\n' ' '";

/// Threads, every way of starting processes, and what they share.
const PROCESSES: &str = r#"
import multiprocessing as mp, threading, subprocess, concurrent.futures as futures
from multiprocessing import shared_memory

def double(n):
    return 2 * n

def main():
    seen = []
    thread = threading.Thread(target=seen.append, args=(1,)); thread.start(); thread.join()
    for way in ("fork", "spawn", "forkserver"):
        with mp.get_context(way).Pool(2) as pool:
            seen.append(sum(pool.map(double, range(4))))
    memory = shared_memory.SharedMemory(create=True, size=10); memory.close(); memory.unlink()
    with futures.ThreadPoolExecutor(4) as pool:
        seen.append(sum(pool.map(double, range(4))))
    seen.append(subprocess.run(["true"]).returncode)
    print(seen)

if __name__ == "__main__":
    main()
"#;

/// A server and a client on loopback, plain and asynchronous, as an egress forwarder is one.
const LOOPBACK: &str = r#"
import asyncio, sqlite3, socket, ssl
async def main():
    async def echo(reader, writer):
        writer.write(await reader.readexactly(4)); await writer.drain(); writer.close()
    server = await asyncio.start_server(echo, "127.0.0.1", 3128)
    reader, writer = await asyncio.open_connection("127.0.0.1", 3128)
    writer.write(b"ping"); print((await reader.read()).decode()); writer.close()
    server.close()
asyncio.run(main())
a, b = socket.socketpair(); a.sendall(b"pair"); print(b.recv(9).decode())
base = sqlite3.connect("db"); base.execute("pragma journal_mode=wal"); base.execute("create table t(x)")
base.execute("insert into t values (7)"); base.commit(); print(base.execute("select x from t").fetchone()[0])
"#;

#[tokio::test]
async fn git_shells_threads_processes_databases_and_loopback_work() {
    let cell = Cell::new().await;
    let workspace = cell.path("ws");
    std::fs::create_dir_all(&workspace).expect("workspace");
    std::fs::write(workspace.join("processes.py"), PROCESSES).expect("program");
    std::fs::write(workspace.join("loopback.py"), LOOPBACK).expect("program");
    let sandbox = cell.start("run-programs").await;
    assert_eq!(told(&sandbox, GIT).await, ended(0, "three two one "));
    let pipes = "diff <(seq 3) <(seq 3) && x=$(echo a | tr a b | cat) && { sleep 0 & wait; } && echo $x {1..3} >&2";
    assert_eq!(told(&sandbox, pipes).await, ended(0, "b 1 2 3\n"));
    assert_eq!(told(&sandbox, "python3 processes.py").await, ended(0, "[1, 12, 12, 12, 12, 0]\n"));
    assert_eq!(told(&sandbox, "python3 loopback.py").await, ended(0, "ping\npair\n7\n"));
    // Where they are installed, they work; a missing one says so and is no failure.
    let libraries = "for what in 'import numpy; print(numpy.dot([1, 2], [3, 4]))' \
        'from IPython.core.interactiveshell import InteractiveShell as S; print(S.instance().run_cell(\"5 + 6\").result)'; do \
        python3 -c \"$what\" 2>&1 | grep -o '^11$\\|No module named' || echo broken; done";
    let (code, output) = told(&sandbox, libraries).await;
    sandbox.close().await;
    assert_eq!(code, Some(0));
    assert!(!output.contains("broken"), "{output}");
}
