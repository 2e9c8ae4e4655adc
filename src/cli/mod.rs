//! The command line: a verb per file. Alone prints, adds hints to errors and picks exit codes.

mod backup;
mod bundle;
mod bundle_source;
mod completions;
mod config;
mod dlq;
mod doctor;
mod exit;
mod follow;
mod global;
mod init;
mod logging;
mod notify;
mod open;
mod output;
mod page;
mod restore;
mod runs;
mod sandbox;
mod sched;
mod serve;
mod status;
mod task;
mod timeline;
mod visible;
mod worktree;

use std::process::ExitCode;

use clap::Parser;

use bundle_source::bundle_dir;
use open::make_state_dir;
use output::{print, print_json, table};

pub use exit::{Exit, Failure};
pub use global::Global;

/// Runs AI agents unattended, on a schedule, from a git repository of YAML.
#[derive(Debug, Parser)]
#[command(name = "fleet", version, propagate_version = true, arg_required_else_help = true)]
pub struct Cli {
    #[command(flatten)]
    global: global::GlobalArgs,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Scaffolds a bundle and commits it.
    Init(init::InitArgs),
    /// Checks and shows bundles.
    Bundle(bundle::BundleArgs),
    /// Lists and runs tasks.
    Task(task::TaskArgs),
    /// Runs the scheduler and the status page.
    Serve(serve::ServeArgs),
    /// Shows what runs, what is due and what is wrong.
    Status(status::StatusArgs),
    /// Shows and changes what is scheduled.
    Sched(sched::SchedArgs),
    /// Reviews and replays dead letters (also `fleet sched dlq`).
    Dlq(dlq::DlqArgs),
    /// Shows runs, their logs and artifacts.
    Runs(runs::RunsArgs),
    /// Tries channels and shows the notices that wait.
    Notify(notify::NotifyArgs),
    /// Lists and prunes worktrees.
    Worktree(worktree::WorktreeArgs),
    /// Builds the sandbox image and probes the seal.
    Sandbox(sandbox::SandboxArgs),
    /// Copies the store while it is in use.
    Backup(backup::BackupArgs),
    /// Puts a backup in the store's place.
    Restore(restore::RestoreArgs),
    /// Checks that this host can run fleet.
    Doctor(doctor::DoctorArgs),
    /// Shows the host's configuration.
    Config(config::ConfigArgs),
    /// Prints shell completions.
    Completions(completions::CompletionsArgs),
}

/// Runs the command line and gives the process's exit code.
pub fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|panic| {
        // The payload may hold what a tool or a provider said: only the place is told.
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        eprintln!("fleet itself failed at {place}: please report it");
    }));
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return exit::usage(&error),
    };
    let global = match Global::new(cli.global) {
        Ok(global) => global,
        Err(failure) => return exit::report(&failure),
    };
    let done = match cli.verb {
        Verb::Init(args) => init::run(args, &global),
        Verb::Bundle(args) => bundle::run(args, &global),
        Verb::Serve(args) => serve::run(args, &global),
        Verb::Task(args) => task::run(args, &global),
        Verb::Status(args) => status::run(args, &global),
        Verb::Sched(args) => sched::run(args, &global),
        Verb::Dlq(args) => dlq::run(args, &global),
        Verb::Runs(args) => runs::run(args, &global),
        Verb::Notify(args) => notify::run(args, &global),
        Verb::Worktree(args) => worktree::run(args, &global),
        Verb::Sandbox(args) => sandbox::run(args, &global),
        Verb::Backup(args) => backup::run(args, &global),
        Verb::Restore(args) => restore::run(args, &global),
        Verb::Doctor(args) => doctor::run(args, &global),
        Verb::Config(args) => config::run(args, &global),
        Verb::Completions(args) => completions::run(args, &global),
    };
    match done {
        Ok(exit) => exit.into(),
        Err(failure) => exit::report(&failure),
    }
}
