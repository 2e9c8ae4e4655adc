//! `fleet config`.

use serde_json::json;

use super::{Exit, Failure, Global};

/// Shows the host's configuration.
#[derive(Debug, clap::Args)]
pub struct ConfigArgs {
    #[command(subcommand)]
    verb: ConfigVerb,
}

#[derive(Debug, clap::Subcommand)]
enum ConfigVerb {
    /// Prints each value and where it came from
    Show {
        /// JSON instead of a table
        #[arg(long)]
        json: bool,
    },
}

/// Carries out the verb.
pub fn run(args: ConfigArgs, global: &Global) -> Result<Exit, Failure> {
    let ConfigVerb::Show { json } = args.verb;
    if json {
        show_json(global)?
    } else {
        show_table(global)?
    }
    Ok(Exit::Ok)
}

fn show_json(global: &Global) -> Result<(), Failure> {
    super::print_json(&json!({
        "state_dir": global.config.state.root(),
        "settings": global.config.settings,
        "warnings": global.config.warnings,
    }))
}

fn show_table(global: &Global) -> Result<(), Failure> {
    let mut table = super::table(&["KEY", "VALUE", "FROM", "ENVIRONMENT"]);
    for setting in &global.config.settings {
        let value = global.redactor.redact(&setting.value);
        let from = setting.origin.to_string();
        table.add_row([setting.key, &*value, &from, setting.env]);
    }
    super::print(&format!("state directory {}\n\n{table}", global.config.state.root().display()))?;
    for warning in &global.config.warnings {
        super::print(&format!("warning: {}", global.redactor.redact(warning)))?;
    }
    super::print("\nnot read, because fleet has no chat: FLEET_PYTHON_REPL_*, CHAT_*, CUTLASS_*")
}
