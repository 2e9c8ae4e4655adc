//! As root: which account runs fleet, and what only root can give it. Runs nothing else as root.

use std::process::Command;

use super::DoctorArgs;
use super::account::{self, Account};
use super::check::Check;
use crate::cli::{Exit, Failure};

/// The account that runs fleet where nobody says otherwise, as the set-up makes it.
const DEFAULT: &str = "fleet";

/// Checks, and with `--fix` sets up, the service account's prerequisites.
pub(super) fn run(args: &DoctorArgs) -> Result<Exit, Failure> {
    let variable = std::env::var("FLEET_SERVICE_USER").ok().filter(|name| !name.is_empty());
    let name = args.user.clone().or(variable).unwrap_or_else(|| DEFAULT.to_owned());
    let mut checks = examine(&name);
    if args.fix {
        for check in checks.iter().filter(|check| !check.ok) {
            if let Some(command) = &check.root {
                eprintln!("fixing {}: {command}", check.name);
                carry_out(command)?;
            }
        }
        checks = examine(&name);
    }
    let ok = super::show(&checks, args)?;
    eprintln!("fleet never runs as root: for the rest, run `runuser -l {name} -c 'fleet doctor'`");
    Ok(if ok { Exit::Ok } else { Exit::Problems })
}

fn examine(name: &str) -> Vec<Check> {
    let Some(account) = Account::named(name) else {
        let message = format!("there is no account {name}: name another with --user NAME");
        let command = format!("useradd --create-home --shell /bin/bash {name}");
        return vec![Check::wrong("account", message).by_root(command)];
    };
    if account.uid == 0 {
        let message = format!("{name} is root, and fleet refuses to run as root");
        return vec![Check::wrong("account", message)];
    }
    vec![
        Check::ok("account", format!("{} ({})", account.name, account.uid)),
        account::subordinate_ids(&account),
        account::linger(&account),
    ]
}

/// Runs a command that this program has put together from words without spaces.
fn carry_out(command: &str) -> Result<(), Failure> {
    let mut words = command.split(' ');
    let program = words.next().expect("a command has a program");
    let failed = |reason: String| Failure::new(Exit::Io, format!("{command}: {reason}"));
    let status = Command::new(program).args(words).status();
    match status.map_err(|error| failed(error.to_string()))? {
        status if status.success() => Ok(()),
        status => Err(failed(status.to_string())),
    }
}
