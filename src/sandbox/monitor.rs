//! Ends what a `podman run` leaves when it is killed at the wrong moment: a monitor (`conmon`) and a
//! container that the OCI runtime has made, and that Podman's database does not know. Podman removes
//! neither, ever.

use std::path::Path;
use std::time::Duration;

use tracing::{info, warn};

use super::command;
use super::podman::Podman;

/// How long the OCI runtime may take.
const PATIENCE: Duration = Duration::from_secs(20);

impl Podman {
    /// Ends the monitor of a container that Podman does not know any more, with what it watches.
    pub(super) async fn end_monitor(&self, container: &str) {
        let uid = self.host().uid;
        let owned = container.to_owned();
        let found = tokio::task::spawn_blocking(move || monitored(&owned, uid)).await;
        for Watched { id, runtime } in found.unwrap_or_default() {
            let Some(runtime) = self.host().around.find_program(&runtime) else { continue };
            let mut delete = command::command(&runtime, &self.environment());
            delete.args(["delete", "--force", &id]);
            match command::finish(delete, PATIENCE).await {
                Ok(finished) if finished.code == Some(0) => {
                    info!(container, "ended a container that Podman had lost");
                }
                Ok(finished) => {
                    let stderr = finished.stderr_tail();
                    warn!(container, error = stderr, "cannot end a container that Podman has lost");
                }
                Err(error) => {
                    warn!(container, %error, "cannot end a container that Podman has lost");
                }
            }
        }
    }
}

/// What a monitor watches.
#[derive(Debug, PartialEq, Eq)]
struct Watched {
    id: String,
    /// The OCI runtime's program.
    runtime: String,
}

/// The containers of that name that a monitor watches.
fn monitored(container: &str, uid: u32) -> Vec<Watched> {
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    processes
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .filter(|process| is_own(process, uid))
        .filter_map(|process| watched(&std::fs::read(process.join("cmdline")).ok()?, container))
        .collect()
}

/// Whether it is this user's process and in no container: what runs inside can call itself anything.
fn is_own(process: &Path, uid: u32) -> bool {
    let Ok(status) = std::fs::read_to_string(process.join("status")) else { return false };
    let fields = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.map(|line| line.split_whitespace().collect::<Vec<_>>()).unwrap_or_default()
    };
    let uid = uid.to_string();
    fields("Uid:").first() == Some(&uid.as_str()) && fields("NSpid:").len() == 1
}

/// The container, when the arguments are those of its monitor.
fn watched(cmdline: &[u8], container: &str) -> Option<Watched> {
    let args: Vec<&str> =
        cmdline.split(|byte| *byte == 0).map(std::str::from_utf8).collect::<Result<_, _>>().ok()?;
    let after = |flag: &str| {
        let at = args.iter().position(|arg| *arg == flag)?;
        args.get(at + 1).copied()
    };
    let program = |path: &str| path.rsplit('/').next().map(str::to_owned);
    let is_monitor = program(args.first()?).as_deref() == Some("conmon");
    let runtime = program(after("-r")?)?;
    let id = after("-c").filter(|_| is_monitor && after("-n") == Some(container))?;
    let is_id = id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then(|| Watched { id: id.to_owned(), runtime })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_monitor_of_that_container_is_found() {
        let id = "0123456789abcdef".repeat(4);
        let line = |program: &str, id: &str, name: &str| {
            format!("{program}\0--api-version\x001\0-c\0{id}\0-u\0{id}\0-n\0{name}\0-r\0/x/runc\0")
        };
        let of = |line: String| watched(line.as_bytes(), "fleet-a-1");
        assert_eq!(
            of(line("/usr/bin/conmon", &id, "fleet-a-1")),
            Some(Watched { id: id.clone(), runtime: "runc".to_owned() })
        );
        for other in [
            line("/usr/bin/conmon", &id, "fleet-a-12"),
            line("/usr/bin/other", &id, "fleet-a-1"),
            line("/usr/bin/conmon", "--all", "fleet-a-1"),
            String::new(),
        ] {
            assert_eq!(of(other), None);
        }
    }
}
