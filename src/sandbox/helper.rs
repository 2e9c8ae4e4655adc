//! The program that answers inside a container: its files, as they are mounted there.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// The arguments of `python3` that start it, as the container's first process.
pub(super) const START: [&str; 2] = ["-BISu", "/fleet/helper"];

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("helper/", $name)))),*]
    };
}

/// One file per subject. A new one is added here, and a test says so.
const FILES: &[(&str, &str)] = files![
    "__main__.py",
    "call.py",
    "cgroup.py",
    "commands.py",
    "figures.py",
    "file_calls.py",
    "files.py",
    "forwarder.py",
    "frames.py",
    "git.py",
    "interpreter.py",
    "kernel.py",
    "limits.py",
    "output.py",
    "processes.py",
    "server.py",
    "text.py",
];

/// Writes the program into `door`, the directory that is `/fleet` inside.
pub(super) fn write_into(door: &Path) -> std::io::Result<()> {
    let dir = door.join("helper");
    fs::DirBuilder::new().mode(0o700).create(&dir)?;
    FILES.iter().try_for_each(|(name, text)| write_private(&dir.join(name), text))
}

/// Writes a new file that only this user can read.
pub(super) fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_program_is_mounted() {
        let root = std::env::var("CARGO_MANIFEST_DIR").expect("cargo names its directory");
        let listed = fs::read_dir(Path::new(&root).join("src/sandbox/helper")).expect("sources");
        let mut names: Vec<String> = listed
            .map(|entry| entry.expect("entry").file_name().into_string().expect("text"))
            .filter(|name| name.ends_with(".py"))
            .collect();
        names.sort();
        assert_eq!(names, FILES.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    }
}
