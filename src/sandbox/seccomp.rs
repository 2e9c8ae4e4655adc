//! fleet's seccomp filter: the host's default profile, narrowed. Pure JSON to JSON, but for
//! [`install`]. What it denies is tried call by call from inside a container
//! (`tests/it/sandbox/seccomp.rs`). Refuses a profile that allows by default or that it does not understand.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::error::PreflightError;
use super::podman::hex;

/// System calls that no run makes: each one leads to more kernel, other processes or other mounts.
const DENIED: [&str; 49] = [
    "add_key",
    "bpf",
    "chroot",
    "fanotify_init",
    "fsconfig",
    "fsmount",
    "fsopen",
    "fspick",
    "init_module",
    "finit_module",
    "delete_module",
    "io_uring_enter",
    "io_uring_register",
    "io_uring_setup",
    "kcmp",
    "kexec_file_load",
    "kexec_load",
    "keyctl",
    "listmount",
    "modify_ldt",
    "mount",
    "mount_setattr",
    "move_mount",
    "name_to_handle_at",
    "open_by_handle_at",
    "open_tree",
    "open_tree_attr",
    "perf_event_open",
    "pidfd_getfd",
    "pivot_root",
    "process_madvise",
    "process_vm_readv",
    "process_vm_writev",
    "ptrace",
    "quotactl",
    "quotactl_fd",
    "reboot",
    "request_key",
    "setns",
    "statmount",
    "swapoff",
    "swapon",
    "syslog",
    "umount",
    "umount2",
    "unshare",
    "userfaultfd",
    "vhangup",
    "vmsplice",
];

/// Calls that get rules of their own, or none.
const REPLACED: [&str; 5] = ["clone", "clone3", "socket", "socketcall", "socketpair"];

/// CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET (clone(2)).
const NEW_NAMESPACES: u64 = 0x7e02_0000;
const AF_UNIX: u64 = 1;
/// AF_UNIX, AF_INET, AF_INET6 (socket(2)).
const FAMILIES: [u64; 3] = [AF_UNIX, 2, 10];
const AF_NETLINK: u64 = 16;
const NETLINK_ROUTE: u64 = 0;
const ENOSYS: u32 = 38;
const EPERM: u32 = 1;

/// The system calls that the filter denies whatever their arguments are.
pub fn denied_calls() -> &'static [&'static str] {
    &DENIED
}

/// The native architecture, in seccomp's words and in the profile's.
fn native() -> Option<(&'static str, &'static str)> {
    match std::env::consts::ARCH {
        "x86_64" => Some(("SCMP_ARCH_X86_64", "amd64")),
        "aarch64" => Some(("SCMP_ARCH_AARCH64", "arm64")),
        _ => None,
    }
}

/// What becomes of `clone3`, whose flags no filter can see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clone3 {
    /// ENOSYS, so that programs take `clone`.
    #[default]
    Refused,
    /// For a gVisor that answers every refusal with EPERM, at which programs give up, and that has no
    /// `clone3`: the probe must see that it makes no namespace.
    Passed,
}

/// Narrows a profile.
pub(super) fn narrow(profile: &Value, clone3: Clone3) -> Result<Value, String> {
    let (architecture, word) =
        native().ok_or_else(|| format!("no filter for {}", std::env::consts::ARCH))?;
    let default = profile.get("defaultAction").and_then(Value::as_str).unwrap_or("nothing");
    if !["SCMP_ACT_ERRNO", "SCMP_ACT_KILL", "SCMP_ACT_KILL_PROCESS"].contains(&default) {
        return Err(format!("its default action is {default}"));
    }
    let rules = profile.get("syscalls").and_then(Value::as_array).ok_or("it has no rules")?;
    let mut kept: Vec<Value> = rules.iter().filter_map(|rule| keep(rule, word)).collect();
    if kept.is_empty() {
        return Err("none of its rules can be used".to_owned());
    }
    kept.extend(own_rules(clone3));
    let mut narrowed = serde_json::Map::new();
    for field in ["defaultAction", "defaultErrnoRet", "defaultErrno"] {
        if let Some(value) = profile.get(field) {
            narrowed.insert(field.to_owned(), value.clone());
        }
    }
    narrowed.insert("architectures".to_owned(), json!([architecture]));
    narrowed.insert("syscalls".to_owned(), Value::Array(kept));
    Ok(Value::Object(narrowed))
}

