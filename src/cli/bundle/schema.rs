//! `fleet bundle schema`.

use std::path::{Path, PathBuf};

use super::super::{Exit, Failure};
use super::{Stream, print};
use crate::bundle::SchemaKind;

/// Which schemas, and where to.
#[derive(Debug, clap::Args)]
pub(super) struct SchemaArgs {
    /// One of manifest, persona, task, script [default: all]
    #[arg(value_parser = ["manifest", "persona", "task", "script"])]
    name: Option<String>,
    /// Write <NAME>.schema.json files into this directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Prints one schema, or all as one object by name; or writes files.
pub(super) fn run(args: &SchemaArgs) -> Result<Exit, Failure> {
    let kinds: Vec<SchemaKind> = match args.name.as_deref().and_then(SchemaKind::parse) {
        Some(kind) => vec![kind],
        None => SchemaKind::ALL.to_vec(),
    };
    match (&args.out, kinds.as_slice()) {
        (Some(out), kinds) => write(out, kinds)?,
        (None, [kind]) => print(&kind.text(), Stream::Out)?,
        (None, kinds) => {
            let entries: Vec<String> = kinds
                .iter()
                .map(|kind| format!("{:?}: {}", kind.as_str(), kind.text().trim_end()))
                .collect();
            print(&format!("{{\n{}\n}}\n", entries.join(",\n")), Stream::Out)?;
        }
    }
    Ok(Exit::Ok)
}

fn write(out: &Path, kinds: &[SchemaKind]) -> Result<(), Failure> {
    let failed = |path: &Path, error: std::io::Error| {
        Failure::new(Exit::Io, format!("cannot write {}: {error}", path.display()))
    };
    std::fs::create_dir_all(out).map_err(|error| failed(out, error))?;
    for kind in kinds {
        let path = out.join(kind.file_name());
        std::fs::write(&path, kind.text()).map_err(|error| failed(&path, error))?;
    }
    Ok(())
}
