//! Many starts and many calls leave nothing that grows.

use std::collections::BTreeSet;
use std::time::Duration;

use fleet::sandbox::{Call, Reply, Sandbox};
use futures_util::future::join_all;

use super::life::{doors, is_running};
use super::{bash, call, ended, told};
use crate::env::sandbox::{Cell, podman_command, wait_until};

/// Rounds of eight starts at once. The benchmark `tool_call -- starts` does more of them.
const ROUNDS: usize = 5;
const AT_ONCE: usize = 8;
const CALLS: usize = 5_000;

/// What a process holds, as the kernel tells.
#[derive(Debug)]
struct Held {
    resident_kb: u64,
    /// Room for descriptors: doubled when they grow.
    descriptor_slots: u64,
    threads: u64,
}

fn held(pid: &str) -> Held {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it lives");
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).expect("a field");
        line.split_whitespace().nth(1).and_then(|word| word.parse().ok()).expect("a number")
    };
    Held {
        resident_kb: field("VmRSS:"),
        descriptor_slots: field("FDSize:"),
        threads: field("Threads:"),
    }
}

fn own_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("its descriptors").count()
}

fn podman(cell: &Cell, args: &[&str]) -> String {
    let output = podman_command(&cell.seal.runtime).args(args).output().expect("podman runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Starts eight sandboxes at once, uses them, ends them. Their ids and mount points.
async fn round(cell: &Cell, n: usize) -> BTreeSet<String> {
    let names: Vec<String> = (0..AT_ONCE).map(|i| format!("run-{n}-{i}")).collect();
    let sandboxes = join_all(names.iter().map(|name| cell.start(name))).await;
    let answers = join_all(sandboxes.iter().map(|one| told(one, "echo alive"))).await;
    assert_eq!(answers, vec![ended(0, "alive\n"); AT_ONCE]);
    let mut args = vec!["inspect", "--format", "{{.Id}} {{.GraphDriver.Data.MergedDir}}"];
    args.extend(sandboxes.iter().map(|sandbox| sandbox.container()));
    let traces = podman(cell, &args).split_whitespace().map(str::to_owned).collect();
    join_all(sandboxes.iter().map(|sandbox| sandbox.close())).await;
    traces
}

#[tokio::test]
async fn forty_starts_eight_at_once_leave_no_process_mount_descriptor_or_memory() {
    let cell = Cell::new().await;
    let mut traces = round(&cell, 0).await;
    let (descriptors, before) = (own_descriptors(), held("self"));
    for n in 1..=ROUNDS {
        traces.extend(round(&cell, n).await);
    }
    assert_eq!(traces.len(), 2 * AT_ONCE * (ROUNDS + 1));
    // A monitor is named after its container.
    for trace in &traces {
        wait_until("its monitor ends", || !is_running(trace)).await;
    }
    let mounts = podman(&cell, &["unshare", "cat", "/proc/self/mountinfo"]);
    let left: Vec<_> = traces.iter().filter(|trace| mounts.contains(trace.as_str())).collect();
    assert_eq!(left, [""; 0]);
    assert_eq!(cell.podman.containers().await.expect("podman lists containers"), [""; 0]);
    assert_eq!(doors(&cell), [""; 0]);
    let after = held("self");
    assert_eq!(own_descriptors(), descriptors);
    assert!(after.resident_kb < before.resident_kb + 4096, "{before:?} {after:?}");
    assert!(after.threads <= before.threads + 4, "{before:?} {after:?}");
}

#[tokio::test]
async fn five_thousand_calls_leave_no_process_descriptor_or_memory_here_or_in_the_helper() {
    let cell = Cell::new().await;
    let sandbox = cell.start("run-calls").await;
    let pid = podman(&cell, &["inspect", "--format", "{{.State.Pid}}", sandbox.container()]);
    let pid = pid.trim();
    let mut before = None;
    for n in 0..CALLS {
        // The first thousand fill what is filled once.
        if n == CALLS / 5 {
            before = Some((held("self"), own_descriptors(), held(pid)));
        }
        let reply = call(&sandbox, nth(n)).await.expect("it is answered");
        if let Reply::Command(output) = &reply {
            assert_eq!(output.exit_code, Some(0), "{output:?}");
        }
    }
    let (own, descriptors, helper) = before.expect("it was looked at");
    let (own_after, helper_after) = (held("self"), held(pid));
    assert_eq!(own_descriptors(), descriptors);
    assert!(own_after.resident_kb < own.resident_kb + 2048, "{own:?} {own_after:?}");
    assert!(helper_after.resident_kb < helper.resident_kb + 2048, "{helper:?} {helper_after:?}");
    assert_eq!(
        (helper_after.descriptor_slots, helper_after.threads <= helper.threads + 1),
        (helper.descriptor_slots, true),
        "{helper:?} {helper_after:?}"
    );
    // The helper, the interpreter, this shell and its `ls`: nothing else lives inside.
    let count = "ls -d /proc/[0-9]* | wc -l";
    let (code, processes) = told(&sandbox, count).await;
    assert_eq!(code, Some(0));
    assert!(processes.trim().parse::<u32>().expect("a number") <= 6, "{processes}");
    sandbox.close().await;
}

/// Every kind of call, in turn.
fn nth(n: usize) -> Call {
    let path = "some/file".to_owned();
    match n % 4 {
        0 => bash("true & true"),
        1 => Call::Write { path, content: n.to_string().into_bytes() },
        2 => Call::Read { path, offset: 0, limit: 1000 },
        _ => Call::Python {
            code: format!("print({n})"),
            timeout: Duration::from_secs(30),
            reset_kernel: false,
            return_vars: Vec::new(),
        },
    }
}
