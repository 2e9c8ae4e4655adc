//! What this host is, as far as containers care: user, runtime directory, cgroups. Pure decisions
//! over text that was read once.

use std::path::{Path, PathBuf};

use super::PreflightError;

/// How the kernel's control groups are mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cgroups {
    /// One tree with all controllers.
    Unified,
    /// Controllers in version 1, beside an almost empty version 2 tree.
    Hybrid,
    /// Version 1 only.
    Legacy,
}

impl Cgroups {
    /// Reads `/proc/mounts`.
    pub fn of_mounts(mounts: &str) -> Self {
        let kinds: Vec<&str> =
            mounts.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
        match (kinds.contains(&"cgroup2"), kinds.contains(&"cgroup")) {
            (true, false) => Cgroups::Unified,
            (true, true) => Cgroups::Hybrid,
            (false, _) => Cgroups::Legacy,
        }
    }

    /// The OCI runtime that works there: crun refuses a hybrid tree.
    pub fn default_runtime(self) -> &'static str {
        match self {
            Cgroups::Hybrid => "runc",
            Cgroups::Unified | Cgroups::Legacy => "crun",
        }
    }
}

/// This process's user and places.
#[derive(Clone, Debug)]
pub(super) struct Host {
    pub uid: u32,
    pub gid: u32,
    pub home: PathBuf,
    pub runtime_dir: PathBuf,
    /// The user's systemd answers on this bus.
    pub systemd_bus: Option<PathBuf>,
    pub cgroups: Cgroups,
    pub selinux: bool,
}

impl Host {
    /// Looks at this host; refuses root and a runtime directory that cannot be used.
    pub fn look() -> Result<Self, PreflightError> {
        let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        if uid == 0 {
            return Err(PreflightError::Root);
        }
        let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        let home = home.ok_or(PreflightError::NoHome)?;
        let runtime_dir = runtime_dir(std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from), uid)?;
        let bus = runtime_dir.join("bus");
        let systemd = Path::new("/run/systemd/system").is_dir() && bus.exists();
        let mounts = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
        Ok(Host {
            uid,
            gid,
            home,
            runtime_dir,
            systemd_bus: systemd.then_some(bus),
            cgroups: Cgroups::of_mounts(&mounts),
            selinux: Path::new("/sys/fs/selinux/enforce").exists(),
        })
    }
}

/// A directory of this user's that ends with the boot.
fn runtime_dir(named: Option<PathBuf>, uid: u32) -> Result<PathBuf, PreflightError> {
    let user = user_name(uid);
    let refuse = |problem: String| PreflightError::RuntimeDir { problem, user: user.clone() };
    let dir = match named {
        Some(dir) if dir.is_absolute() => dir,
        Some(dir) => {
            return Err(refuse(format!("XDG_RUNTIME_DIR {} is not absolute", dir.display())));
        }
        None => PathBuf::from(format!("/run/user/{uid}")),
    };
    if !dir.is_dir() {
        return Err(refuse(format!("the runtime directory {} does not exist", dir.display())));
    }
    let wanted = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    rustix::fs::access(&dir, wanted)
        .map_err(|_| refuse(format!("the runtime directory {} is not writable", dir.display())))?;
    Ok(dir)
}

/// The user's name, or its number where it has none.
pub(super) fn user_name(uid: u32) -> String {
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let number = uid.to_string();
    passwd
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>())
        .find(|fields| fields.get(2) == Some(&number.as_str()))
        .map_or(number.clone(), |fields| fields[0].to_owned())
}

/// The program's path, looked up in `PATH`.
pub(super) fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .filter(|dir| dir.is_absolute())
        .map(|dir| dir.join(name))
        .find(|file| rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hybrid_cgroups_get_runc() {
        let v1 = "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n";
        let v2 = "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n";
        let seen = [v1.to_owned(), v2.to_owned(), format!("{v1}{v2}")]
            .map(|mounts| Cgroups::of_mounts(&mounts))
            .map(|cgroups| (cgroups, cgroups.default_runtime()));
        let want =
            [(Cgroups::Legacy, "crun"), (Cgroups::Unified, "crun"), (Cgroups::Hybrid, "runc")];
        assert_eq!(seen, want);
    }

    #[test]
    fn missing_runtime_directory_names_linger() {
        let error =
            runtime_dir(Some("/nonexistent/runtime".into()), 4_000_000).expect_err("refused");
        assert_eq!(
            error.to_string(),
            "the runtime directory /nonexistent/runtime does not exist: run `loginctl \
             enable-linger 4000000` as root, or set XDG_RUNTIME_DIR to a directory of this user's \
             on a tmpfs with mode 0700"
        );
    }
}
