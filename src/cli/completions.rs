//! `fleet completions`.

use clap::CommandFactory;
use clap_complete::Shell;

use super::{Cli, Exit, Failure, Global, print};

/// Prints shell completions.
#[derive(Debug, clap::Args)]
pub struct CompletionsArgs {
    /// The shell that reads them
    shell: Shell,
}

/// Carries out the verb.
pub fn run(args: CompletionsArgs, _global: &Global) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "fleet", &mut script);
    print(String::from_utf8_lossy(&script).trim_end())?;
    Ok(Exit::Ok)
}
