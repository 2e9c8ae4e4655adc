//! `fleet doctor`: everything that this host must have, each with its fix; `--fix` does what an
//! ordinary user may, and names root's commands for the rest.

mod account;
mod check;
mod place;
mod repair;
mod root;
mod sandbox;
mod stale;

use super::{Exit, Failure, Global, print, print_json};
use check::Check;

/// Checks that this host can run fleet.
#[derive(Debug, clap::Args)]
pub struct DoctorArgs {
    /// Repair what this account may, and name root's commands for the rest
    #[arg(long)]
    fix: bool,
    /// JSON instead of lines
    #[arg(long)]
    json: bool,
    /// As root: the account that runs fleet [default: $FLEET_SERVICE_USER or fleet]
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
}

/// Carries out the verb.
pub fn run(args: DoctorArgs, global: &Global) -> Result<Exit, Failure> {
    if rustix::process::geteuid().is_root() {
        return root::run(&args);
    }
    let checks = global.block_on(async {
        let mut checks = examine(global).await;
        if args.fix {
            repair_all(&mut checks, global).await;
        }
        checks
    })?;
    let ok = show(&checks, &args)?;
    for warning in global.config.warnings.iter().filter(|_| !args.json) {
        print(&format!("{:<5} {:<18} {warning}", "warn", "configuration"))?;
    }
    Ok(if ok { Exit::Ok } else { Exit::Problems })
}

/// Repairs one thing after another, each at most once: what it hid is seen afterwards.
async fn repair_all(checks: &mut Vec<Check>, global: &Global) {
    let mut tried = Vec::new();
    loop {
        let next = checks.iter().find_map(|check| {
            let repair = check.repair.filter(|repair| !tried.contains(repair))?;
            Some((check.name, repair))
        });
        let Some((name, repair)) = next else { return };
        tried.push(repair);
        eprintln!("fixing {name}: {}", repair.announcement(global));
        match repair.carry_out(global).await {
            Ok(done) => eprintln!("    {done}"),
            Err(reason) => eprintln!("    not fixed: {reason}"),
        }
        *checks = examine(global).await;
    }
}

async fn examine(global: &Global) -> Vec<Check> {
    let account = account::Account::own();
    let mut checks = place::checks(global);
    checks.push(account::subordinate_ids(&account));
    checks.push(account::linger(&account));
    let sandbox = sandbox::checks(global).await;
    let whole = sandbox.iter().all(|check| check.ok);
    checks.extend(sandbox);
    // Without a Podman that answers nobody can tell.
    if whole {
        checks.push(stale::check(global).await);
    }
    checks
}

/// Prints the checks; whether all are well.
fn show(checks: &[Check], args: &DoctorArgs) -> Result<bool, Failure> {
    if args.json {
        print_json(&checks)?;
    } else {
        for check in checks {
            let verdict = if check.ok { "ok" } else { "FAIL" };
            print(&format!("{verdict:<5} {:<18} {}", check.name, check.message))?;
            if let Some(command) = &check.root {
                print(&format!("{:24} as root: {command}", ""))?;
            }
        }
    }
    Ok(checks.iter().all(|check| check.ok))
}
