//! A file system of a few MiB, for tests of a disk that is full: the test is run again in a user
//! namespace of its own, with a tmpfs mounted over its scratch directory.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::env::again;

/// Tells the inner run where the small file system is.
const INSIDE: &str = "FLEET_TEST_SMALL_DISK";

/// Runs `test` of the module `of` with its directory on a file system of `mib` MiB.
pub fn with_small_disk(test: &str, mib: u32, body: impl FnOnce(&SmallDisk)) {
    if let Some(dir) = std::env::var_os(INSIDE) {
        return body(&SmallDisk { dir: PathBuf::from(dir) });
    }
    let dir = tempfile::tempdir().expect("scratch directory");
    let script = format!("mount -t tmpfs -o size={mib}M small \"$0\" && exec \"$@\"");
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script]);
    command.arg(dir.path()).env(INSIDE, dir.path());
    again::carry_out(command, test);
}

/// The small file system.
pub struct SmallDisk {
    dir: PathBuf,
}

impl SmallDisk {
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// Takes every free byte.
    pub fn fill(&self) {
        let mut file = std::fs::File::create(self.filler()).expect("a filler");
        let block = [0_u8; 4096];
        while file.write_all(&block).is_ok() {}
    }

    /// Gives the bytes back.
    pub fn empty(&self) {
        std::fs::remove_file(self.filler()).expect("the filler goes");
    }

    fn filler(&self) -> PathBuf {
        self.dir.join("filler")
    }
}
