//! The soft disk limit: adds up what a run's directories hold, every two seconds. Follows no link,
//! and stops at a bound, because the tree belongs to the agent.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, open, openat, statat};

const EVERY: Duration = Duration::from_secs(2);
/// Directories below each other that are looked into.
const MAX_DEPTH: usize = 128;
const MAX_ENTRIES: u64 = 2_000_000;
const MB: u64 = 1024 * 1024;

/// Waits until the directories hold more than allowed; the reason to end the run.
pub(super) async fn outgrown(roots: Vec<PathBuf>, allowed_mb: u64) -> String {
    loop {
        tokio::time::sleep(EVERY).await;
        let roots = roots.clone();
        let allowed = allowed_mb.saturating_mul(MB);
        match tokio::task::spawn_blocking(move || used(&roots)).await {
            Ok(Used::Bytes(used)) if used > allowed => {
                let used = used.div_ceil(MB);
                return format!(
                    "soft disk limit: limits.sandbox.disk_mb = {allowed_mb}, and {used} MB were used \
                     in the workspace and the repository's overlay; raise the limit, or let the task \
                     write less"
                );
            }
            Ok(Used::Beyond) => {
                return format!(
                    "soft disk limit: more than {MAX_ENTRIES} files, or directories more than \
                     {MAX_DEPTH} deep, are in the workspace or the repository's overlay; let the task \
                     make fewer"
                );
            }
            // The runtime is shutting down: others end the sandbox.
            Ok(Used::Bytes(_)) | Err(_) => {}
        }
    }
}

/// What the roots hold together.
#[derive(Debug, PartialEq, Eq)]
enum Used {
    /// Bytes on disk.
    Bytes(u64),
    /// More than is counted.
    Beyond,
}

fn used(roots: &[PathBuf]) -> Used {
    let mut count = Count { bytes: 0, entries: 0 };
    for root in roots {
        if count.tree(root).is_none() {
            return Used::Beyond;
        }
    }
    Used::Bytes(count.bytes)
}

struct Count {
    bytes: u64,
    entries: u64,
}

impl Count {
    /// `None` when the tree is beyond the bounds.
    fn tree(&mut self, root: &Path) -> Option<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(top) = open(root, flags, Mode::empty()) else { return Some(()) };
        let mut stack = vec![Dir::new(top).ok()?];
        while let Some(dir) = stack.last_mut() {
            let Some(Ok(entry)) = dir.next() else {
                stack.pop();
                continue;
            };
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                return None;
            }
            let Ok(fd) = dir.fd() else { continue };
            let Ok(stat) = statat(fd, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            self.bytes =
                self.bytes.saturating_add(u64::try_from(stat.st_blocks).unwrap_or(0) * 512);
            if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
                continue;
            }
            if stack.len() >= MAX_DEPTH {
                return None;
            }
            let fd = stack.last().and_then(|dir| dir.fd().ok())?;
            // A directory without rights holds nothing that can be read, by the agent either.
            if let Ok(inner) = openat(fd, name, flags, Mode::empty())
                && let Ok(inner) = Dir::new(inner)
            {
                stack.push(inner);
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_what_is_below_and_follows_no_link() {
        let dir = tempfile::tempdir().expect("scratch directory");
        let (inside, outside) = (dir.path().join("in"), dir.path().join("out"));
        std::fs::create_dir_all(inside.join("a/b")).expect("directories");
        std::fs::create_dir(&outside).expect("directory");
        std::fs::write(inside.join("a/b/file"), vec![1; 3 * MB as usize]).expect("file");
        std::fs::write(outside.join("file"), vec![1; 5 * MB as usize]).expect("file");
        std::os::unix::fs::symlink(&outside, inside.join("link")).expect("link");
        let Used::Bytes(bytes) = used(std::slice::from_ref(&inside)) else { panic!("beyond") };
        assert_eq!(bytes / MB, 3);
    }

    #[test]
    fn tree_that_is_too_deep_counts_as_too_large() {
        let dir = tempfile::tempdir().expect("scratch directory");
        let deep = (0..=MAX_DEPTH).fold(dir.path().to_owned(), |path, _| path.join("d"));
        std::fs::create_dir_all(deep).expect("directories");
        assert_eq!(used(&[dir.path().to_owned()]), Used::Beyond);
    }
}
