//! What `podman info` says, judged. Pure: one table, a message and a fix for every refusal.

use std::path::PathBuf;

use serde_json::Value;

use super::super::error::{LimitsCause, PreflightError};
use super::super::host::Cgroups;
use super::super::podman::Podman;
use super::super::runtime::Runtime;
use crate::config::LimitsMode;

/// The oldest Podman whose overlay volumes take an upper directory.
const OLDEST: (u32, u32) = (4, 3);

/// What the judgement depends on besides `podman info`.
#[derive(Clone, Debug)]
pub(super) struct Setting<'a> {
    pub mode: LimitsMode,
    pub runtime: Runtime,
    pub cgroups: Cgroups,
    /// The user's systemd answers.
    pub user_manager: bool,
    pub user: &'a str,
    /// fleet's Podman storage.
    pub root: &'a str,
}

/// A host that may be probed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::sandbox) struct Facts {
    pub podman_version: String,
    pub runtime: String,
    /// The host's seccomp profile.
    pub profile: PathBuf,
    /// Subordinate ids (first, how many) under which the runtime may speak for a sandbox.
    pub speakers: Vec<(u32, u32)>,
    /// Limits that the control groups cannot hold; empty where they may.
    pub missing_limits: Vec<&'static str>,
}

/// Judges `podman info --format json`.
pub(super) fn judge(info: &Value, setting: &Setting<'_>) -> Result<Facts, PreflightError> {
    let podman_version = text(info, "/version/Version", "version.Version")?;
    if version(&podman_version) < OLDEST {
        return Err(PreflightError::TooOld { version: podman_version });
    }
    if !flag(info, "/host/security/rootless", "host.security.rootless")? {
        return Err(PreflightError::NotRootless);
    }
    let driver = text(info, "/store/graphDriverName", "store.graphDriverName")?;
    if driver != "overlay" {
        return Err(PreflightError::Storage { driver, root: setting.root.to_owned() });
    }
    for map in ["/host/idMappings/uidmap", "/host/idMappings/gidmap"] {
        if info.pointer(map).and_then(Value::as_array).is_none_or(|rows| rows.len() < 2) {
            return Err(PreflightError::NoSubordinateIds { user: setting.user.to_owned() });
        }
    }
    if !flag(info, "/host/security/seccompEnabled", "host.security.seccompEnabled")? {
        return Err(PreflightError::NoSeccomp);
    }
    let profile = "/host/security/seccompProfilePath";
    let profile = info.pointer(profile).and_then(Value::as_str).filter(|path| !path.is_empty());
    let facts = Facts {
        podman_version,
        runtime: text(info, "/host/ociRuntime/name", "host.ociRuntime.name")?,
        profile: PathBuf::from(profile.unwrap_or("/usr/share/containers/seccomp.json")),
        speakers: if setting.runtime == Runtime::Runsc {
            subordinate_ids(info)
        } else {
            Vec::new()
        },
        missing_limits: missing_limits(info, setting),
    };
    if setting.mode == LimitsMode::Enforced && !facts.missing_limits.is_empty() {
        let limits = facts.missing_limits.join(", ");
        let cause = limits_cause(setting.runtime, setting.cgroups, setting.user_manager);
        return Err(PreflightError::Limits { limits, cause });
    }
    Ok(facts)
}

/// This user's subordinate ids, as (first, how many).
fn subordinate_ids(info: &Value) -> Vec<(u32, u32)> {
    let rows = info.pointer("/host/idMappings/uidmap").and_then(Value::as_array);
    let number = |row: &Value, key: &str| {
        row.get(key).and_then(Value::as_u64).and_then(|number| u32::try_from(number).ok())
    };
    let mapped = |row: &Value| number(row, "container_id").is_some_and(|id| id > 0);
    let rows = rows.into_iter().flatten().filter(|row| mapped(row));
    rows.filter_map(|row| Some((number(row, "host_id")?, number(row, "size")?))).collect()
}

impl Podman {
    /// Why limits do not hold here, if they do not.
    pub fn limits_cause(&self) -> LimitsCause {
        limits_cause(self.oci(), self.host().cgroups, self.host().systemd_bus.is_some())
    }
}

/// Why a limit does not hold, if it does not.
pub(super) fn limits_cause(runtime: Runtime, cgroups: Cgroups, user_manager: bool) -> LimitsCause {
    if !runtime.has_cgroups() {
        return LimitsCause::Gvisor;
    }
    match (cgroups, user_manager) {
        (Cgroups::Hybrid, _) => LimitsCause::Hybrid,
        (Cgroups::Legacy, _) => LimitsCause::Legacy,
        (Cgroups::Unified, false) => LimitsCause::NoUserManager,
        (Cgroups::Unified, true) => LimitsCause::NotDelegated,
    }
}