/// A rule without what fleet denies; `None` when nothing of it is left, or when it depends on a
/// capability, on another architecture or on something unknown.
fn keep(rule: &Value, word: &str) -> Option<Value> {
    if rule.get("action").and_then(Value::as_str) != Some("SCMP_ACT_ALLOW") {
        return None;
    }
    if !condition_holds(rule.get("includes"), word, true)
        || !condition_holds(rule.get("excludes"), word, false)
    {
        return None;
    }
    let listed = rule.get("names").and_then(Value::as_array).into_iter().flatten();
    let names: Vec<&str> = listed
        .chain(rule.get("name"))
        .filter_map(Value::as_str)
        .filter(|name| !DENIED.contains(name) && !REPLACED.contains(name))
        .collect();
    if names.is_empty() {
        return None;
    }
    let args = rule.get("args").cloned().filter(Value::is_array).unwrap_or_else(|| json!([]));
    Some(json!({"names": names, "action": "SCMP_ACT_ALLOW", "args": args}))
}

/// Whether a rule's condition can hold here. Only architectures are judged: a rule that depends on
/// anything else is dropped.
fn condition_holds(condition: Option<&Value>, word: &str, wanted: bool) -> bool {
    let Some(condition) = condition.and_then(Value::as_object) else { return true };
    condition.iter().all(|(key, value)| {
        let values = value.as_array();
        let empty = value.is_null() || values.is_some_and(Vec::is_empty);
        match key.as_str() {
            _ if empty => true,
            "arches" => values
                .is_some_and(|all| all.iter().any(|arch| arch.as_str() == Some(word)) == wanted),
            // Calls that are harmless on any kernel that fleet runs on.
            "minKernel" => wanted,
            _ => false,
        }
    })
}

fn own_rules(clone3: Clone3) -> Vec<Value> {
    let clone3 = match clone3 {
        Clone3::Refused => {
            json!({"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": ENOSYS, "args": []})
        }
        Clone3::Passed => json!({"names": ["clone3"], "action": "SCMP_ACT_ALLOW", "args": []}),
    };
    let mut rules = vec![
        json!({"names": DENIED.as_slice(), "action": "SCMP_ACT_ERRNO", "errnoRet": EPERM, "args": []}),
        // glibc falls back to clone, whose flags a filter can see.
        clone3,
        json!({"names": ["clone"], "action": "SCMP_ACT_ALLOW", "args": [
            {"index": 0, "value": NEW_NAMESPACES, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"},
        ]}),
    ];
    // A pair reaches a family's code too, and may load its module.
    let pairs = [("socketpair", AF_UNIX)];
    for (name, family) in FAMILIES.map(|family| ("socket", family)).into_iter().chain(pairs) {
        rules.push(json!({"names": [name], "action": "SCMP_ACT_ALLOW", "args": [
            {"index": 0, "value": family, "valueTwo": 0, "op": "SCMP_CMP_EQ"},
        ]}));
    }
    rules.push(json!({"names": ["socket"], "action": "SCMP_ACT_ALLOW", "args": [
        {"index": 0, "value": AF_NETLINK, "valueTwo": 0, "op": "SCMP_CMP_EQ"},
        {"index": 2, "value": NETLINK_ROUTE, "valueTwo": 0, "op": "SCMP_CMP_EQ"},
    ]}));
    rules
}

/// The filter on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Installed {
    pub path: PathBuf,
    pub sha256: String,
}

