//! `fleet bundle`.

mod formats;
mod human;
mod printable;
mod rules;
mod schema;
mod show;

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use super::{Exit, Failure, Global};
use crate::bundle::{LoadError, Loaded, Revision, Severity, load};

/// Checks and shows bundles.
#[derive(Debug, clap::Args)]
pub struct BundleArgs {
    #[command(subcommand)]
    verb: BundleVerb,
}

#[derive(Debug, clap::Subcommand)]
enum BundleVerb {
    /// Checks a bundle and lists every problem.
    ///
    /// Exit code 0: no errors (warnings may be listed); 1: errors; 2: no such bundle or revision.
    Validate(ValidateArgs),
    /// Shows what a bundle holds.
    Show(ShowArgs),
    /// Prints the JSON Schemas of the bundle's files, for editors.
    Schema(schema::SchemaArgs),
}

#[derive(Debug, clap::Args)]
struct ValidateArgs {
    #[command(flatten)]
    source: SourceArgs,
    /// How problems are printed
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

#[derive(Debug, clap::Args)]
struct ShowArgs {
    #[command(flatten)]
    source: SourceArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Which bundle, in which state.
#[derive(Debug, clap::Args)]
struct SourceArgs {
    /// The bundle's directory [default: the configured bundle, else the current directory]
    dir: Option<PathBuf>,
    /// Read this commit instead of HEAD
    #[arg(long, value_name = "REV", conflicts_with = "worktree")]
    rev: Option<String>,
    /// Read the files on disk, committed or not
    #[arg(long)]
    worktree: bool,
}

/// How problems are printed.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Format {
    /// Source excerpts for people
    Human,
    /// One JSON object
    Json,
    /// Workflow commands of GitHub Actions
    Github,
    /// SARIF 2.1.0
    Sarif,
}

/// Carries out the verb.
pub fn run(args: BundleArgs, global: &Global) -> Result<Exit, Failure> {
    match args.verb {
        BundleVerb::Validate(args) => validate(&args, global),
        BundleVerb::Show(args) => {
            let loaded = args.source.load(global)?;
            let Some(bundle) = &loaded.bundle else {
                print(&human::render(&loaded, human::Paint::Plain), Stream::Err)?;
                return Ok(Exit::Problems);
            };
            let text = if args.json { show::json(bundle) } else { show::text(bundle) };
            print(&text, Stream::Out)?;
            Ok(Exit::Ok)
        }
        BundleVerb::Schema(args) => schema::run(&args),
    }
}

fn validate(args: &ValidateArgs, global: &Global) -> Result<Exit, Failure> {
    let loaded = args.source.load(global)?;
    let text = match args.format {
        Format::Human => human::render(&loaded, paint()),
        Format::Json => formats::json(&loaded),
        Format::Github => formats::github(&loaded),
        Format::Sarif => formats::sarif(&loaded),
    };
    print(&text, Stream::Out)?;
    let failed = loaded.problems.iter().any(|problem| problem.severity == Severity::Error);
    Ok(if failed { Exit::Problems } else { Exit::Ok })
}

fn paint() -> human::Paint {
    let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    if wanted && std::io::stdout().is_terminal() {
        human::Paint::Colour
    } else {
        human::Paint::Plain
    }
}

impl SourceArgs {
    fn load(&self, global: &Global) -> Result<Loaded, Failure> {
        let configured = || global.config.bundle.clone();
        let dir = self.dir.clone().or_else(configured).unwrap_or_else(|| PathBuf::from("."));
        let revision = match &self.rev {
            Some(rev) => Revision::Named(rev.clone()),
            None if self.worktree => Revision::Worktree,
            None => Revision::Head,
        };
        load_dir(&dir, &revision)
    }
}

fn load_dir(dir: &Path, revision: &Revision) -> Result<Loaded, Failure> {
    if !dir.is_dir() {
        let failure = Failure::new(Exit::Usage, format!("{} is not a directory", dir.display()));
        return Err(failure.hint("name the bundle's directory; fleet init makes one"));
    }
    Ok(load(dir, revision)?)
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        let exit = match &error {
            LoadError::NotARepository { .. }
            | LoadError::BelowTheRoot { .. }
            | LoadError::NoCommits { .. }
            | LoadError::UnknownRevision { .. } => Exit::Usage,
            LoadError::Git { .. } | LoadError::Io { .. } | LoadError::Watch { .. } => Exit::Io,
        };
        let failure = Failure::from_error(exit, &error);
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

enum Stream {
    Out,
    Err,
}

/// Writes text; a closed pipe is not an error.
fn print(text: &str, stream: Stream) -> Result<(), Failure> {
    let written = match stream {
        Stream::Out => std::io::stdout().lock().write_all(text.as_bytes()),
        Stream::Err => std::io::stderr().lock().write_all(text.as_bytes()),
    };
    match written {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::new(Exit::Io, format!("cannot write the output: {error}")))
        }
        _ => Ok(()),
    }
}
