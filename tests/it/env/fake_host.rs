//! A host that is not this one: its `/proc` and `/sys`, and a `podman` that answers as was recorded.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fleet::config::Config;
use fleet::sandbox::{Podman, PreflightError, SealReport, Surroundings, preflight};
use serde_json::{Value, json};

use super::sandbox::config;

/// Answers each verb from files beside it; a verb without an answer succeeds in silence.
const PODMAN: &str = r#"#!/bin/sh
here=$(dirname "$0")/../answers
echo "$*" >>"$here/calls-whole"
while [ $# -gt 0 ]; do
    case $1 in --*=*) shift ;; --*) shift 2 ;; *) break ;; esac
done
echo "$*" >>"$here/calls"
[ "$1" = unshare ] && shift && exec "$@"
[ "$1" = import ] && cat >"$here/imported.tar"
[ -e "$here/$1.hangs" ] && exec sleep 300
[ -e "$here/$1.err" ] && cat "$here/$1.err" >&2
[ -e "$here/$1.out" ] && cat "$here/$1.out"
[ -e "$here/$1.code" ] && exit "$(cat "$here/$1.code")"
exit 0
"#;

/// The host. Whole, until something is changed.
pub struct FakeHost {
    dir: tempfile::TempDir,
    pub config: Config,
    pub patience: Duration,
    info: Value,
    seen: Value,
}

impl FakeHost {
    /// Pure cgroup v2, a systemd user manager, crun, an image, a seal that holds.
    pub fn whole() -> Self {
        let dir = tempfile::tempdir().expect("scratch directory");
        let at = |path: &str| dir.path().join(path);
        for made in ["bin", "answers", "run/systemd/system", "runtime"] {
            std::fs::create_dir_all(at(made)).expect("directory");
        }
        let owner_only = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(at("runtime"), owner_only).expect("mode");
        std::fs::write(at("runtime/bus"), "").expect("file");
        let map = json!([{"size": 1}, {"size": 65536}]);
        let mut config = config(&dir.path().join("state"));
        config.limits = fleet::config::LimitsMode::Enforced;
        config.podman_root = dir.path().join("storage");
        let host = FakeHost {
            config,
            patience: Duration::from_secs(30),
            info: json!({
                "host": {
                    "cgroupVersion": "v2", "cgroupManager": "systemd",
                    "cgroupControllers": ["cpu", "memory", "pids"],
                    "idMappings": {"uidmap": map, "gidmap": map},
                    "ociRuntime": {"name": "crun"},
                    "security": {
                        "rootless": true, "seccompEnabled": true,
                        "seccompProfilePath": "/usr/share/containers/seccomp.json",
                    },
                },
                "store": {"graphDriverName": "overlay"},
                "version": {"Version": "4.3.1"},
            }),
            seen: json!({
                "memory.max": "201326592", "memory.swap.max": "0", "pids.max": "61",
                "cpu.max": "50000 100000", "cap_eff": "0000000000000000",
                "cap_bnd": "0000000000000000", "no_new_privs": "1", "seccomp": "2",
                "interfaces": "lo", "root": "refused: EROFS", "etc": "refused: EROFS",
                "tmp": "1777 writable", "nofile": "997", "fsize": "67108864", "core": "0",
                "data": "201326592", "nproc": "61",
                "vsock": "refused: EAFNOSUPPORT",
                "user_namespace": "refused: EPERM", "clone3": "refused: ENOSYS",
                "threads": "work", "door": "open",
            }),
            dir,
        };
        host.file("proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n");
        for program in ["crun", "runc"] {
            host.program(program, "#!/bin/sh\nexit 1\n");
        }
        host.program("podman", PODMAN);
        host.answer("image", 0, r#"[{"Id":"abc","Size":9,"Labels":null}]"#, "");
        host.answer("container", 1, "", "");
        host
    }

    /// cgroups of version 1 beside version 2.
    pub fn hybrid(self) -> Self {
        let mounts = "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n\
                      cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        self.file("proc/mounts", mounts);
        self
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    /// A file of the host.
    pub fn file(&self, path: &str, text: &str) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("directory");
        std::fs::write(path, text).expect("file");
    }

    /// A program of the host.
    pub fn program(&self, name: &str, text: &str) {
        self.file(&format!("bin/{name}"), text);
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(self.path("bin").join(name), mode).expect("mode");
    }

    pub fn without_program(&self, name: &str) {
        std::fs::remove_file(self.path("bin").join(name)).expect("it was there");
    }

    /// What a verb of Podman answers.
    pub fn answer(&self, verb: &str, code: i32, stdout: &str, stderr: &str) {
        self.file(&format!("answers/{verb}.out"), stdout);
        self.file(&format!("answers/{verb}.err"), stderr);
        self.file(&format!("answers/{verb}.code"), &code.to_string());
    }

    /// The verb never answers.
    pub fn hangs(&self, verb: &str) {
        self.file(&format!("answers/{verb}.hangs"), "");
    }

    /// Changes what `podman info` says.
    pub fn info(&mut self, pointer: &str, value: Value) {
        *self.info.pointer_mut(pointer).expect("a field of podman info") = value;
        let _ = std::fs::remove_file(self.path("answers/info.out"));
    }

    /// Changes what the probe container reads.
    pub fn seen(&mut self, property: &str, value: Value) {
        self.seen[property] = value;
        let _ = std::fs::remove_file(self.path("answers/run.out"));
    }

    pub fn surroundings(&self) -> Surroundings {
        Surroundings {
            root: self.dir.path().to_owned(),
            path: self.path("bin").into_os_string(),
            runtime_dir: Some(self.path("runtime")),
            patience: self.patience,
        }
    }

    pub fn connect(&self) -> Result<Podman, PreflightError> {
        self.answer_by_default("info", &self.info);
        self.answer_by_default("run", &self.seen);
        Podman::connect_in(&self.config, self.surroundings())
    }

    fn answer_by_default(&self, verb: &str, value: &Value) {
        if !self.path(&format!("answers/{verb}.out")).exists() {
            self.answer(verb, 0, &value.to_string(), "");
        }
    }

    /// The seal report, or the refusal.
    pub async fn preflight(&self) -> Result<SealReport, PreflightError> {
        preflight(&self.connect()?, &self.config).await
    }

    /// What `podman` was called with, its global flags left out.
    pub fn calls(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.path("answers/calls")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// The same with them.
    pub fn calls_whole(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.path("answers/calls-whole")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// A text without this host's own directory.
    pub fn plain(&self, text: &str) -> String {
        text.replace(&self.dir.path().display().to_string(), "~")
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }
}
