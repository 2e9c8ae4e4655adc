//! `fleet init`: a bundle to start from, committed. Made in a directory beside its place and moved
//! there when it is complete, so that a failure leaves nothing behind.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use include_dir::{Dir, include_dir};

use super::{Exit, Failure, Global};
use crate::bundle::SchemaKind;

static SCAFFOLD: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/templates/init");

/// Stands in the scaffold for the bundle's name.
const NAME_MARK: &str = "@NAME@";

/// Scaffolds a bundle and commits it.
#[derive(Debug, clap::Args)]
pub struct InitArgs {
    /// Where: a new directory, or an empty one
    #[arg(default_value = ".")]
    dir: PathBuf,
}

/// Carries out the verb.
pub fn run(args: InitArgs, _global: &Global) -> Result<Exit, Failure> {
    let place = Place::find(&args.dir)?;
    let building = Building::beside(&place)?;
    write_scaffold(&building.path, &place.name)?;
    let author = commit(&building.path)?;
    building.move_to(&place)?;
    if let Some(root) = &place.around {
        // The bundle is made, whoever listens.
        let _ = writeln!(
            std::io::stderr().lock(),
            "warning: the bundle lies inside the repository {}\n  hint: move it out, or name it in \
             that repository's .gitignore",
            quoted(root)
        );
    }
    let _ = std::io::stdout().lock().write_all(report(&place.name, &args.dir, author).as_bytes());
    Ok(Exit::Ok)
}

/// What was made, and the commands that come next.
fn report(name: &str, dir: &Path, author: Author) -> String {
    let shown = quoted(dir);
    let mut text = format!("made the bundle {name} in {shown} and committed it\n\n");
    if author == Author::Fleet {
        text.push_str(&format!(
            "git knows no name of yours, so that commit is by fleet; before you commit yourself:\n  \
             git -C {shown} config user.name 'Your Name'\n  \
             git -C {shown} config user.email you@example.org\n\n"
        ));
    }
    text.push_str(&format!(
        "next:\n  fleet bundle validate {shown}\n  fleet task run hello-report --bundle {shown}\n"
    ));
    text
}