/// Limits whose controller is not delegated. Whether the others hold, only the probe tells.
fn missing_limits(info: &Value, setting: &Setting<'_>) -> Vec<&'static str> {
    let version = info.pointer("/host/cgroupVersion").and_then(Value::as_str).unwrap_or("none");
    let listed = info.pointer("/host/cgroupControllers").and_then(Value::as_array);
    let unified =
        setting.cgroups == Cgroups::Unified && version == "v2" && setting.runtime.has_cgroups();
    let has = |name: &str| {
        unified && listed.is_some_and(|all| all.iter().any(|one| one.as_str() == Some(name)))
    };
    [("memory", "memory"), ("pids", "pids"), ("cpu", "cpus")]
        .into_iter()
        .filter(|(controller, _)| !has(controller))
        .map(|(_, limit)| limit)
        .collect()
}

fn text(info: &Value, pointer: &str, field: &'static str) -> Result<String, PreflightError> {
    let found = info.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
    found.map(str::to_owned).ok_or(PreflightError::Info { field })
}

fn flag(info: &Value, pointer: &str, field: &'static str) -> Result<bool, PreflightError> {
    info.pointer(pointer).and_then(Value::as_bool).ok_or(PreflightError::Info { field })
}

/// Major and minor number; zeros where there are none.
fn version(text: &str) -> (u32, u32) {
    let mut parts = text.split('.').map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn info() -> Value {
        let map = json!([{"size": 1}, {"size": 65536}]);
        json!({
            "host": {
                "cgroupVersion": "v2",
                "cgroupManager": "systemd",
                "cgroupControllers": ["cpu", "memory", "pids"],
                "idMappings": {"uidmap": map, "gidmap": map},
                "ociRuntime": {"name": "crun"},
                "security": {
                    "rootless": true,
                    "seccompEnabled": true,
                    "seccompProfilePath": "/usr/share/containers/seccomp.json",
                },
            },
            "store": {"graphDriverName": "overlay"},
            "version": {"Version": "4.3.1"},
        })
    }

    fn judged(change: impl FnOnce(&mut Value), mode: LimitsMode, cgroups: Cgroups) -> String {
        let mut info = info();
        change(&mut info);
        let setting = Setting {
            mode,
            runtime: Runtime::Crun,
            cgroups,
            user_manager: true,
            user: "someone",
            root: "/state/podman",
        };
        match judge(&info, &setting) {
            Ok(facts) => {
                format!("{} {} {:?}", facts.podman_version, facts.runtime, facts.missing_limits)
            }
            Err(error) => error.to_string(),
        }
    }

    fn refusal(pointer: &str, value: Value) -> String {
        let change = |info: &mut Value| *info.pointer_mut(pointer).expect("a field") = value;
        judged(change, LimitsMode::Enforced, Cgroups::Unified)
    }

    #[test]
    fn good_host_passes() {
        assert_eq!(judged(|_| {}, LimitsMode::Enforced, Cgroups::Unified), "4.3.1 crun []");
    }

    #[test]
    fn every_fault_has_its_own_message_and_fix() {
        let table = [
            ("/version/Version", json!("4.2.9"), "podman 4.2.9 is too old"),
            ("/host/security/rootless", json!(false), "podman is not rootless"),
            ("/host/security/rootless", json!(null), "podman info has no host.security.rootless"),
            (
                "/store/graphDriverName",
                json!("vfs"),
                "podman's storage driver is vfs, which fleet refuses: remove /state/podman",
            ),
            (
                "/host/idMappings/uidmap",
                json!([{"size": 1}]),
                "the user someone has no subordinate ids in /etc/subuid and /etc/subgid: as root, run `usermod --add-subuids",
            ),
            ("/host/idMappings/gidmap", json!([]), "the user someone has no subordinate ids"),
            (
                "/host/security/seccompEnabled",
                json!(false),
                "podman was built or started without seccomp",
            ),
            ("/host/ociRuntime/name", json!(""), "podman info has no host.ociRuntime.name"),
            (
                "/host/cgroupControllers",
                json!(["memory", "pids"]),
                "this host does not enforce cpus: ",
            ),
            (
                "/host/cgroupControllers",
                json!([]),
                "this host does not enforce memory, pids, cpus: ",
            ),
            ("/host/cgroupVersion", json!("v1"), "this host does not enforce memory, pids, cpus: "),
        ];
        for (pointer, value, want) in table {
            let seen = refusal(pointer, value);
            assert!(seen.starts_with(want), "{pointer}: {seen}");
        }
    }

    #[test]
    fn best_effort_names_the_limits_and_passes_and_strictness_names_the_setting() {
        let v1 = |info: &mut Value| info["host"]["cgroupVersion"] = json!("v1");
        assert_eq!(
            judged(v1, LimitsMode::BestEffort, Cgroups::Hybrid),
            r#"4.3.1 crun ["memory", "pids", "cpus"]"#
        );
        let refused = judged(v1, LimitsMode::Enforced, Cgroups::Hybrid);
        assert!(
            refused.contains("\n[sandbox]\nlimits = \"best_effort\"\nin fleet.toml"),
            "{refused}"
        );
    }
}
