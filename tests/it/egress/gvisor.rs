//! The way out under gVisor, whose kernel is not the host's: the same socket, the same verdicts.

use fleet::egress::Caps;

use super::sandbox::told;
use crate::env::outside::{Names, Server, Way, dialer, hosts, ok};
use crate::env::sandbox::Cell;
use fleet::sandbox::Sandbox;

#[tokio::test]
async fn gvisor_reaches_what_the_task_names_and_nothing_else() {
    let server = Server::http(|head| ok(head.lines().next().unwrap_or_default())).await;
    let port = server.port();
    let names = Names::default();
    names.answer("good.test", &["127.0.0.1"]);
    let cell = Cell::of_runtime("runsc").await;
    let policy = hosts(&[&format!("good.test:{port}")]);
    let way = Way::new(policy, dialer(&names, server.address), Caps::default());
    let mut spec = cell.spec("run-gvisor-egress");
    spec.egress = Some(way.gate.clone());
    let sandbox = cell.start_spec(spec).await;
    let python = format!(
        "python3 -c 'import urllib.request as r; print(r.urlopen(\"http://good.test:{port}/p\").read().decode())'"
    );
    assert_eq!(told(&sandbox, &python).await, "GET /p HTTP/1.1\n");
    let denied =
        told(&sandbox, "curl -sS http://evil.test/; curl -sS http://169.254.169.254/").await;
    assert!(denied.contains("the host is not in the task's allow_network"), "{denied}");
    assert!(denied.contains("the host is an address, not a name"), "{denied}");
    let past = "python3 - <<'END'\nimport socket\n\
                for where in (('127.0.0.1', PORT), ('192.0.2.1', 80)):\n    \
                try:\n        socket.create_connection(where, 2)\n        print('connected')\n    \
                except OSError:\n        print('refused')\nEND";
    let past = told(&sandbox, &past.replace("PORT", &port.to_string())).await;
    assert_eq!(past, "refused\nrefused\n");
    sandbox.close().await;
    assert_eq!(server.connections(), 1);
    assert_eq!(way.log().await.iter().filter(|line| line.starts_with("allowed")).count(), 1);
}