/// A path as a shell takes it for one argument, and never for an option.
fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let text = if text.starts_with('-') { format!("./{text}") } else { text.into_owned() };
    let plain = |c: char| c.is_alphanumeric() || "_./+-=:@%,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text;
    }
    if text.contains(char::is_control) {
        let escape = |c: char| match c {
            '\'' | '\\' => format!("\\{c}"),
            c if c.is_control() => format!("\\u{:04x}", u32::from(c)),
            c => c.to_string(),
        };
        return format!("$'{}'", text.chars().map(escape).collect::<String>());
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Where the bundle goes.
struct Place {
    dir: PathBuf,
    parent: PathBuf,
    name: String,
    exists: bool,
    /// The root of a repository around it.
    around: Option<PathBuf>,
}

impl Place {
    fn find(dir: &Path) -> Result<Self, Failure> {
        let absolute = std::path::absolute(dir)
            .map_err(|error| Failure::new(Exit::Io, format!("cannot find {dir:?}: {error}")))?;
        let exists = absolute.symlink_metadata().is_ok();
        let absolute = if exists { check_empty(&absolute)? } else { absolute };
        let (Some(parent), Some(name)) = (absolute.parent(), absolute.file_name()) else {
            return Err(Failure::new(Exit::Usage, format!("{} has no name", dir.display())));
        };
        check_parent(parent)?;
        let resolved = parent.canonicalize().unwrap_or_else(|_| parent.to_owned());
        let is_root = |dir: &&Path| dir.join(".git").symlink_metadata().is_ok();
        Ok(Place {
            around: resolved.ancestors().find(is_root).map(Path::to_owned),
            parent: parent.to_owned(),
            name: bundle_name(&name.to_string_lossy()),
            dir: absolute,
            exists,
        })
    }
}

fn check_parent(parent: &Path) -> Result<(), Failure> {
    if parent.is_dir() {
        return Ok(());
    }
    let found = parent.ancestors().find(|above| above.symlink_metadata().is_ok());
    if let Some(file) = found.filter(|found| !found.is_dir()) {
        let message = format!("{} is not a directory", file.display());
        return Err(Failure::new(Exit::Usage, message).hint("name a place below a directory"));
    }
    let message = format!("{} does not exist", parent.display());
    Err(Failure::new(Exit::Usage, message).hint("make the parent directory first"))
}

fn check_empty(dir: &Path) -> Result<PathBuf, Failure> {
    let shown = dir.display();
    let unreadable = |error| Failure::new(Exit::Io, format!("cannot read {shown}: {error}"));
    if !dir.is_dir() {
        let failure =
            Failure::new(Exit::Conflict, format!("{shown} exists and is not a directory"));
        return Err(failure.hint("name a new directory"));
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(unreadable)? {
        found.push(entry.map_err(unreadable)?.file_name().to_string_lossy().into_owned());
    }
    if found.is_empty() {
        return dir.canonicalize().map_err(unreadable);
    }
    found.sort();
    let more = found.len().saturating_sub(3);
    found.truncate(3);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let message = format!("{shown} is not empty: it holds {}{more}", found.join(", "));
    Err(Failure::new(Exit::Conflict, message).hint("name a new or empty directory"))
}

/// The directory's name, in the characters that need no quotes in YAML.
fn bundle_name(directory: &str) -> String {
    let name: String = directory
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .collect();
    let name = name.trim_matches('-');
    match name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        true => name.to_owned(),
        false => format!("bundle-{name}").trim_end_matches('-').to_owned(),
    }
}

/// The half-made bundle; removed unless it was moved.
struct Building {
    path: PathBuf,
}

impl Building {
    fn beside(place: &Place) -> Result<Self, Failure> {
        let path = place.parent.join(format!(".fleet-init-{}", std::process::id()));
        std::fs::create_dir(&path).map_err(|error| {
            Failure::new(Exit::Io, format!("cannot make {}: {error}", path.display()))
                .hint("choose a place that you may write to")
        })?;
        Ok(Building { path })
    }

    /// Into a new directory by one rename; into an existing one entry by entry, because its user may
    /// stand in it.
    fn move_to(self, place: &Place) -> Result<(), Failure> {
        let failed = |error: std::io::Error| {
            Failure::new(Exit::Io, format!("cannot write {}: {error}", place.dir.display()))
        };
        if !place.exists {
            return std::fs::rename(&self.path, &place.dir).map_err(failed);
        }
        let mut moved: Vec<PathBuf> = Vec::new();
        for entry in std::fs::read_dir(&self.path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let to = place.dir.join(entry.file_name());
            if let Err(error) = std::fs::rename(entry.path(), &to) {
                for path in moved {
                    // The first error is the one to report.
                    let _ = std::fs::remove_dir_all(&path).or_else(|_| std::fs::remove_file(&path));
                }
                return Err(failed(error));
            }
            moved.push(to);
        }
        Ok(())
    }
}

impl Drop for Building {
    fn drop(&mut self) {
        // Gone already when it was moved.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

fn write_scaffold(root: &Path, name: &str) -> Result<(), Failure> {
    for kind in SchemaKind::ALL {
        write(&root.join(".schema").join(kind.file_name()), kind.text().as_bytes())?;
    }
    write_dir(&SCAFFOLD, root, name)
}

fn write_dir(dir: &Dir<'_>, root: &Path, name: &str) -> Result<(), Failure> {
    for file in dir.files() {
        let path = match file.path().to_str() {
            Some("gitignore") => root.join(".gitignore"),
            _ => root.join(file.path()),
        };
        let text = file.contents_utf8().unwrap_or_default().replace(NAME_MARK, name);
        write(&path, text.as_bytes())?;
    }
    dir.dirs().try_for_each(|dir| write_dir(dir, root, name))
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let parent = path.parent().unwrap_or(path);
    std::fs::create_dir_all(parent).and_then(|()| std::fs::write(path, bytes)).map_err(|error| {
        Failure::new(Exit::Io, format!("cannot write {}: {error}", path.display()))
    })
}

/// By whom the first commit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Author {
    User,
    /// Git knows no identity of the user's.
    Fleet,
}

/// Makes the repository and its first commit. The user's hooks, templates and signing stay out.
fn commit(root: &Path) -> Result<Author, Failure> {
    git(root, &["init", "--quiet", "--template=", "--initial-branch=main"])?;
    git(root, &["add", "--all"])?;
    let mut commit = vec!["-c", "core.hooksPath=/dev/null", "-c", "commit.gpgSign=false"];
    let known = |name: &str| git(root, &["var", name]).is_ok();
    let author = match known("GIT_AUTHOR_IDENT") && known("GIT_COMMITTER_IDENT") {
        true => Author::User,
        false => Author::Fleet,
    };
    if author == Author::Fleet {
        commit.extend(["-c", "user.name=fleet", "-c", "user.email=fleet@localhost"]);
    }
    commit.extend(["commit", "--quiet", "--message", "Start the bundle"]);
    git(root, &commit)?;
    Ok(author)
}

fn git(root: &Path, args: &[&str]) -> Result<(), Failure> {
    let mut command = Command::new("git");
    command.args(["-c", "user.useConfigOnly=true"]).args(args).current_dir(root);
    // Set by hooks and aliases: they would point at another repository.
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"] {
        command.env_remove(name);
    }
    let output = command.output().map_err(|error| {
        Failure::new(Exit::Io, format!("cannot run git: {error}")).hint("install git")
    })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let verb = args.iter().rev().find(|arg| ["init", "add", "commit", "var"].contains(arg));
    let message = format!("git {} failed: {}", verb.unwrap_or(&""), said.trim());
    Err(Failure::new(Exit::Io, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_quoted_for_a_shell_where_they_need_it() {
        let seen = ["demo", "../a/b.c", "My Bundle", "-x", "it's", "$(id)", "a\nb", "é"]
            .map(|path| quoted(Path::new(path)));
        let wanted = [
            "demo",
            "../a/b.c",
            "'My Bundle'",
            "./-x",
            r"'it'\''s'",
            "'$(id)'",
            r"$'a\u000ab'",
            "é",
        ];
        assert_eq!(seen, wanted);
    }
}
