//! The skeleton image: a tar of directories and links over the host's `/usr`. For development and
//! tests only: its programs are the host's, whatever they are.

use std::path::Path;

const BLOCK: usize = 512;

/// Directories, with their modes.
const DIRECTORIES: [(&str, u32); 12] = [
    ("dev", 0o755),
    ("etc", 0o755),
    ("etc/alternatives", 0o755),
    ("fleet", 0o755),
    ("home", 0o755),
    ("proc", 0o555),
    ("run", 0o755),
    ("sys", 0o555),
    // runc keeps the image's mode on the tmpfs.
    ("tmp", 0o1777),
    ("usr", 0o755),
    ("var", 0o755),
    ("var/tmp", 0o1777),
];
/// Links into `/usr` that a merged host has at its root.
const ROOT_LINKS: [&str; 6] = ["bin", "lib", "lib32", "lib64", "libx32", "sbin"];
const FILES: [(&str, &str); 3] = [
    ("etc/passwd", "root:x:0:0:root:/root:/usr/sbin/nologin\n"),
    ("etc/group", "root:x:0:\n"),
    ("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"),
];

/// The image as a tar. `root` is the host's `/`; a host whose `/bin` is no link into `/usr` has none.
pub(super) fn tar(root: &Path) -> Result<Vec<u8>, String> {
    let mut tar = Vec::new();
    for (path, mode) in DIRECTORIES {
        entry(&mut tar, &format!("{path}/"), Kind::Directory, mode, &[])?;
    }
    let links = ROOT_LINKS.iter().filter_map(|name| Some((*name, link(&root.join(name))?)));
    let links: Vec<(&str, String)> = links.collect();
    if !links.iter().any(|(name, _)| *name == "bin") {
        let bin = root.join("bin");
        return Err(format!("{} is not a link into /usr: no skeleton here", bin.display()));
    }
    for (name, target) in links {
        entry(&mut tar, name, Kind::Link(&target), 0o777, &[])?;
    }
    for (name, target) in alternatives(root) {
        // A name that a tar cannot carry is one program less.
        let _ =
            entry(&mut tar, &format!("etc/alternatives/{name}"), Kind::Link(&target), 0o777, &[]);
    }
    for (path, text) in FILES {
        entry(&mut tar, path, Kind::File, 0o644, text.as_bytes())?;
    }
    tar.resize(tar.len() + 2 * BLOCK, 0);
    Ok(tar)
}

/// The target of a link that stays within `/usr`.
fn link(path: &Path) -> Option<String> {
    let target = std::fs::read_link(path).ok()?.into_os_string().into_string().ok()?;
    (target.starts_with("usr/") || target.starts_with("/usr/")).then_some(target)
}

/// Debian keeps the choice between programs in links outside `/usr`.
fn alternatives(root: &Path) -> Vec<(String, String)> {
    let Ok(entries) = std::fs::read_dir(root.join("etc/alternatives")) else { return Vec::new() };
    let mut found: Vec<(String, String)> = entries
        .filter_map(Result::ok)
        .filter_map(|entry| Some((entry.file_name().into_string().ok()?, link(&entry.path())?)))
        .collect();
    found.sort();
    found
}

enum Kind<'a> {
    Directory,
    Link(&'a str),
    File,
}

/// One ustar entry, owned by root, without a time (POSIX.1-1988, `ustar`).
fn entry(
    tar: &mut Vec<u8>,
    name: &str,
    kind: Kind<'_>,
    mode: u32,
    data: &[u8],
) -> Result<(), String> {
    let (flag, target) = match kind {
        Kind::File => (b'0', ""),
        Kind::Link(target) => (b'2', target),
        Kind::Directory => (b'5', ""),
    };
    if name.len() > 100 || target.len() > 100 {
        return Err(format!("the name {name} is too long for a tar"));
    }
    let mut header = [0_u8; BLOCK];
    let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, name.as_bytes());
    put(100, format!("{mode:07o}\0").as_bytes());
    put(108, b"0000000\x000000000\0");
    put(124, format!("{:011o}\0", data.len()).as_bytes());
    put(136, b"00000000000\0");
    put(148, b"        ");
    put(156, &[flag]);
    put(157, target.as_bytes());
    put(257, b"ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    tar.extend_from_slice(&header);
    tar.extend_from_slice(data);
    tar.resize(tar.len().next_multiple_of(BLOCK), 0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tar_reads_it_back() {
        let root = tempfile::tempdir().expect("scratch directory");
        std::os::unix::fs::symlink("usr/bin", root.path().join("bin")).expect("link");
        let file = root.path().join("skeleton.tar");
        std::fs::write(&file, tar(root.path()).expect("a tar")).expect("file");
        let listed = std::process::Command::new("tar")
            .args(["--numeric-owner", "-tvf"])
            .arg(&file)
            .output()
            .expect("tar runs");
        let text = String::from_utf8(listed.stdout).expect("text");
        let lines: Vec<String> = text
            .lines()
            .map(|line| {
                line.split_whitespace()
                    .enumerate()
                    .filter(|(i, _)| ![3, 4].contains(i))
                    .map(|(_, word)| word)
                    .collect::<Vec<_>>()
                    .join(" ")
            })
            .filter(|line| ["tmp/", "bin", "passwd"].iter().any(|part| line.contains(part)))
            .collect();
        assert_eq!(
            lines,
            [
                "drwxrwxrwt 0/0 0 tmp/",
                "drwxrwxrwt 0/0 0 var/tmp/",
                "lrwxrwxrwx 0/0 0 bin -> usr/bin",
                "-rw-r--r-- 0/0 40 etc/passwd",
            ]
        );
    }

    #[test]
    fn host_with_a_directory_bin_has_no_skeleton() {
        let root = tempfile::tempdir().expect("scratch directory");
        std::fs::create_dir(root.path().join("bin")).expect("directory");
        assert!(
            tar(root.path())
                .expect_err("refused")
                .ends_with("/bin is not a link into /usr: no skeleton here")
        );
    }
}
