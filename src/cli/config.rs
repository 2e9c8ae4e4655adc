//! `fleet config`.

use super::{Exit, Failure, Global, print, print_json, table};
use crate::config::{Origin, Setting, meaning};

/// Shows the host's configuration.
#[derive(Debug, clap::Args)]
pub struct ConfigArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Shows each value and where it came from: a flag, the environment, a file or the default.
    Show {
        /// JSON instead of a table
        #[arg(long)]
        json: bool,
    },
}

/// One value: the documented JSON of `fleet config show --json`.
#[derive(Debug, serde::Serialize)]
struct Row {
    key: &'static str,
    env: &'static str,
    value: String,
    /// `default`, `environment`, `flag`, or the path of a file.
    origin: String,
    meaning: &'static str,
}

/// Carries out the verb.
pub fn run(args: ConfigArgs, global: &Global) -> Result<Exit, Failure> {
    let Verb::Show { json } = args.verb;
    let rows: Vec<Row> =
        std::iter::once(state(global)).chain(global.config.settings.iter().map(row)).collect();
    let warnings = &global.config.warnings;
    if json {
        print_json(&serde_json::json!({ "settings": rows, "warnings": warnings }))?;
        return Ok(Exit::Ok);
    }
    let mut shown = table(&["KEY", "ENVIRONMENT", "VALUE", "FROM"]);
    for row in &rows {
        shown.add_row([row.key, row.env, &row.value, &row.origin]);
    }
    print(&shown.trim_fmt())?;
    for warning in warnings {
        print(&format!("warning: {warning}"))?;
    }
    Ok(Exit::Ok)
}

fn row(setting: &Setting) -> Row {
    let origin = match &setting.origin {
        Origin::Default => "default".to_owned(),
        Origin::Env(_) => "environment".to_owned(),
        Origin::File(path) => path.clone(),
    };
    let (key, env, value) = (setting.key, setting.env, setting.value.clone());
    Row { key, env, value, origin, meaning: meaning(key) }
}

/// The state directory is where `fleet.toml` is looked for, so no file can say it.
fn state(global: &Global) -> Row {
    let env = "FLEET_STATE_DIR";
    let in_env = std::env::var_os(env).is_some_and(|value| !value.is_empty());
    let origin = match (global.state_by_flag, in_env) {
        (true, _) => "flag",
        (false, true) => "environment",
        (false, false) => "default",
    };
    Row {
        key: "state",
        env,
        value: global.config.state.root().display().to_string(),
        origin: origin.to_owned(),
        meaning: "Where runs, logs and artifacts are kept; set by --state or the environment.",
    }
}