/// Narrows the host's profile and writes the filter into `dir`.
pub(super) fn install(
    profile: &Path,
    dir: &Path,
    clone3: Clone3,
) -> Result<Installed, PreflightError> {
    let refuse = |reason: String| PreflightError::SeccompProfile {
        path: profile.display().to_string(),
        reason,
    };
    let text = std::fs::read(profile).map_err(|error| refuse(error.to_string()))?;
    let parsed: Value = serde_json::from_slice(&text)
        .map_err(|error| refuse(format!("it is not JSON ({error})")))?;
    let narrowed = narrow(&parsed, clone3).map_err(refuse)?.to_string();
    let sha256 = hex(&Sha256::digest(narrowed.as_bytes()));
    let path = dir.join(format!("seccomp-{}.json", &sha256[..16]));
    super::report::write_whole(&path, narrowed.as_bytes())?;
    Ok(Installed { path, sha256 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(names: &[&str], more: Value) -> Value {
        let mut rule = json!({"names": names, "action": "SCMP_ACT_ALLOW"});
        for (key, value) in more.as_object().expect("an object") {
            rule[key] = value.clone();
        }
        rule
    }

    fn narrowed(rules: Vec<Value>) -> Result<Vec<Value>, String> {
        let profile = json!({
            "defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 38,
            "archMap": [{"architecture": "SCMP_ARCH_X86_64", "subArchitectures": ["SCMP_ARCH_X86"]}],
            "syscalls": rules,
        });
        let mut kept =
            narrow(&profile, Clone3::Refused)?["syscalls"].as_array().expect("rules").clone();
        kept.truncate(kept.len() - own_rules(Clone3::Refused).len());
        Ok(kept)
    }

    #[test]
    fn plain_rules_stay_without_what_is_denied() {
        let (_, word) = native().expect("a known architecture");
        let kept = narrowed(vec![
            rule(&["read", "mount", "ptrace", "clone", "write"], json!({})),
            rule(&["unshare", "keyctl"], json!({})),
            rule(&["mount"], json!({"includes": {"caps": ["CAP_SYS_ADMIN"]}})),
            rule(&["reboot"], json!({"includes": {"caps": ["CAP_SYS_BOOT"]}})),
            rule(&["socket"], json!({"excludes": {"caps": ["CAP_AUDIT_WRITE"]}})),
            rule(&["arch_prctl"], json!({"includes": {"arches": [word]}})),
            rule(&["s390_pci"], json!({"includes": {"arches": ["s390x"]}})),
            rule(&["odd"], json!({"includes": {"moons": ["full"]}})),
            rule(
                &["personality"],
                json!({"args": [{"index": 0, "value": 0, "op": "SCMP_CMP_EQ"}]}),
            ),
        ]);
        let allow = |names: &[&str], args: Value| json!({"names": names, "action": "SCMP_ACT_ALLOW", "args": args});
        assert_eq!(
            kept,
            Ok(vec![
                allow(&["read", "write"], json!([])),
                allow(&["arch_prctl"], json!([])),
                allow(&["personality"], json!([{"index": 0, "value": 0, "op": "SCMP_CMP_EQ"}])),
            ])
        );
    }

    #[test]
    fn only_the_native_architecture_is_filtered_for() {
        let profile = json!({
            "defaultAction": "SCMP_ACT_ERRNO",
            "archMap": [{"architecture": "SCMP_ARCH_X86_64", "subArchitectures": ["SCMP_ARCH_X86"]}],
            "syscalls": [{"names": ["read"], "action": "SCMP_ACT_ALLOW"}],
        });
        let narrowed = narrow(&profile, Clone3::Refused).expect("narrowed");
        let (architecture, _) = native().expect("a known architecture");
        assert_eq!(
            (narrowed.get("architectures"), narrowed.get("archMap")),
            (Some(&json!([architecture])), None)
        );
    }

    #[test]
    fn profiles_that_allow_by_default_or_say_nothing_are_refused() {
        let seen = [
            narrow(&json!({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": []}), Clone3::Refused),
            narrow(&json!({"defaultAction": "SCMP_ACT_ERRNO"}), Clone3::Refused),
            narrow(&json!({"defaultAction": "SCMP_ACT_ERRNO", "syscalls": []}), Clone3::Refused),
            narrow(&json!([]), Clone3::Refused),
        ];
        let want = [
            "its default action is SCMP_ACT_ALLOW",
            "it has no rules",
            "none of its rules can be used",
            "its default action is nothing",
        ];
        assert_eq!(seen, want.map(|reason| Err(reason.to_owned())));
    }

    #[test]
    fn missing_profile_names_the_package() {
        let dir = tempfile::tempdir().expect("scratch directory");
        let error = install(&dir.path().join("none.json"), dir.path(), Clone3::Refused)
            .expect_err("refused");
        assert!(error.to_string().contains("golang-github-containers-common"), "{error}");
    }
}
