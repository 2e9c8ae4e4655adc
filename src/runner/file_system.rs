//! On which file systems a store may be. SQLite's log needs memory that all its users share: on a
//! network file system two machines do not, and locks may not hold.

use std::path::Path;

use rustix::fs::statfs;
use tracing::warn;

/// What a file system is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystem {
    Local,
    /// The store would be damaged sooner or later.
    Network(&'static str),
    /// It depends on what is behind it.
    Doubtful(&'static str),
}

/// A state directory on another machine's disk.
#[derive(Debug, thiserror::Error)]
#[error(
    "the state directory {path} is on a network file system ({kind}), on which the store would be \
     damaged"
)]
pub struct NetworkFileSystem {
    path: String,
    kind: &'static str,
}

/// Refuses a network file system, and warns of one that may be one.
pub fn check(state: &Path) -> Result<(), NetworkFileSystem> {
    // What cannot be asked is not refused: opening the store says what is wrong with it.
    let Ok(found) = statfs(state) else { return Ok(()) };
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let path = state.canonicalize().unwrap_or_else(|_| state.to_owned());
    match classify(found.f_type.cast_unsigned(), mount_type(&mounts, &path)) {
        FileSystem::Local => Ok(()),
        FileSystem::Network(kind) => {
            Err(NetworkFileSystem { path: state.display().to_string(), kind })
        }
        FileSystem::Doubtful(kind) => {
            warn!(state = %state.display(), kind, "the state directory's file system may not keep locks: no other machine may use it at the same time");
            Ok(())
        }
    }
}

/// From `statfs`'s magic number (statfs(2), linux/magic.h) and the mount's type.
pub fn classify(magic: u64, mount: Option<&str>) -> FileSystem {
    // The field is signed and as wide as the machine's words: numbers with the top bit set differ.
    match u32::try_from(magic & 0xffff_ffff).expect("masked") {
        0x6969 => FileSystem::Network("nfs"),
        0xff53_4d42 | 0xfe53_4d42 | 0x517b => FileSystem::Network("smb"),
        0x5346_414f | 0x6b41_4653 => FileSystem::Network("afs"),
        0x7375_7245 => FileSystem::Network("coda"),
        0x564c => FileSystem::Network("ncp"),
        0x00c3_6400 => FileSystem::Network("ceph"),
        0x0bd0_0bd0 => FileSystem::Network("lustre"),
        0x4750_4653 => FileSystem::Network("gpfs"),
        0x0102_1997 => FileSystem::Doubtful("9p"),
        0x6573_5546 => match mount {
            Some("fuse.sshfs") => FileSystem::Network("sshfs"),
            Some("fuse.rclone" | "fuse.s3fs" | "fuse.glusterfs" | "fuse.curlftpfs") => {
                FileSystem::Network("fuse")
            }
            Some("virtiofs") => FileSystem::Doubtful("virtiofs"),
            _ => FileSystem::Doubtful("fuse"),
        },
        _ => FileSystem::Local,
    }
}

/// The type of the mount that a path is on, from the text of `/proc/self/mountinfo` (proc(5)).
fn mount_type<'a>(mounts: &'a str, path: &Path) -> Option<&'a str> {
    let mount = |line: &'a str| {
        let (mounted, kind) = line.split_once(" - ")?;
        let point = mounted.split(' ').nth(4)?.replace("\\040", " ");
        let depth = Path::new(&point).components().count();
        path.starts_with(&point).then(|| (depth, kind.split(' ').next().unwrap_or_default()))
    };
    // Of mounts upon one another the last is seen.
    mounts.lines().filter_map(mount).max_by_key(|(depth, _)| *depth).map(|(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_told_by_their_numbers() {
        let table = [
            (0x6969, None, FileSystem::Network("nfs")),
            (0xff53_4d42, None, FileSystem::Network("smb")),
            (0xffff_ffff_ff53_4d42, None, FileSystem::Network("smb")),
            (0xfe53_4d42, None, FileSystem::Network("smb")),
            (0x517b, None, FileSystem::Network("smb")),
            (0x5346_414f, None, FileSystem::Network("afs")),
            (0x00c3_6400, None, FileSystem::Network("ceph")),
            (0x0bd0_0bd0, None, FileSystem::Network("lustre")),
            (0x6573_5546, Some("fuse.sshfs"), FileSystem::Network("sshfs")),
            (0x6573_5546, Some("fuse.rclone"), FileSystem::Network("fuse")),
            (0x6573_5546, Some("fuseblk"), FileSystem::Doubtful("fuse")),
            (0x6573_5546, Some("virtiofs"), FileSystem::Doubtful("virtiofs")),
            (0x0102_1997, Some("9p"), FileSystem::Doubtful("9p")),
            // ext4, xfs, btrfs, tmpfs, overlay, zfs
            (0xef53, None, FileSystem::Local),
            (0x5846_5342, None, FileSystem::Local),
            (0x9123_683e, None, FileSystem::Local),
            (0x0102_1994, None, FileSystem::Local),
            (0x794c_7630, None, FileSystem::Local),
            (0x2fc1_2fc1, None, FileSystem::Local),
        ];
        for (magic, mount, expected) in table {
            assert_eq!(classify(magic, mount), expected, "{magic:x} {mount:?}");
        }
    }

    #[test]
    fn a_path_belongs_to_the_deepest_and_last_mount_above_it() {
        let mounts = "1 0 8:1 / / rw - ext4 /dev/a rw\n\
                      2 1 0:5 / /home rw shared:1 - nfs4 host:/x rw\n\
                      3 2 0:6 / /home/a\\040b rw - ext4 /dev/b rw\n\
                      4 2 0:7 / /home/a\\040b rw - fuse.sshfs host: rw\n";
        let on = |path: &str| mount_type(mounts, Path::new(path));
        assert_eq!(on("/var"), Some("ext4"));
        assert_eq!(on("/home/c"), Some("nfs4"));
        assert_eq!(on("/homes"), Some("ext4"));
        assert_eq!(on("/home/a b/state"), Some("fuse.sshfs"));
    }
}
