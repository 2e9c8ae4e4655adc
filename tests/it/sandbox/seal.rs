//! What the seal keeps from the agent.

use fleet::sandbox::Sandbox;

use super::{ended, told};
use crate::env::sandbox::Cell;

/// A Python program that tells how each attempt ends.
fn attempts(program: &str) -> String {
    format!(
        "python3 - <<'END'\nimport ctypes, errno, os, socket\nlibc = ctypes.CDLL(None, use_errno=True)\n\
         def tell(attempt):\n    try:\n        attempt()\n    except OSError as error:\n        \
         print(errno.errorcode[error.errno])\n    else:\n        print('done')\n\
         def call(name, *args):\n    if getattr(libc, name)(*args) == -1:\n        \
         raise OSError(ctypes.get_errno(), name)\n{program}\nEND"
    )
}

#[tokio::test]
async fn a_command_runs_in_the_workspace_and_its_output_comes_back() {
    let cell = Cell::new().await;
    let sandbox = cell.start("run-a").await;
    let seen = told(&sandbox, "pwd; echo word > file; exit 3").await;
    assert_eq!(seen, ended(3, &format!("{}\n", cell.path("ws").display())));
    assert_eq!(std::fs::read_to_string(cell.path("ws/file")).expect("file"), "word\n");
    sandbox.close().await;
}

#[tokio::test]
async fn there_is_no_network_but_loopback() {
    let cell = Cell::new().await;
    let sandbox = cell.start("run-net").await;
    let seen = told(
        &sandbox,
        &attempts(
            "print([name for _, name in socket.if_nameindex()])\n\
             tell(lambda: socket.create_connection(('192.0.2.1', 80), 2))",
        ),
    )
    .await;
    assert_eq!(seen, ended(0, "['lo']\nENETUNREACH\n"));
    sandbox.close().await;
}

#[tokio::test]
async fn sockets_of_other_families_are_refused() {
    let cell = Cell::new().await;
    let sandbox = cell.start("run-sock").await;
    // AF_VSOCK, AF_ALG, AF_PACKET, netfilter, AF_BLUETOOTH; then what programs need.
    let seen = told(
        &sandbox,
        &attempts(
            "for family, kind, protocol in [(40, 1, 0), (38, 5, 0), (17, 3, 0), (16, 3, 12), (31, 3, 1),\n\
             \x20       (1, 1, 0), (2, 1, 0), (10, 1, 0), (16, 3, 0)]:\n    \
             tell(lambda: socket.socket(family, kind, protocol))",
        ),
    )
    .await;
    let (refused, allowed) = ("ENOSYS\n".repeat(5), "done\n".repeat(4));
    assert_eq!(seen, ended(0, &format!("{refused}{allowed}")));
    sandbox.close().await;
}

#[tokio::test]
async fn no_capability_is_held_and_none_can_be_gained_in_a_nested_user_namespace() {
    let cell = Cell::new().await;
    let sandbox = cell.start("run-cap").await;
    let capabilities = told(&sandbox, "grep ^Cap /proc/self/status | cut -f2 | sort -u").await;
    assert_eq!(capabilities, ended(0, "0000000000000000\n"));
    let nested = told(&sandbox, "unshare -Urm true 2>/dev/null; echo $?").await;
    assert_eq!(nested, ended(0, "1\n"));
    let calls = attempts(
        "tell(lambda: call('unshare', 0x10000000))\n\
         tell(lambda: call('mount', b'none', b'/tmp', b'tmpfs', 0, None))\n\
         tell(lambda: call('chroot', b'/tmp'))\n\
         tell(lambda: call('ptrace', 0, 0, 0, 0))\n\
         tell(lambda: call('syscall', 425, 1, None))",
    );
    assert_eq!(told(&sandbox, &calls).await, ended(0, &"EPERM\n".repeat(5)));
    sandbox.close().await;
}

#[tokio::test]
async fn no_file_of_the_host_is_visible() {
    let cell = Cell::new().await;
    let home = std::env::var("HOME").expect("HOME is set");
    let planted = format!("{home}/planted-secret-{}", std::process::id());
    std::fs::write(&planted, "a secret\n").expect("file");
    let beside = cell.path("beside-the-workspace");
    std::fs::write(&beside, "a secret\n").expect("file");
    let sandbox = cell.start("run-host").await;
    let command = format!(
        "cat {planted} {} /etc/shadow /etc/machine-id 2>&1 | grep -c 'No such file'; ls {home} 2>&1 | wc -l; \
         cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c '[p]odman'",
        beside.display()
    );
    let seen = told(&sandbox, &command).await;
    std::fs::remove_file(&planted).expect("file goes");
    // `ls` says that there is no such directory, in one line.
    assert_eq!(seen, ended(1, "4\n1\n0\n"));
    sandbox.close().await;
}

#[tokio::test]
async fn nothing_can_be_written_but_the_workspace_and_tmp() {
    let cell = Cell::new().await;
    let sandbox = cell.start("run-write").await;
    let places = "for place in / /etc /usr /usr/bin /fleet /run /var /var/tmp /home /proc/sys/kernel /sys/kernel; do \
                  touch $place/probe 2>/dev/null && echo $place; done; \
                  for place in /tmp . /dev/shm; do touch $place/probe && echo $place; done";
    assert_eq!(told(&sandbox, places).await, ended(0, "/tmp\n.\n/dev/shm\n"));
    let shared = "head -c 70M /dev/zero >/dev/shm/big 2>/dev/null; stat -c %s /dev/shm/big; \
                  grep -c ' /dev/shm tmpfs rw,nosuid,nodev,noexec,' /proc/mounts";
    assert_eq!(told(&sandbox, shared).await, ended(0, "67108864\n1\n"));
    sandbox.close().await;
}

#[tokio::test]
async fn nothing_of_the_host_s_environment_is_inside() {
    let cell = Cell::new().await;
    let sandbox = cell.start("run-env").await;
    // HOME and the runtime directory stand for every variable of this process.
    let home = std::env::var("HOME").expect("HOME is set");
    let runtime = std::env::var("XDG_RUNTIME_DIR").expect("XDG_RUNTIME_DIR is set");
    let command = format!(
        "(cat /proc/[0-9]*/environ; env) 2>/dev/null | tr '\\0' '\\n' | grep -c -e '{home}$' -e '{runtime}' -e CARGO -e NEXTEST"
    );
    assert_eq!(told(&sandbox, &command).await, ended(1, "0\n"));
    sandbox.close().await;
}
