//! What this host is, as far as containers care: user, runtime directory, cgroups, user namespaces.
//! Pure decisions over text that was read once.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use super::PreflightError;
use super::runtime::Runtime;

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
    pub fn default_runtime(self) -> Runtime {
        match self {
            Cgroups::Hybrid => Runtime::Runc,
            Cgroups::Unified | Cgroups::Legacy => Runtime::Crun,
        }
    }
}

/// Where the host is looked at. A test shows another host than the real one.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// `/proc`, `/sys`, `/run` and `/dev` are read beneath this directory.
    pub root: PathBuf,
    /// Where programs are looked for, as `PATH` says it.
    pub path: OsString,
    /// As `XDG_RUNTIME_DIR` says it.
    pub runtime_dir: Option<PathBuf>,
    /// The most that a look at Podman may take.
    pub patience: Duration,
}

impl Surroundings {
    /// The host and the environment of this process.
    pub fn real() -> Self {
        Surroundings {
            root: PathBuf::from("/"),
            path: std::env::var_os("PATH").unwrap_or_default(),
            runtime_dir: std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from),
            patience: super::podman::PATIENCE,
        }
    }

    /// A file of the host, by its absolute path.
    fn file(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    pub(super) fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.file(path)).unwrap_or_default()
    }

    /// The program's path, looked up where programs are.
    pub(super) fn find_program(&self, name: &str) -> Option<PathBuf> {
        std::env::split_paths(&self.path)
            .filter(|dir| dir.is_absolute())
            .map(|dir| dir.join(name))
            .find(|file| rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok())
    }

    /// Whether this process may use the kernel's virtual machines.
    pub(super) fn kvm(&self) -> Result<(), String> {
        let device = self.file("/dev/kvm");
        let opened = std::fs::OpenOptions::new().read(true).write(true).open(&device);
        opened.map(drop).map_err(|error| format!("{}: {error}", device.display()))
    }
}

/// What keeps an ordinary user from a user namespace, in which every rootless container lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UserNamespaces {
    Allowed,
    /// Only programs that an AppArmor profile names may make one with rights in it (Ubuntu).
    AppArmor,
    /// This setting forbids them to everybody.
    Off(&'static str),
}

impl UserNamespaces {
    fn of(around: &Surroundings) -> Self {
        let is = |path: &str, value: &str| around.text(path).trim() == value;
        if is("/proc/sys/user/max_user_namespaces", "0") {
            UserNamespaces::Off("user.max_user_namespaces=0")
        } else if is("/proc/sys/kernel/unprivileged_userns_clone", "0") {
            UserNamespaces::Off("kernel.unprivileged_userns_clone=0")
        } else if is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
            UserNamespaces::AppArmor
        } else {
            UserNamespaces::Allowed
        }
    }
}

/// This process's user and places.
#[derive(Clone, Debug)]
pub(super) struct Host {
    pub around: Surroundings,
    pub uid: u32,
    pub gid: u32,
    pub home: PathBuf,
    pub runtime_dir: PathBuf,
    /// The user's systemd answers on this bus.
    pub systemd_bus: Option<PathBuf>,
    pub cgroups: Cgroups,
    pub user_namespaces: UserNamespaces,
    pub selinux: bool,
}

impl Host {
    /// Looks at this host; refuses root and a runtime directory that cannot be used.
    pub fn look(around: Surroundings) -> Result<Self, PreflightError> {
        let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        if uid == 0 {
            return Err(PreflightError::Root);
        }
        let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        let home = home.ok_or(PreflightError::NoHome)?;
        let user_namespaces = UserNamespaces::of(&around);
        if let UserNamespaces::Off(setting) = user_namespaces {
            return Err(PreflightError::UserNamespacesOff { setting });
        }
        let runtime_dir = runtime_dir(around.runtime_dir.clone(), uid)?;
        let bus = runtime_dir.join("bus");
        let systemd = around.file("/run/systemd/system").is_dir() && bus.exists();
        Ok(Host {
            uid,
            gid,
            home,
            runtime_dir,
            systemd_bus: systemd.then_some(bus),
            cgroups: Cgroups::of_mounts(&around.text("/proc/mounts")),
            user_namespaces,
            selinux: around.file("/sys/fs/selinux/enforce").exists(),
            around,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hybrid_cgroups_get_runc() {
        let v1 = "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n";
        let v2 = "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n";
        let seen = [v1.to_owned(), v2.to_owned(), format!("{v1}{v2}")]
            .map(|mounts| Cgroups::of_mounts(&mounts).default_runtime());
        let want = [Runtime::Crun, Runtime::Crun, Runtime::Runc];
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
